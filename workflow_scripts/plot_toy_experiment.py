"""Join the tables of one toy experiment and draw its figure."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration import toy_figures
    from epistemic_calibration.figures import save_figure
    from epistemic_calibration.provenance import atomic_path, fingerprint
    from epistemic_calibration.scores import read_tables

    settings = spec["settings"]
    table = read_tables(args.tables, spec["inputs"])
    with atomic_path(args.table) as path:
        table.to_csv(path, index=False)
    plot = getattr(toy_figures, f"plot_{settings['experiment']}")
    figure = plot(table, **settings["arguments"])
    save_figure(figure, Path(args.figure).with_suffix(""), fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--tables", {"required": True, "nargs": "+", "help": "one METHOD.csv for each method"}),
        ("--table", {"required": True, "help": "the joined table"}),
        ("--figure", {"required": True, "help": "PNG; a PDF is written beside it"}),
    )
