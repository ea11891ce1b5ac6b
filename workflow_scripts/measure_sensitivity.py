"""Measure how EECE and the corrected error move with the numbers of bins and hypotheses."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.scores import measure_sensitivity

    measure_sensitivity(spec, args.hypotheses, args.output)


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--hypotheses", {"required": True, "help": "folder of TASK.npz files"}),
        ("--output", {"required": True}),
    )
