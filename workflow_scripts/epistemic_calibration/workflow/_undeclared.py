"""Files that a method of a user's reads although nothing declares them."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from epistemic_calibration.workflow.sources import SCRIPTS

#: Folders of the operating system and of Python, whose files belong to no user.
_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sys", "/usr", "/var")
_SYSTEM += (sys.prefix, sys.base_prefix)


@contextlib.contextmanager
def undeclared_files(declared: Collection[Path]) -> Iterator[set[Path]]:
    """Take down which files Python opens to read in a block, beside those declared.

    Left out are the system's, the environment's, hidden and temporary ones, and what the block
    itself has written. What libraries in C and child processes open is not seen.
    """
    read, written, watching = set(), set(), True

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and watching and isinstance(args[0], str):
            (written if args[2] & (os.O_WRONLY | os.O_RDWR) else read).add(args[0])

    # A hook stays as long as the process, which is as long as the job.
    sys.addaudithook(hook)
    found: set[Path] = set()
    try:
        yield found
    finally:
        watching = False
        candidates = {Path(name).resolve() for name in read - written} - set(declared)
        found |= {path for path in candidates if path.is_file() and _is_of_a_user(path)}


def _is_of_a_user(path: Path) -> bool:
    own = path.is_relative_to(Path.cwd())
    parts = path.relative_to(Path.cwd()).parts if own else path.parts
    folders = (SCRIPTS, *_SYSTEM, Path.cwd() / "results", *([] if own else [tempfile.gettempdir()]))
    return not any(path.is_relative_to(Path(folder).resolve()) for folder in folders) and not any(
        part.startswith(".") or part in ("__pycache__", "site-packages", "dist-packages")
        for part in parts
    )
