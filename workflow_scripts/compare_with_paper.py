"""Join the scores of the benchmark and set them beside the published tables."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration.provenance import atomic_path, fingerprint
    from epistemic_calibration.scores import read_scores
    from epistemic_calibration.tables import paper_comparison, read_published, write_comparison

    scores = read_scores(args.scores, spec["inputs"])
    comparison = paper_comparison(scores, read_published(args.published))
    folder = Path(args.output)
    write_comparison(
        comparison, folder / "paper_comparison", spec["settings"]["methods"], fingerprint(spec)
    )
    with atomic_path(folder / "scores.csv") as path:
        scores.to_csv(path, index=False)


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+"}),
        ("--published", {"required": True}),
        ("--output", {"required": True, "help": "folder"}),
    )
