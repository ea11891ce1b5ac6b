"""Measure how the workflow grows: tasks, members, images and cores; scoring; planning; starting.

    python benchmarks/scaling.py [wall | scoring | planning | starting]

``wall`` times the deep ensemble from latents to scores, varying one thing at a time.
``scoring`` times the script that scores a file of up to 10^6 x 100 random hypotheses.
``planning`` times a dry run of 1,000 tasks and nine methods.
``starting`` times one that finds their 9,000 files of hypotheses, and one that finds copies of
them, beside one that asks Snakemake alone. Without a word, all four.
"""

from __future__ import annotations

import contextlib
import re
import shutil
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
    n_cores,
    new_project,
    npz_block,
    read_config,
    read_images,
    snakemake,
    write_config,
    write_images,
)

from epistemic_calibration.registry import registered_files
from epistemic_calibration.report.style import PAPER_METHODS
from epistemic_calibration.scoring._resamples import adequate_resamples
from epistemic_calibration.workflow.config import resolve_config
from epistemic_calibration.workflow.plan import Plan
from epistemic_calibration.workflow.provenance import (
    fingerprint,
    spec_path,
    write_npz,
    write_receipt,
    write_spec,
)
from epistemic_calibration.workflow.sources import SCRIPTS, source_hashes

#: What the workflow must keep to: memory of scoring in MB, seconds of planning, and of starting
#: beyond Snakemake's own.
SCORING_LIMIT, PLANNING_LIMIT, STARTING_LIMIT = 8 * 1024, 30, 2


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    sections = {"wall": wall, "scoring": scoring, "planning": planning, "starting": starting}
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(sections)}")
    parser.add_argument("--dataset", default="mnist", help="of the configuration, for `wall`")
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


def wall(config, args, folder):
    cores = n_cores(args.cores)
    base = {"tasks": 4, "members": 10, "train": 10_000, "cores": cores}
    images = read_images(config, args.dataset, 40_000, 2_000)
    axes = {
        "tasks": [n for n in (1, 2, 4, 8) if n <= len(images.class_names)],
        "members": [5, 10, 20, 40],
        "train": [n for n in (10_000, 20_000, 40_000) if n <= len(images.x_train)],
        "cores": sorted({1, *(2**k for k in range(1, 8) if 2**k <= cores), cores}),
    }
    print(f"# Deep ensemble of {args.dataset} from latents to scores; else {base}, 20 epochs\n")
    data = folder / "images.npz"
    write_images(data, images)
    rows = []
    for axis, values in axes.items():
        for value in values:
            case = {**base, axis: value}
            project = _latents(config, args.dataset, images, data, case, folder)
            shutil.rmtree(project / "results" / args.dataset / "seed0" / "hypotheses", True)
            shutil.rmtree(project / "results" / args.dataset / "seed0" / "scores", True)
            used = measure(
                snakemake(
                    *("--cores", str(case["cores"])),
                    f"results/{args.dataset}/seed0/scores/deep_ensemble.csv",
                ),
                cwd=project,
            )
            rows.append({"varied": axis, **case, "wall s": used.wall, "CPU s": used.cpu})
    return pd.DataFrame(rows)


def _latents(config, dataset, images, data, case, folder):
    """Return a project with the latents of a case; those of one size are made once."""
    block = npz_block(config["datasets"][dataset], data, images.class_names[: case["tasks"]])
    config = {
        **config,
        "benchmark": [dataset],
        "datasets": {dataset: {**block, "max_train": case["train"]}},
        "seeds": [0],
        "device": "cpu",
        "tasks_per_job": 1,
        "methods": {
            "deep_ensemble": {"n_members": case["members"], "n_epochs": 20, "min_steps": 1}
        },
        "controls": {},
    }
    config["autoencoder"] = {**config["autoencoder"], "n_epochs": 1, "min_steps": 1}
    project = folder / f"train{case['train']}"
    if project.is_dir():
        write_config(project, config)
    else:
        new_project(project, config)
        latents = f"results/{dataset}/seed0/latents.npz"
        measure(snakemake("--cores", str(case["cores"]), latents), cwd=project)
    return project


def scoring(config, args, folder):
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
    upstream = {"stage": "hypotheses", "where": where}
    scores = config["scores"]
    if scores["n_resamples"] == "auto":
        scores = {**scores, "n_resamples": adequate_resamples(1)}
    with contextlib.chdir(project):
        arrays = {"hypotheses": hypotheses, "y_true": y_true}
        write_npz("results/1.npz", arrays, upstream, task="1", diagnostics={})
        labels = {"y_test": y_true, "class_names": np.array(["0", "1"])}
        write_npz("results/labels.npz", labels, upstream)
        for name in ("1", "labels"):
            write_receipt(f"results/{name}.npz", fingerprint(upstream))
        script = Path("workflow_scripts", "scores.py")
        families = registered_files("epistemic_calibration.scoring")
        spec = {
            "stage": "scores",
            "where": where,
            "threads": config["threads"],
            "settings": {"tasks": ["1"], "scores": scores},
            "sources": source_hashes(Path.cwd(), SCRIPTS / "scores.py", *families),
            "inputs": dict.fromkeys(("hypotheses", "labels"), fingerprint(upstream)),
        }
        write_spec(spec)
        paths = {
            "spec": spec_path(spec),
            "hypotheses": "results/1.npz",
            "labels": "results/labels.npz",
            "scores": "results/scores.csv",
            "compared": "results/compared.npz",
        }
        options = [word for name, path in paths.items() for word in (f"--{name}", path)]
        return measure([sys.executable, script, *options], cwd=project)


def planning(config, args, folder):
    print(f"# Dry run of 1,000 tasks and nine methods; the limit is {PLANNING_LIMIT} s\n")
    config = _many_tasks(config, folder)
    project = new_project(folder / "project", config)
    # The first run finds out what the code does, and compiles it.
    _dry_run(project, "resolved_config")
    rows = []
    for tasks_per_job in (1, 10, 50):
        write_config(project, {**config, "tasks_per_job": tasks_per_job})
        used = _dry_run(project, "classes")
        rows.append(
            {
                "tasks_per_job": tasks_per_job,
                "jobs": _n_jobs(used),
                "wall s": used.wall,
                "CPU s": used.cpu,
                "peak MB": used.peak_mb,
                "within limit": used.cpu <= PLANNING_LIMIT,
            }
        )
    return pd.DataFrame(rows)


def starting(config, args, folder):
    print(f"# The same with 9,000 files; the limit is {STARTING_LIMIT} s beyond Snakemake's own\n")
    config = {**_many_tasks(config, folder), "tasks_per_job": 10}
    project = new_project(folder / "project", config)
    with contextlib.chdir(project):
        _fabricate(Plan(resolve_config(config)))
    copy = folder / "copy"
    shutil.copytree(project, copy, copy_function=shutil.copy)
    alone = folder / "alone"
    shutil.copytree(project, alone)
    _without_ledger(alone)
    rows = []
    for case, where in (
        ("first start", project),
        ("again", project),
        ("first start after a copy", copy),
        ("again after a copy", copy),
        ("Snakemake alone", alone),
        ("Snakemake alone, again", alone),
    ):
        used = _dry_run(where, "classes")
        rows.append({"case": case, "jobs": _n_jobs(used), "wall s": used.wall, "CPU s": used.cpu})
    table = pd.DataFrame(rows)
    table["within limit"] = table["CPU s"] <= rows[-1]["CPU s"] + STARTING_LIMIT
    return table


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


def _dry_run(project, target):
    return measure(snakemake("--cores", "1", "--dry-run", target), cwd=project)


def _n_jobs(used):
    return int(re.findall(r"^total\s+(\d+)", used.output, flags=re.MULTILINE)[-1])


def _fabricate(plan):
    """Write files of noise, with receipts, in place of all results up to the hypotheses."""
    dataset, seed = {"dataset": "classes"}, {"dataset": "classes", "seed": 0}
    folder = "results/classes/seed0"
    made = [
        ("images", dataset, ["results/classes/images.npz", "results/classes/labels.npz"]),
        ("encoder", seed, [f"{folder}/encoder.safetensors", f"{folder}/encoder_loss.csv"]),
        ("latents", seed, [f"{folder}/latents.npz"]),
        ("neighbors", seed, [f"{folder}/neighbors.npz"]),
    ]
    for method in plan.methods("classes"):
        files = [f"{folder}/hypotheses/{method}/{task}.npz" for task in plan.tasks("classes")]
        made.append(("hypotheses", {**seed, "method": method}, files))
    content = np.random.default_rng(0).bytes(10_000)
    for stage, where, paths in made:
        for path in map(Path, paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            write_receipt(path, plan.fingerprint(stage, **where))


def _without_ledger(project):
    """Have a project's rules leave it to Snakemake which results are current."""
    path = project / "rules" / "common.smk"
    text = path.read_text()
    asks = "states = look_at_results(dag)"
    if text.count(asks) != 1:
        sys.exit(f"{path}: no line {asks!r}, which starts without the ledger are to lack")
    path.write_text(text.replace(asks, 'states = {"damaged": [], "stale": []}'))


if __name__ == "__main__":
    main()
