"""A stage of the pipeline: what its jobs depend on, and what they do.

A script of ``workflow_scripts/`` that defines ``STAGE`` is the stage of that name::

    @dataclass(frozen=True, kw_only=True)
    class Settings:
        n_neighbors: int

    def needs(plan, dataset, seed):
        settings = Settings(n_neighbors=plan.config.datasets[dataset].n_neighbors)
        return Needs(settings, {"latents": plan.fingerprint("latents", dataset=dataset, seed=seed)})

    def step(job):
        latents, _ = read_npz(job.inputs.latents)
        ...

    STAGE = Stage(Settings, needs, step, inputs=("latents",), outputs=("neighbors",))

    if __name__ == "__main__":
        STAGE.run()

The plan calls ``needs`` with the wildcards of a job; a job calls ``step``. The rule of the
stage names the script and hands it the paths of inputs and outputs under these names.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from epistemic_calibration.workflow._opened import WatchedStep
from epistemic_calibration.workflow.job_log import JobLog, done_line, failed_line
from epistemic_calibration.workflow.job_warnings import WarningCollector, merged
from epistemic_calibration.workflow.provenance import (
    StaleResultError,
    check_inputs,
    file_signature,
    fingerprint,
    is_finished,
    made_with,
    merged_with,
    read_spec,
    receipt_path,
    write_receipt,
)
from epistemic_calibration.workflow.sources import check_sources

logger = logging.getLogger("epistemic_calibration")


@dataclass(frozen=True)
class Needs:
    """What determines the outputs of one job, besides the code of its script.

    Attributes
    ----------
    settings : dataclass
        Everything that the step reads of the configuration, and nothing else.
    inputs : mapping of str to str or list of str
        By the name of an input: the fingerprint that its file must have, or those of its files.
    sources : sequence of path
        Files that the step loads by name, such as that of a method.
    """

    settings: Any
    inputs: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    sources: Sequence[Path] = ()


@dataclass(frozen=True)
class Job:
    """What a step gets.

    Attributes
    ----------
    settings : dataclass
    inputs, outputs : namespace
        A path, or a list of paths where the stage has said so, by name.
    where : dict of str to str
        The job's wildcards.
    spec : dict
    warnings : sequence of dict
        What the jobs before have warned of, as `job_warnings.merged` returns.
    """

    settings: Any
    inputs: SimpleNamespace
    outputs: SimpleNamespace
    where: Mapping[str, str]
    spec: Mapping[str, Any]
    warnings: Sequence[Mapping[str, Any]] = ()
    #: Returns what this job itself has warned of so far, likewise.
    warned: Callable[[], Sequence[Mapping[str, Any]]] = list
    #: What its inputs were made with, as `provenance.merged_with` returns.
    made_with: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Called with the path of an output that is written; see `Stage.one_by_one`.
    finish: Callable[[str], None] = lambda path: None


@dataclass(frozen=True)
class Stage:
    """A stage of the pipeline.

    Attributes
    ----------
    settings : type
        Dataclass of the settings.
    needs : callable
        Gets the plan and a job's wildcards by keyword, returns `Needs`.
    step : callable
        Gets a `Job`; reads its inputs, calls the library, writes its outputs.
    inputs, outputs : tuple of str
        Names of files, each an option of the script; ``name*`` where there may be any number.
        ``needs`` must tell the fingerprints of every input.
    unchecked : tuple of str
        Names of further paths that the step reads, which have no fingerprints: what is in them
        is told apart by the settings, or is no property of the result.
    one_by_one : bool, default False
        Whether each output is made for itself, whatever the others are. Then the step gets only
        those that are not finished, and calls ``job.finish`` with each that it has written: it
        has its receipt at once, and stays if the job fails later.
    """

    settings: type
    needs: Callable[..., Needs]
    step: Callable[[Job], None]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    one_by_one: bool = False

    def run(self) -> None:
        """Do the job of the command line: check the inputs, call the step, write receipts.

        Progress and what the step prints go to ``--log``; an error goes there with its traceback,
        and in one line at its end, or to the screen where there is no log, and the process ends
        with status 1. Warnings go there, too, and into the receipts.
        """
        parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
        parser.add_argument("--spec", required=True, help="file of the job's spec")
        parser.add_argument("--log", type=Path, help="file for progress lines, or the screen")
        for name in (*self.inputs, *self.unchecked, *self.outputs):
            several = {"nargs": "*", "default": []}
            options = several if name.endswith("*") else {"required": True}
            parser.add_argument(_flag(name), **options)
        args = vars(parser.parse_args())
        log = JobLog(args["log"])
        collector = WarningCollector()
        collector.install()
        started = time.perf_counter()
        try:
            self._run(args, log, collector)
        except KeyboardInterrupt:
            logger.info("interrupted after %.1f s", time.perf_counter() - started)
            sys.exit(128 + signal.SIGINT)
        except Exception as error:
            logger.exception("failed after %.1f s", time.perf_counter() - started)
            logger.error("%s", failed_line(error))
            sys.exit(1)
        for text, n in collector.counts.items():
            if n > 1:
                logger.info("warned %d times: %s", n, text)
        logger.info("%s", done_line(time.perf_counter() - started))

    def _run(self, args: Mapping[str, Any], log: JobLog, collector: WarningCollector) -> None:
        spec = read_spec(args["spec"])
        for name in (*self.inputs, *self.outputs):
            for path in _listed(args[name.rstrip("*")]):
                if Path(path).parts[:1] != ("results",):
                    raise ValueError(f"{path}: paths begin with results/, in the working folder")
        if spec["stage"] != Path(sys.argv[0]).stem:
            raise StaleResultError(f"{args['spec']} is a spec of the stage {spec['stage']}")
        _limit_threads(spec["threads"])
        logger.info("start %s %s, %d thread(s)", spec["stage"], spec["where"], spec["threads"])
        inputs, outputs = (
            {name.rstrip("*"): args[name.rstrip("*")] for name in names}
            for names in ((*self.inputs, *self.unchecked), self.outputs)
        )
        read = [path for name in spec["inputs"] for path in _listed(inputs[name])]
        # What is replaced after it was checked and put back before the end leaves its mark.
        before = {path: file_signature(path) for path in map(Path, read) if path.is_file()}
        sources = check_sources(spec["sources"], Path.cwd())
        before |= {path: file_signature(path) for path in sources}
        receipts = []
        for name, expected in spec["inputs"].items():
            receipts += check_inputs(_listed(inputs[name]), _listed(expected))
        inherited = [receipt["warnings"] for receipt in receipts]
        given = merged_with(receipt["made_with"] for receipt in receipts)
        made_from = fingerprint(spec)
        if self.one_by_one:
            for name, paths in outputs.items():
                left = [path for path in paths if not is_finished(path, made_from)]
                if finished := [path for path in paths if path not in left]:
                    logger.info("finished before: %s", ", ".join(finished))
                outputs[name] = left
            if not any(outputs.values()):
                return
        written = [path for paths in outputs.values() for path in _listed(paths)]
        for path in written:
            # A receipt of an earlier job must not speak for what is written now.
            receipt_path(path).unlink(missing_ok=True)

        def warned() -> list[dict[str, Any]]:
            job = written[0] if written else ""
            return collector.found(job, spec["stage"], spec["where"])

        job = Job(
            settings=self.settings(**spec["settings"]),
            inputs=SimpleNamespace(**inputs),
            outputs=SimpleNamespace(**outputs),
            where=spec["where"],
            spec=spec,
            warnings=merged(inherited),
            warned=warned,
            made_with=given,
            finish=lambda path: write_receipts([path]) if self.one_by_one else None,
        )
        watched = WatchedStep(spec["sources"], [Path(path).resolve() for path in read])

        def write_receipts(paths: Sequence[str]) -> None:
            try:
                for path, signature in before.items():
                    if not path.is_file() or file_signature(path) != signature:
                        raise StaleResultError(
                            f"{path} was changed while the job ran. Run snakemake again"
                        )
                watched.check()
            except StaleResultError:
                for path in written:
                    receipt_path(path).unlink(missing_ok=True)
                raise
            warnings = merged([*inherited, warned()])
            made = merged_with([given, made_with()])
            for path in paths:
                write_receipt(path, made_from, warnings, made)

        with log.printed(), watched.running():
            self.step(job)
        write_receipts(written)

    def spec_settings(self, settings: Any) -> dict[str, Any]:
        """Return the settings of a job as they stand in its spec.

        Raises
        ------
        TypeError
            If they are not of the stage's own type.
        """
        if not isinstance(settings, self.settings):
            raise TypeError(f"settings are {type(settings)}, not {self.settings}")
        return dataclasses.asdict(settings)


def _flag(name: str) -> str:
    return f"--{name.rstrip('*').replace('_', '-')}"


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _limit_threads(threads: int) -> None:
    # Before numpy, torch or OpenMP start their pools: the number of threads changes the
    # order of floating-point sums, so it is the spec that says it, not the machine.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
