"""Which files a step loads and reads, so that none of them escapes the spec of its job."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from epistemic_calibration.workflow.provenance import StaleResultError
from epistemic_calibration.workflow.sources import (
    SCRIPTS,
    check_loaded,
    is_of_the_environment,
    not_listed,
    source_paths,
)

#: Folders of the operating system, whose files belong to no user.
_SYSTEM = tuple(
    map(Path, ("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sys", "/usr"))
)
#: The clock of a file system may be behind by some ticks.
_CLOCK_NS = 50_000_000


class WatchedStep:
    """A step whose files are compared with its spec.

    Watched are steps with code of a user's, which may read anything: the modules that they load,
    and the files that the process opens. Not seen are libraries in C that open files by
    themselves, and child processes.

    Parameters
    ----------
    sources : mapping of str to str
        As the spec has them.
    inputs : list of path
        Resolved.
    """

    def __init__(self, sources: Mapping[str, str], inputs: list[Path]) -> None:
        self._sources, self._base_dir = sources, Path.cwd()
        files = source_paths(sources, self._base_dir)
        self._known = {*files, *inputs}
        #: Folders of the user's code.
        self._folders = {
            f.parent for f in files if f.suffix == ".py" and not f.is_relative_to(SCRIPTS)
        }
        self._read: set[Path] = set()
        self._written: set[Path] = set()
        self._modules: set[str] = set()
        self._watching = False
        self._began_ns = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Take down what is opened and loaded, until the end of the block."""
        self._modules = set(sys.modules)
        if self._folders:
            # A hook stays as long as the process.
            sys.addaudithook(self._hook)
        self._began_ns = time.time_ns()
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not self._watching:
            return
        opened, _, flags = args
        # A number is a file that is open already.
        with contextlib.suppress(TypeError, ValueError, OSError):
            path = Path(os.fsdecode(opened)).resolve()
            flags = flags or 0
            is_new = flags & os.O_ACCMODE == os.O_WRONLY or flags & (os.O_TRUNC | os.O_EXCL)
            (self._written if is_new else self._read).add(path)

    def check(self) -> None:
        """Check that the step has loaded and read no file but those of its spec.

        Raises
        ------
        StaleResultError
            Naming the first file that is not. What the job has made itself does not count, nor
            do the files of the environment and of the system, and those that libraries keep in
            hidden folders of the user's home.
        """
        new = set(sys.modules) - self._modules if self._folders else set()
        check_loaded(self._sources, self._base_dir, new)
        own = [self._base_dir.resolve(), *self._folders]
        for path in sorted(self._read - self._written):
            if path in self._known or not path.is_file() or _is_of_a_library(path, own):
                continue
            if path.stat().st_ctime_ns < self._began_ns - _CLOCK_NS:
                raise StaleResultError(f"the job has read {not_listed(path, self._base_dir)}")


def _is_of_a_library(path: Path, own: Collection[Path]) -> bool:
    if path.is_relative_to(SCRIPTS) or is_of_the_environment(path) or "__pycache__" in path.parts:
        return True
    if any(path.is_relative_to(folder) for folder in own):
        return False
    home, temporary = Path.home(), Path(tempfile.gettempdir()).resolve()
    hidden = path.is_relative_to(home) and path.relative_to(home).parts[0].startswith(".")
    compiled = path.is_relative_to(temporary) and "torchinductor" in path.as_posix()
    return hidden or compiled or any(path.is_relative_to(folder) for folder in _SYSTEM)
