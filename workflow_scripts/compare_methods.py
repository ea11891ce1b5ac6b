"""Compare the methods of a data set with each other by the corrected error."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.provenance import fingerprint
    from epistemic_calibration.scores import compare_methods, read_scores
    from epistemic_calibration.tables import comparisons_table, write_table

    settings = spec["settings"]
    differences = compare_methods(
        args.predictions,
        spec["inputs"],
        list(settings["methods"]),
        confidence_level=settings["confidence_level"],
        random_state=settings["random_state"],
    )
    scores = read_scores(args.scores, spec["inputs"])
    table = comparisons_table(differences, scores, settings["dataset"], settings["methods"])
    write_table(table, args.output, fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--scores", {"required": True, "nargs": "+", "help": "METHOD.csv of every seed"}),
        ("--predictions", {"required": True, "nargs": "+", "help": "METHOD.npz of every seed"}),
        ("--output", {"required": True, "help": "path of the table, without suffix"}),
    )
