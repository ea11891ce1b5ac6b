"""Make the tables of a data set from the scores of its methods."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration.provenance import fingerprint
    from epistemic_calibration.scores import read_scores
    from epistemic_calibration.tables import drivers_table, paper_table, summary_table, write_table

    settings = spec["settings"]
    dataset = settings["dataset"]
    scores = read_scores(args.scores, spec["inputs"])
    arguments = (scores, dataset, settings["methods"])
    expected = {"tasks": settings["tasks"], "seeds": settings["seeds"]}
    for name, table in (
        (dataset, paper_table(*arguments, **expected)),
        (f"{dataset}_summary", summary_table(*arguments, **expected)),
        (
            f"{dataset}_drivers",
            drivers_table(*arguments, **expected, n_resamples=settings["n_resamples"]),
        ),
    ):
        write_table(table, Path(args.output) / name, fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+"}),
        ("--output", {"required": True, "help": "folder"}),
    )
