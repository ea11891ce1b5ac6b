"""Bring predictions made elsewhere into the benchmark, one file a one-vs-all task."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.predictions import import_tasks

    import_tasks(
        spec,
        latents_path=args.latents,
        input_paths=args.predictions,
        output_paths=args.outputs,
    )


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--latents", {"required": True}),
        ("--predictions", {"required": True, "nargs": "+"}),
        ("--outputs", {"required": True, "nargs": "+", "help": "one TASK.npz for each file"}),
    )
