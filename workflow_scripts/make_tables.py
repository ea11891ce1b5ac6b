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
    there_should_be = {"tasks": settings["tasks"], "seeds": settings["seeds"]}
    n_resamples = {"n_resamples": settings["n_resamples"]}
    for make, name, more in (
        (paper_table, dataset, {}),
        (summary_table, f"{dataset}_summary", {}),
        (drivers_table, f"{dataset}_drivers", n_resamples),
    ):
        table = make(scores, dataset, settings["methods"], **there_should_be, **more)
        write_table(table, Path(args.output) / name, fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+"}),
        ("--output", {"required": True, "help": "folder"}),
    )
