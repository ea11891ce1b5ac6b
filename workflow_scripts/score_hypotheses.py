"""Score the hypotheses of one method on every task of a data set."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.scores import score_tasks

    score_tasks(spec, args.hypotheses, args.output)


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--hypotheses", {"required": True, "help": "folder of TASK.npz files"}),
        ("--output", {"required": True}),
    )
