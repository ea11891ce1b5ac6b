"""How far a benchmark is: for each data set and method what is done, running, failed, missing.

``python -m epistemic_calibration.workflow.status [DATASET ...]`` prints it, from receipts and from
the logs of the jobs; no result is read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epistemic_calibration.workflow.config import resolve_config
from epistemic_calibration.workflow.job_log import read_outcome
from epistemic_calibration.workflow.ledger import Ledger
from epistemic_calibration.workflow.plan import Plan

State = Literal["done", "running", "failed", "stopped", "missing"]


@dataclass(frozen=True)
class MethodStatus:
    """How far a method is on a data set.

    Attributes
    ----------
    method : str
    seed : int
    state : {"done", "running", "failed", "stopped", "missing"}
        ``done``: scored, as the configuration and the sources ask for. ``stopped``: the run was
        ended in the middle of one of its jobs.
    n_fitted, n_tasks : int
        Tasks with current hypotheses, and all.
    reason : str
        Why it failed.
    """

    method: str
    seed: int
    state: State
    n_fitted: int
    n_tasks: int
    reason: str = ""


def dataset_status(plan: Plan, dataset: str) -> Iterator[MethodStatus]:
    """Yield how far each method is on a data set, for each seed."""
    ledger = Ledger(plan.base_dir)
    running = _is_running(plan.base_dir)

    def current(path: str, stage: str, **where: object) -> bool:
        expected = plan.fingerprint(stage, dataset=dataset, **where)
        return ledger.state(path, expected) == "current"

    logs = Path("results", "logs", dataset)
    tasks = list(plan.tasks(dataset))
    for seed in plan.config.seeds:
        folder = f"results/{dataset}/seed{seed}"
        first = []
        if not current(f"results/{dataset}/images.npz", "images"):
            first.append(logs / "images.log")
        if not current(f"{folder}/encoder.safetensors", "encoder", seed=seed):
            first.append(logs / f"seed{seed}" / "encoder.log")
        if not current(f"{folder}/latents.npz", "latents", seed=seed):
            first.append(logs / f"seed{seed}" / "latents.log")
        for method in plan.methods(dataset):
            where = {"seed": seed, "method": method}
            stage, own = plan.fit_stage(method), logs / f"seed{seed}"
            fitted = {
                task
                for task in tasks
                if current(f"{folder}/hypotheses/{method}/{task}.npz", stage, **where)
            }
            if current(f"{folder}/scores/{method}.csv", "scores", **where):
                yield MethodStatus(method, seed, "done", len(fitted), len(tasks))
                continue
            asked = [] if method in plan.imported else first
            if plan.entries[method].uses_neighbors and not current(
                f"{folder}/neighbors.npz", "neighbors", seed=seed
            ):
                asked = [*asked, own / "neighbors.log"]
            fits = [(own / "hypotheses" / f"{method}.log", tasks)]
            if method not in plan.imported:
                fits = [
                    (own / "hypotheses" / f"{method}.{part}.log", chunk)
                    for part, chunk in plan.fits(dataset).items()
                ]
            asked = [*asked, *(log for log, chunk in fits if not fitted.issuperset(chunk))]
            state, reason = _state(
                plan.base_dir, [*asked, own / "scores" / f"{method}.log"], running
            )
            yield MethodStatus(method, seed, state, len(fitted), len(tasks), reason)


def _state(base_dir: Path, logs: Iterable[Path], running: bool) -> tuple[State, str]:
    """Return the state of a method that is not done, from the logs of what it lacks."""
    outcomes = [outcome for log in logs if (outcome := read_outcome(base_dir / log))]
    for outcome in outcomes:
        if outcome.state == "failed":
            return "failed", outcome.reason
    if any(outcome.state == "unfinished" for outcome in outcomes):
        return ("running" if running else "stopped"), ""
    return "missing", ""


def _is_running(base_dir: Path) -> bool:
    """Return whether Snakemake holds its lock on the folder."""
    locks = base_dir / ".snakemake" / "locks"
    return locks.is_dir() and any(locks.iterdir())


def report(plan: Plan, datasets: Iterable[str]) -> Iterator[str]:
    """Yield the lines that the command prints."""
    several = len(plan.config.seeds) > 1
    for dataset in datasets:
        if dataset in plan.unavailable:
            yield f"{dataset}: not available ({plan.unavailable[dataset]})"
            continue
        rows = list(dataset_status(plan, dataset))
        n_done = sum(row.state == "done" for row in rows)
        yield f"{dataset}: {n_done} of {len(rows)} done"
        started = any(row.state != "missing" or row.n_fitted for row in rows)
        for row in rows if started else []:
            seed = f" seed {row.seed}" if several else ""
            fitted = f"{row.n_fitted} of {row.n_tasks} tasks fitted"
            yield f"  {row.state:8} {row.method + seed:30} {fitted}"
            if row.reason:
                yield f"           {row.reason}"


def main(arguments: list[str] | None = None) -> int:
    """Print how far each data set is, and return the exit status."""
    import yaml

    parser = argparse.ArgumentParser(
        prog="python -m epistemic_calibration.workflow.status",
        description="Say what is done, running, failed and missing in the current folder.",
    )
    parser.add_argument("datasets", nargs="*", help="by default all of the configuration")
    parser.add_argument("--configfile", default="config.yaml", help="default: %(default)s")
    args = parser.parse_args(arguments)
    try:
        with Path(args.configfile).open(encoding="utf-8") as file:
            plan = Plan(resolve_config(yaml.safe_load(file)))
        unknown = set(args.datasets) - set(plan.config.datasets)
        if unknown:
            known = ", ".join(plan.config.datasets)
            raise ValueError(f"no data set {', '.join(sorted(unknown))}; there are: {known}")
        for line in report(plan, args.datasets or plan.config.datasets):
            print(line)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"status: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
