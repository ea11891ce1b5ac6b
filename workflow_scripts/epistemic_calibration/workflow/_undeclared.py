"""Files that a method of a user's reads although nothing declares them."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from epistemic_calibration.workflow.sources import SCRIPTS, is_of_the_environment

#: Folders of the operating system, whose files belong to no user.
_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sys", "/usr", "/var")


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
    if path.is_relative_to(Path.cwd()):
        path_parts = path.relative_to(Path.cwd()).parts
        if path_parts[0] == "results":
            return False
    else:
        path_parts = path.parts
        if path.is_relative_to(Path(tempfile.gettempdir()).resolve()):
            return False
    return not (
        path.is_relative_to(SCRIPTS)
        or is_of_the_environment(path)
        or any(path.is_relative_to(folder) for folder in _SYSTEM)
        or any(part.startswith(".") or part == "__pycache__" for part in path_parts)
    )
