"""The command ``epistemic-calibration``: files of predictions, and methods, without the workflow.

Exit codes: 0; 1 for a fault of the data or of a method; 2 for a wrong call.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epistemic_calibration import __version__

if TYPE_CHECKING:
    from epistemic_calibration.evaluation import Evaluation

PROG = "epistemic-calibration"

_FILE = ".npz or .csv file of predictions"
_FILES = """\
A file of predictions is an .npz with `hypotheses` (n_samples, n_hypotheses) and `y_true`
(n_samples,), or a .csv with a column y_true and one column for each hypothesis, named h0, h1, ...
Both may hold `prediction` and `epistemic_uncertainty`, where the model reports its own, several
labels per input as `n_positive` and `n_labels`, and `groups`, equal for inputs that go together. Of
several classes, in an .npz, `hypotheses` have three axes, samples, hypotheses and classes, and
`label_counts` (n_samples, n_classes) are several labels per input.

A hypothesis is a member of an ensemble, a posterior draw, or a pass. The share of the error that is
reported is what forecasters call the squared spread-skill ratio.
"""


#: Files of one page.
MOST_FILES = 10


class UsageError(Exception):
    """The command was called wrongly."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_say, options)
            code = options.run(options)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _fault(options, error, 2)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever reads has seen enough; nor may Python complain at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        return _fault(options, error, 1)
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command and its subcommands."""
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Is a classifier's epistemic uncertainty to be trusted?",
        epilog=f"'{PROG} COMMAND --help' describes each command.",
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    score = _command(commands, "score", _score, "print what a file of predictions is worth")
    score.add_argument("file", metavar="FILE", help=_FILE)
    score.add_argument("--json", action="store_true", help="print JSON instead of a summary")
    score.add_argument(
        "--output", metavar="PATH", help="write the numbers to this .csv or .json as well"
    )
    score.add_argument("--cite", action="store_true", help="print sentences for a paper instead")
    score.add_argument(
        "--fail-above",
        type=float,
        metavar="POINTS",
        help="end with status 1 where the calibration error is surely above so many points",
    )
    _settings(score)

    plot = _command(commands, "plot", _plot, "draw reliability, and error against uncertainty")
    plot.add_argument("file", metavar="FILE", help=_FILE)
    plot.add_argument("--output", metavar="PATH", required=True, help=".png, .pdf or .svg")
    _settings(plot)

    compare = _command(
        commands, "compare", _compare, "put files of the same inputs beside each other"
    )
    compare.add_argument(
        "files", nargs="+", metavar="FILE", help=f"{_FILE}, two or more, of inputs in one order"
    )
    compare.add_argument("--json", action="store_true", help="print JSON instead of a summary")
    _settings(compare)

    page = _command(commands, "page", _page, "make a page of files of predictions")
    page.add_argument("files", nargs="+", metavar="FILE", help=f"{_FILE}; more: of the same inputs")
    page.add_argument("--output", metavar="PATH", required=True, help=".html")
    _settings(page)

    check = _command(
        commands, "check-method", _check_method, "check a method of one's own against its contract"
    )
    check.epilog = "The file defines one class that derives from epistemic_calibration's Method."
    check.add_argument("file", metavar="FILE.py", help="file that defines the method")
    check.add_argument("--random-state", type=int, default=0, help="seed of the data (default: 0)")
    return parser


def _command(commands: Any, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=_FILES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, command=name)
    return parser


def _settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--groups",
        metavar="NAME",
        help="column, or array of an .npz, equal for inputs that are not independent, such as "
        "copies of an image (default: groups, where there is one)",
    )
    parser.add_argument(
        "--axes",
        metavar="ORDER",
        help="order of the three axes of several classes: n samples, h hypotheses, c classes, as "
        "in hnc (default: told apart by length and sums)",
    )
    parser.add_argument(
        "--kind-of-uncertainty",
        choices=("variance", "mutual_information", "expected_entropy"),
        default="variance",
        help="what epistemic_uncertainty is, or what of the hypotheses ranks errors (default: "
        "variance)",
    )
    parser.add_argument(
        "--n-bins",
        type=int,
        metavar="N",
        help="bins of the corrected TECE (default: one for every 20 inputs, at most 50)",
    )
    parser.add_argument(
        "--confidence-level", type=float, default=0.95, metavar="P", help="(default: 0.95)"
    )
    parser.add_argument(
        "--random-state", type=int, default=0, metavar="SEED", help="seed (default: 0)"
    )


def _score(options: argparse.Namespace) -> int:
    from epistemic_calibration.evaluation._text import for_a_paper
    from epistemic_calibration.files import write_text

    output = _checked_output(options.output, (".csv", ".json"))
    result = _evaluated(options.file, options)
    as_json = _json(result.to_dict())
    if options.cite:
        print(for_a_paper(result))
    else:
        print(as_json if options.json else result)
    if output is not None:
        is_csv = output.suffix.lower() == ".csv"
        write_text(output, result.to_frame().to_csv(index=False) if is_csv else as_json + "\n")
    if options.fail_above is None:
        return 0
    if result.tece is None:
        raise ValueError(f"{options.file}: too few inputs for --fail-above")
    return int(100 * max(result.tece.ci_low, 0) ** 0.5 > options.fail_above)


def _plot(options: argparse.Namespace) -> int:
    output = _checked_output(options.output, (".png", ".pdf", ".svg"))
    _check_installed("plot", "matplotlib")
    _evaluated(options.file, options, aloud=True).plot(output)
    return 0


def _page(options: argparse.Namespace) -> int:
    from epistemic_calibration.files import write_text
    from epistemic_calibration.predictions import read_predictions

    output = _checked_output(options.output, (".html",))
    _check_installed("page", "jinja2", "matplotlib")
    if len(options.files) > MOST_FILES:
        raise UsageError(f"page takes {MOST_FILES} files at most, got {len(options.files)}")
    from epistemic_calibration.report.page.files import files_page

    files = {
        name: read_predictions(path, axes=options.axes, groups=options.groups)
        for name, path in _named(options.files).items()
    }
    page = files_page(
        files,
        n_bins=options.n_bins,
        confidence_level=options.confidence_level,
        random_state=options.random_state,
    )
    write_text(output, page)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from epistemic_calibration.evaluation._comparison import compare

    if len(options.files) < 2:
        raise UsageError(f"compare takes two files or more, got {options.files[0]}")
    named = _named(options.files)
    result = compare({n: _evaluated(path, options, aloud=True) for n, path in named.items()})
    print(_json(result.to_dict()) if options.json else result)
    return 0


def _named(paths: Sequence[str]) -> dict[str, str]:
    """Return the paths by their stems, or where these are not different, by themselves."""
    if twice := [path for path in paths if paths.count(path) > 1]:
        raise UsageError(f"a file is given twice: {twice[0]}")
    stems = [Path(path).stem for path in paths]
    return dict(zip(stems if len(set(stems)) == len(stems) else paths, paths, strict=True))


def _check_method(options: argparse.Namespace) -> int:
    from epistemic_calibration.methods._check import check_file

    if not options.file.partition("::")[0].endswith(".py"):
        raise UsageError(f"check-method takes a .py file, got {options.file}")
    faulty = False
    for outcome in check_file(options.file, random_state=options.random_state):
        print(outcome, flush=True)
        faulty |= outcome.fault is not None
    print("The method does not keep its contract." if faulty else "The method keeps its contract.")
    return int(faulty)


def _evaluated(path: str, options: argparse.Namespace, *, aloud: bool = False) -> Evaluation:
    from epistemic_calibration.evaluation import evaluate_inputs
    from epistemic_calibration.predictions import read_inputs

    inputs = read_inputs(
        path,
        axes=options.axes,
        groups=options.groups,
        kind_of_uncertainty=options.kind_of_uncertainty,
    )
    # A summary says them, a figure and a comparison do not.
    for doubt in inputs.doubts * aloud:
        warnings.warn(f"{path}: {doubt}", stacklevel=1)
    try:
        return evaluate_inputs(
            inputs,
            n_bins=options.n_bins,
            confidence_level=options.confidence_level,
            random_state=options.random_state,
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def _check_installed(extra: str, *libraries: str) -> None:
    from importlib.util import find_spec

    if missing := [name for name in libraries if find_spec(name) is None]:
        raise UsageError(
            f"{extra} needs {', '.join(missing)}: pip install 'epistemic-calibration[{extra}]'"
        )


def _checked_output(path: str | None, suffixes: Sequence[str]) -> Path | None:
    """Return the path of an output, of which it is known that it can be written."""
    if path is None:
        return None
    output = Path(path)
    if output.is_dir():
        raise UsageError(f"--output is a folder: {output}")
    if output.suffix.lower() not in suffixes:
        raise UsageError(f"--output must end in {' or '.join(suffixes)}, got {output}")
    if not output.parent.is_dir():
        raise UsageError(f"--output lies in a folder that does not exist: {output.parent}")
    if not os.access(output.parent, os.W_OK):
        raise UsageError(f"--output lies in a folder that cannot be written to: {output.parent}")
    return output


def _say(options: argparse.Namespace, message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning on one line, without the place in the code that gave it."""
    print(f"{PROG} {options.command}: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _fault(options: argparse.Namespace, error: Exception, code: int) -> int:
    message = " ".join(str(error).split()) or type(error).__name__
    print(f"{PROG} {options.command}: {message}", file=sys.stderr)
    return code
