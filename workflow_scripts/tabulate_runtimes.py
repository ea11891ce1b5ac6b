"""Make the table of a data set's run times and memory from the benchmark files of its jobs."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.provenance import fingerprint
    from epistemic_calibration.runtimes import read_runtimes, runtime_table
    from epistemic_calibration.tables import write_table

    settings = spec["settings"]
    table = runtime_table(
        read_runtimes(args.benchmarks, settings["methods"]),
        settings["dataset"],
        settings["methods"],
        seeds=settings["seeds"],
    )
    write_table(table, args.output, fingerprint(spec))


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--benchmarks", {"required": True, "help": "folder of the data set's benchmark files"}),
        ("--output", {"required": True, "help": "path of the table, without suffix"}),
    )
