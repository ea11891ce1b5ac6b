"""A stage of the pipeline: what its jobs depend on, and what they do.

A script of ``workflow_scripts/stages/`` that defines ``STAGE`` is the stage of that name::

    def needs(plan, dataset, seed):
        settings = {"n_neighbors": plan.config.datasets[dataset].n_neighbors}
        return Needs(settings, {"latents": plan.made_by("latents", dataset=dataset, seed=seed)})

    def step(job):
        latents, _ = read_npz(job.inputs.latents)
        ...

    STAGE = Stage(needs, step, inputs=("latents",), outputs=("neighbors",))

The plan calls ``needs`` with the wildcards of a job; a job calls ``step``. The rule of the stage
names the script, which ``run.py`` runs, and the paths of inputs and outputs under these names.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from epistemic_calibration.workflow._undeclared import undeclared_files
from epistemic_calibration.workflow.job_log import failed_line, start_log
from epistemic_calibration.workflow.job_warnings import WarningCollector, merged
from epistemic_calibration.workflow.provenance import (
    StaleResultError,
    check_inputs,
    files_of,
    fingerprint,
    job_name,
    made_with,
    merged_with,
    read_spec,
    receipt_path,
    write_receipt,
)
from epistemic_calibration.workflow.sources import SCRIPTS, check_sources, source_paths

logger = logging.getLogger("epistemic_calibration")


@dataclass(frozen=True)
class Needs:
    """What determines the outputs of one job, besides the code of its script."""

    #: Everything that the step reads of the configuration, and nothing else, as JSON can say it.
    settings: Mapping[str, Any]
    #: By the name of an input: the jobs that make it, as `Plan.made_by` returns them.
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Files that the step loads by name, such as that of a method.
    sources: Sequence[Path] = ()


@dataclass(frozen=True)
class Job:
    """What a step gets."""

    settings: SimpleNamespace
    #: By name: a path, or a list of paths where the stage has said so.
    inputs: SimpleNamespace
    outputs: SimpleNamespace
    #: The job's wildcards.
    where: Mapping[str, str]
    spec: Mapping[str, Any]
    #: What the jobs before have warned of, as `job_warnings.merged` returns.
    warnings: Sequence[Mapping[str, Any]] = ()
    #: Returns what this job itself has warned of so far, likewise.
    warned: Callable[[], Sequence[Mapping[str, Any]]] = list
    #: What its inputs were made with, as `provenance.merged_with` returns.
    made_with: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def work_folder(self) -> Path:
        """Where what is finished waits until all is; if the job fails, the next one finds it."""
        return Path("results", "work", fingerprint(self.spec)[:16])


@dataclass(frozen=True)
class Stage:
    """A stage of the pipeline.

    Attributes
    ----------
    needs : callable
        Gets the plan and a job's wildcards by keyword, returns `Needs`.
    step : callable
        Gets a `Job`; reads its inputs, calls the library, writes its outputs.
    inputs, outputs : tuple of str
        Names of files and folders, each an option of the script; ``name*`` where there may be any
        number. ``needs`` must name the jobs that make each input.
    unchecked : tuple of str
        Names of further paths that the step reads and no job has made: what is in them is told
        apart by the settings.
    threads : bool, default False
        Whether its rule asks for the threads of the configuration, and not for one.
    """

    needs: Callable[..., Needs]
    step: Callable[[Job], None]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    threads: bool = False

    def run(self, arguments: Sequence[str]) -> None:
        """Do the job of a command line: check the inputs, call the step, write the receipt.

        Progress and an error's traceback go to the standard output; the last line says how the job
        ended, with status 1 after an error. Warnings go into the receipt, too.
        """
        args = self._parsed(arguments)
        start_log()
        collector = WarningCollector()
        collector.install()
        started = time.perf_counter()
        where: Mapping[str, str] = {}
        try:
            spec = read_spec(args["spec"])
            where = spec["where"]
            self._run(spec, args, collector)
        except Exception as error:
            logger.exception("failed after %.1f s", time.perf_counter() - started)
            # The library does not know what the configuration calls a data set.
            name = f"datasets.{where.get('dataset', '<name>')}"
            logger.error("%s", failed_line(error).replace("datasets.<name>", name))
            sys.exit(1)
        logger.info("done in %.1f s", time.perf_counter() - started)

    def _parsed(self, arguments: Sequence[str]) -> dict[str, Any]:
        parser = argparse.ArgumentParser()
        parser.add_argument("--spec", required=True, help="file of the job's spec")
        for name in (*self.inputs, *self.unchecked, *self.outputs):
            several = {"nargs": "*", "default": []}
            options = several if name.endswith("*") else {"required": True}
            parser.add_argument(f"--{name.rstrip('*').replace('_', '-')}", **options)
        return vars(parser.parse_args(arguments))

    def _run(
        self, spec: Mapping[str, Any], args: Mapping[str, Any], collector: WarningCollector
    ) -> None:
        _limit_threads(spec["threads"])
        name = job_name(spec["stage"], spec["where"])
        logger.info("start %s, %d thread(s)", name, spec["threads"])
        check_sources(spec["sources"], Path.cwd())
        inputs, outputs = (
            {name.rstrip("*"): args[name.rstrip("*")] for name in names}
            for names in ((*self.inputs, *self.unchecked), self.outputs)
        )
        paths = {key: _listed(inputs[key]) for key in spec["inputs"]}
        receipts = check_inputs(spec["inputs"], paths)
        inherited = merged(receipt["warnings"] for receipt in receipts)
        given = merged_with(receipt["made_with"] for receipt in receipts)
        # A receipt of an earlier job must not speak for what is written now.
        Path(receipt_path(name)).unlink(missing_ok=True)
        job = Job(
            settings=SimpleNamespace(**spec["settings"]),
            inputs=SimpleNamespace(**inputs),
            outputs=SimpleNamespace(**outputs),
            where=spec["where"],
            spec=spec,
            warnings=inherited,
            warned=lambda: collector.found(name, spec["where"]),
            made_with=given,
        )
        read = [*source_paths(spec["sources"], Path.cwd())]
        read += map(Path, files_of(path for of_input in paths.values() for path in of_input))
        before = {path: _signature(path) for path in read}
        self._call_step(job, read)
        if changed := [path for path, signature in before.items() if _signature(path) != signature]:
            raise StaleResultError(f"{changed[0]} was changed while the job ran. Run again")
        write_receipt(
            name,
            fingerprint(spec),
            [path for of_output in outputs.values() for path in _listed(of_output)],
            merged([inherited, job.warned()]),
            merged_with([given, made_with()]),
        )

    def _call_step(self, job: Job, read: Sequence[Path]) -> None:
        code = [path for path in read if path.suffix == ".py"]
        if all(path.is_relative_to(SCRIPTS) for path in code):
            self.step(job)
            return
        with undeclared_files({path.resolve() for path in read}) as found:
            self.step(job)
        for path in sorted(found):
            logger.warning("%s was read, but no `depends_on` has it: changes rerun nothing", path)


def load_stage(path: Path) -> Stage:
    """Return the stage that a script defines."""
    spec = importlib.util.spec_from_file_location(f"stage_{path.stem}", path.resolve())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STAGE


def _signature(path: Path) -> tuple[int, int, int] | None:
    if not path.is_file():
        return None
    stat = path.stat()
    return stat.st_size, stat.st_ino, stat.st_mtime_ns


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _limit_threads(threads: int) -> None:
    # Before numpy, torch or OpenMP start their pools: the number of threads changes the
    # order of floating-point sums, so it is the spec that says it, not the machine.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
