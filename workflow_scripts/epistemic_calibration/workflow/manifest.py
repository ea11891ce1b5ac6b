"""The manifest: one line for each start and end of a run, never rewritten."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from epistemic_calibration.workflow.provenance import versions


def append_manifest(path: str | Path, event: str, run_id: str, **extra: object) -> None:
    """Append one JSON line that says which code ran where.

    Parameters
    ----------
    path : path
        ``results/manifest.jsonl``
    event : str
        ``start``, ``success`` or ``error``.
    run_id : str
        The same in every line of one run.
    **extra
        Further fields.
    """
    record = {
        "run_id": run_id,
        "event": event,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "arguments": sys.argv[1:],
        **_git_state(),
        "versions": versions(),
        "machine": {
            "platform": platform.platform(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
        **extra,
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _git_state() -> dict[str, object]:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
