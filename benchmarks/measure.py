"""What the benchmarks share: copies of the project, and processes that are measured."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from epistemic_calibration.data import DataError, Dataset, load_dataset  # noqa: E402

_PARTS = ("Snakefile", "rules", "envs", "profiles", "workflow_scripts", "resources", "report")
#: Seconds between two looks at the memory of a tree of processes.
_INTERVAL = 0.5


@dataclass(frozen=True)
class Usage:
    """What a command and its descendants used.

    Attributes
    ----------
    wall, cpu : float
        Seconds; ``cpu`` is the kernel's own count.
    peak_mb : float
        Largest memory of one process, in MB (2**20 bytes).
    peak_total_mb : float
        Largest sum over the processes alive at once, seen every half second; memory that
        they share counts for each.
    output : str
    """

    wall: float
    cpu: float
    peak_mb: float
    peak_total_mb: float
    output: str


def measure(command: Sequence[str | Path], cwd: Path, **environment: str) -> Usage:
    """Run a command to its end; a failure ends this program, with the end of its output."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    started, peak_total = time.perf_counter(), 0.0
    next_look = started
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        now = time.perf_counter()
        if pid:
            break
        if now >= next_look:
            peak_total = max(peak_total, _tree_memory(process.pid))
            next_look = now + _INTERVAL
        time.sleep(0.02)
    reader.join()
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    output = "".join(lines)
    if process.returncode != 0:
        end = "".join(lines[-60:])
        sys.exit(f"{' '.join(map(str, command))}\nended with {process.returncode}:\n{end}")
    peak = usage.ru_maxrss / 1024
    return Usage(
        wall=now - started,
        cpu=usage.ru_utime + usage.ru_stime,
        peak_mb=peak,
        peak_total_mb=max(peak_total, peak),
        output=output,
    )


def _tree_memory(pid: int) -> float:
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total / 2**20


def new_project(folder: Path, config: Mapping[str, Any]) -> Path:
    """Copy the project's code to ``folder``, with a configuration and no results."""
    folder.mkdir(parents=True)
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / part, ignore=ignored)
        else:
            shutil.copy2(source, folder / part)
    write_config(folder, config)
    return folder


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write the configuration of a project."""
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(config), sort_keys=False))


def snakemake(*arguments: str) -> list[str]:
    """Return the command that runs the workflow in a project's folder."""
    return [sys.executable, "-m", "snakemake", *arguments]


def read_config(args: argparse.Namespace) -> dict[str, Any]:
    """Return the configuration as its file says it, with ``--data-dir`` in it."""
    config = yaml.safe_load(args.configfile.read_text(encoding="utf-8"))
    data_dir = args.data_dir or args.configfile.parent / config["data_dir"]
    return {**config, "data_dir": str(Path(data_dir).resolve())}


def read_images(
    config: Mapping[str, Any], dataset: str, n_train: int | None, n_test: int | None
) -> Dataset:
    """Return a data set of the configuration; images that are absent end this program."""
    block = dict(config["datasets"][dataset])
    for key, number in (("max_train", n_train), ("max_test", n_test)):
        if number is not None:
            block[key] = min(number, block.get(key, number))
    try:
        return load_dataset(block, config["data_dir"])
    except DataError as error:
        sys.exit(
            f"{error}\nOr say --data-dir FOLDER, or --dataset digits, which needs no files but is "
            f"too small to say much: imports take most of its time."
        )


def write_images(path: Path, images: Dataset) -> None:
    """Write a data set as the ``.npz`` that ``source: npz`` reads."""
    np.savez(
        path,
        x_train=images.x_train,
        y_train=images.y_train,
        x_test=images.x_test,
        y_test=images.y_test,
        class_names=np.array(images.class_names),
    )


def npz_block(block: Mapping[str, Any], path: Path, tasks: Sequence[str]) -> dict[str, Any]:
    """Return a data set's block whose images are in ``path``, all else as it was."""
    kept = {k: v for k, v in block.items() if k in ("autoencoder", "latents", "scores")}
    return {"source": "npz", "path": str(path), "tasks": list(tasks), **kept}


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cores", default="all", help="of the workflow (default: all)")
    parser.add_argument("--configfile", type=Path, default=ROOT / "config.yaml")
    parser.add_argument("--data-dir", help="instead of the configuration's data_dir")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "bench", help="folder")
    return parser


def n_cores(cores: str) -> int:
    """Return the number that ``--cores`` stands for."""
    return len(os.sched_getaffinity(0)) if cores == "all" else int(cores)


def read_process_times(path: Path) -> list[dict[str, Any]]:
    """Return what `process_times/sitecustomize.py` wrote, one entry a process."""
    return [json.loads(line) for line in path.read_text().splitlines()]
