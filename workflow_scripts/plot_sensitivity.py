"""Draw how the estimates of a data set move with the numbers of bins and hypotheses."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration.figures import save_figure, sensitivity
    from epistemic_calibration.provenance import fingerprint
    from epistemic_calibration.scores import read_tables

    settings = spec["settings"]
    table = read_tables(args.tables, spec["inputs"])
    figure = sensitivity(table, settings["dataset"], settings["methods"])
    save_figure(figure, Path(args.figure).with_suffix(""), fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--tables", {"required": True, "nargs": "+", "help": "one METHOD.csv for each method"}),
        ("--figure", {"required": True, "help": "PNG; a PDF is written beside it"}),
    )
