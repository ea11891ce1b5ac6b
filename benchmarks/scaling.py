"""Measure how the workflow grows.

    python benchmarks/scaling.py [scores | planning]

``scores`` times the job that scores one task of up to a million samples; ``planning`` a dry run
of up to some 10,000 jobs.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from measure import (
    arguments,
    measure,
    new_project,
    read_config,
    snakemake,
    write_config,
)

from epistemic_calibration.files import write_npz, write_text
from epistemic_calibration.registry import registered_files
from epistemic_calibration.report.style import PAPER_METHODS
from epistemic_calibration.scores._resamples import adequate_resamples
from epistemic_calibration.workflow.config import resolve_config
from epistemic_calibration.workflow.provenance import write_receipt
from epistemic_calibration.workflow.sources import STAGES, source_hashes

#: What the workflow must keep to: memory of scores in MB, seconds of planning 1,000 jobs.
SCORING_LIMIT, PLANNING_LIMIT = 8 * 1024, 15


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    sections = {"scores": scores, "planning": planning}
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(sections)}")
    args = parser.parse_args()
    for name in args.sections:
        if name not in sections:
            parser.error(f"no section {name!r}; there are {', '.join(sections)}")
    config = read_config(args)
    args.output.mkdir(parents=True, exist_ok=True)
    for name in args.sections or sections:
        # A process starts with its parent's peak memory: each section has a small parent.
        with (
            tempfile.TemporaryDirectory(prefix="bench-") as folder,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        ):
            table = pool.submit(sections[name], config, args, Path(folder)).result()
        path = args.output / f"scaling_{name}.csv"
        table.to_csv(path, index=False)
        print(f"{table.to_string(index=False, float_format='{:.2f}'.format)}\n\n-> {path}\n")


def scores(config, args, folder):
    print(f"# Scoring one task; the limit is {SCORING_LIMIT} MB\n")
    project = new_project(folder / "project", config)
    (project / "results").mkdir(exist_ok=True)
    rows = []
    for n_samples in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(0)
        # Predictions of every size, with a spread of their own for each sample.
        hypotheses = rng.standard_normal((n_samples, 100), dtype=np.float32)
        hypotheses *= rng.uniform(0.05, 1, (n_samples, 1)).astype(np.float32)
        hypotheses += rng.normal(-2, 2, (n_samples, 1)).astype(np.float32)
        np.negative(hypotheses, out=hypotheses)
        np.exp(hypotheses, out=hypotheses)
        hypotheses += 1
        np.reciprocal(hypotheses, out=hypotheses)
        y_true = (rng.random(n_samples) < hypotheses.mean(axis=1)).astype(np.uint8)
        used = _score(project, config, hypotheses, y_true)
        del hypotheses
        rows.append(
            {
                "samples": n_samples,
                "hypotheses": 100,
                "wall s": used.wall,
                "CPU s": used.cpu,
                "peak MB": used.peak_mb,
                "within limit": used.peak_mb <= SCORING_LIMIT,
            }
        )
    return pd.DataFrame(rows)


def _score(project, config, hypotheses, y_true):
    """Measure the job that scores one task, as the workflow would start it."""
    where = {"dataset": "random", "method": "random", "seed": "0"}
    scores = config["scores"]
    if scores["n_resamples"] == "auto":
        scores = {**scores, "n_resamples": adequate_resamples(1)}
    with contextlib.chdir(project):
        arrays = {"hypotheses": hypotheses, "y_true": y_true}
        write_npz("results/hypotheses/1.npz", arrays, task="1", diagnostics={})
        write_npz("results/labels.npz", {"y_test": y_true, "class_names": np.array(["0", "1"])})
        write_receipt("made", "0", ["results/hypotheses", "results/labels.npz"])
        families = registered_files("epistemic_calibration.scores")
        spec = {
            "stage": "scores",
            "where": where,
            "threads": 1,
            "settings": {"tasks": ["1"], "scores": scores},
            "sources": source_hashes(Path.cwd(), STAGES / "scores.py", *families),
            "inputs": {name: {"made": "0"} for name in ("hypotheses", "labels")},
        }
        write_text("results/spec.json", json.dumps(spec))
        paths = {
            "spec": "results/spec.json",
            "hypotheses": "results/hypotheses",
            "labels": "results/labels.npz",
            "scores": "results/scores.csv",
            "compared": "results/compared.npz",
        }
        options = [word for name, path in paths.items() for word in (f"--{name}", path)]
        runner = [sys.executable, "-m", "epistemic_calibration.workflow.run"]
        return measure([*runner, "workflow_scripts/stages/scores.py", *options], cwd=project)


def planning(config, args, folder):
    print(f"# Dry run of nine methods; the limit for 1,000 jobs is {PLANNING_LIMIT} s\n")
    config = _many_tasks(config, folder)
    project = new_project(folder / "project", config)
    rows = []
    for n_seeds in (1, 10, 45, 450):
        write_config(project, {**config, "seeds": list(range(n_seeds))})
        used = measure(snakemake("--cores", "1", "--dry-run", "classes"), cwd=project)
        n_jobs = int(re.findall(r"^total\s+(\d+)", used.output, flags=re.MULTILINE)[-1])
        rows.append(
            {
                "seeds": n_seeds,
                "jobs": n_jobs,
                "wall s": used.wall,
                "CPU s": used.cpu,
                "peak MB": used.peak_mb,
                "within limit": used.cpu <= PLANNING_LIMIT or n_jobs > 1_100,
            }
        )
    return pd.DataFrame(rows)


def _many_tasks(config, folder):
    """Return a configuration of 1,000 tasks and nine methods on images of noise."""
    labels = np.repeat(np.arange(1_000), 2)
    pixels = np.random.default_rng(0).integers(0, 256, (2_000, 8, 8), dtype=np.uint8)
    data = folder / "images.npz"
    np.savez(data, x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    config = {
        **config,
        "benchmark": ["classes"],
        "datasets": {"classes": {"source": "npz", "path": str(data)}},
        "seeds": [0],
        "methods": {name: config["methods"].get(name, {}) for name in PAPER_METHODS},
        "controls": {},
    }
    resolve_config(config)
    return config


if __name__ == "__main__":
    main()
