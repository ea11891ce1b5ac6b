"""Make the tables of a data set from the scores of its methods."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration.scores import read_scores
    from epistemic_calibration.tables import drivers_table, paper_table, summary_table, write_table

    settings = spec["settings"]
    dataset, methods = settings["dataset"], settings["methods"]
    scores = read_scores(args.scores, spec["inputs"])
    folder = Path(args.output)
    write_table(paper_table(scores, dataset, methods), folder / dataset)
    write_table(summary_table(scores, dataset, methods), folder / f"{dataset}_summary")
    write_table(drivers_table(scores, dataset, methods), folder / f"{dataset}_drivers")


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+"}),
        ("--output", {"required": True, "help": "folder"}),
    )
