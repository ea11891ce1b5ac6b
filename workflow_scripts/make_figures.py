"""Draw the figures of a data set from the scores of its methods."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration import figures
    from epistemic_calibration.provenance import fingerprint
    from epistemic_calibration.scores import read_scores
    from epistemic_calibration.style import DATASET_FIGURES

    settings = spec["settings"]
    dataset, methods = settings["dataset"], settings["methods"]
    scores = read_scores(args.scores, spec["inputs"])
    for name in DATASET_FIGURES:
        figure = getattr(figures, name)(scores, dataset, methods)
        figures.save_figure(figure, Path(args.output) / name, fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+"}),
        ("--output", {"required": True, "help": "folder"}),
    )
