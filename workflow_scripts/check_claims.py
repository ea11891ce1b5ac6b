"""Check the paper's statements on the results of the benchmark and the toy experiments."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    from epistemic_calibration.claims import claims, to_markdown
    from epistemic_calibration.provenance import atomic_path, fingerprint
    from epistemic_calibration.scores import ALL_TASKS, read_joined_table, read_scores

    inputs = spec["inputs"]
    scores = read_scores(args.scores, inputs["scores"])
    toy = {
        path.stem: read_joined_table(path, inputs["toy"][path.stem].values())
        for path in map(Path, args.toy)
    }
    table = claims(scores[scores["task"] != ALL_TASKS], toy)
    with atomic_path(args.output) as path:
        table.to_csv(path, index=False)
    with atomic_path(Path(args.output).with_suffix(".md")) as path:
        mark = f"\n<!-- fingerprint: {fingerprint(spec)} -->\n"
        path.write_text(to_markdown(table) + mark, encoding="utf-8")


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+"}),
        ("--toy", {"required": True, "nargs": "+", "help": "EXPERIMENT.csv of each experiment"}),
        ("--output", {"required": True, "help": "CSV; Markdown is written beside it"}),
    )
