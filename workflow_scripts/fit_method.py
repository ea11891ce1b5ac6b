"""Fit one method on some one-vs-all tasks and write the hypotheses of each."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.hypotheses import fit_tasks

    fit_tasks(
        spec,
        latents_path=args.latents,
        neighbors_path=args.neighbors,
        output_paths=args.outputs,
    )


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--latents", {"required": True}),
        ("--neighbors", {"nargs": "?", "help": "only for methods that use them"}),
        ("--outputs", {"required": True, "nargs": "+", "help": "one TASK.npz for each task"}),
    )
