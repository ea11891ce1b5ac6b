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
    import numpy as np

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
    page.add_argument("paths", nargs="+", metavar="FILE", help=f"{_FILE}; more: of the same inputs")
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
        type=_positive,
        metavar="N",
        help="bins of the corrected TECE (default: one for every 20 inputs, at most 50)",
    )
    parser.add_argument(
        "--confidence-level", type=_fraction, default=0.95, metavar="P", help="(default: 0.95)"
    )
    parser.add_argument(
        "--random-state", type=_seed, default=0, metavar="SEED", help="seed (default: 0)"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {value}")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"must lie in [0, 2**32), got {value}")
    return value


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text}")
    return value


# argparse says "invalid _positive value" otherwise.
_positive.__name__ = "integer"
_seed.__name__ = "integer"
_fraction.__name__ = "number"


def _score(options: argparse.Namespace) -> int:
    output = _checked_output(options.output, (".csv", ".json"))
    result = _evaluated(options.file, options)
    as_json = _json(result.to_dict())
    if options.cite:
        from epistemic_calibration._evaluation_text import for_a_paper

        print(for_a_paper(result))
    else:
        print(as_json if options.json else _coloured(str(result)))
    if output is not None:
        from epistemic_calibration.files import write_text

        is_csv = output.suffix.lower() == ".csv"
        write_text(output, result.to_frame().to_csv(index=False) if is_csv else as_json + "\n")
    if options.fail_above is not None and result.tece is None:
        raise ValueError(f"{options.file}: too few inputs for --fail-above")
    return int(options.fail_above is not None and _least_points(result) > options.fail_above)


def _least_points(result: Evaluation) -> float:
    """Return the lower limit of the calibration error in points."""
    return 100 * max(result.tece.ci_low, 0) ** 0.5


def _plot(options: argparse.Namespace) -> int:
    output = _checked_output(options.output, (".png", ".pdf", ".svg"))
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError(
            "plot needs matplotlib: pip install 'epistemic-calibration[plot]'"
        ) from None
    _evaluated(options.file, options, aloud=True).plot(output)
    return 0


def _page(options: argparse.Namespace) -> int:
    from importlib.util import find_spec

    from epistemic_calibration.files import write_text

    output = _checked_output(options.output, (".html",))
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        raise UsageError(
            f"page needs {', '.join(missing)}: pip install 'epistemic-calibration[page]'"
        )
    if len(options.paths) > MOST_FILES:
        raise UsageError(f"page takes {MOST_FILES} files at most, got {len(options.paths)}")
    from epistemic_calibration.report.page.files import files_page

    stems = [Path(path).stem for path in options.paths]
    names = stems if len(set(stems)) == len(stems) else options.paths
    if len(set(names)) < len(names):
        raise UsageError(f"page: a file is given twice: {', '.join(options.paths)}")
    files = {name: _read(path, options) for name, path in zip(names, options.paths, strict=True)}
    page = files_page(
        files,
        n_bins=options.n_bins,
        confidence_level=options.confidence_level,
        random_state=options.random_state,
    )
    write_text(output, page)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from epistemic_calibration._comparison import compare

    paths = options.files
    if len(paths) < 2:
        raise UsageError(f"compare takes two files or more, got {paths[0]}")
    names = [Path(path).stem for path in paths]
    if len(set(names)) < len(names):
        names = paths
    if len(set(names)) < len(names):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise UsageError(f"the same file is given twice: {twice}")
    result = compare(
        {
            name: _evaluated(path, options, aloud=True)
            for name, path in zip(names, paths, strict=True)
        }
    )
    print(_json(result.to_dict()) if options.json else _coloured(str(result)))
    return 0


def _check_method(options: argparse.Namespace) -> int:
    from epistemic_calibration._check_method import check_file

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


def _read(path: str, options: argparse.Namespace) -> dict[str, np.ndarray]:
    from epistemic_calibration.predictions import read_predictions

    return read_predictions(path, axes=options.axes, groups=options.groups)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def _coloured(text: str) -> str:
    """Return a summary with conclusions in bold and warnings in yellow, where it is for a terminal.

    See https://no-color.org.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not _on_terminal():
        return text
    lines, style = [], ""
    for line in text.splitlines():
        if not line.startswith("  ") or not line.strip():
            style = {"→": "\033[1m", "!": "\033[33m"}.get(line[:1], "")
        lines.append(f"{style}{line}\033[0m" if style else line)
    return "\n".join(lines)


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
