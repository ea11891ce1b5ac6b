"""Makes every Python process write its CPU time, and the part of it that imports took.

Python loads a module of this name when it starts, if PYTHONPATH has its folder. At its end
the process appends one JSON line to the file that PROCESS_TIMES names. Imports are what the
outermost import statements take, on the processor.
"""

import atexit
import builtins
import json
import os
import sys
import threading
import time

_import = builtins.__import__
_this_thread = threading.local()
_seconds = []


def _timed_import(*args, **kwargs):
    if getattr(_this_thread, "importing", False):
        return _import(*args, **kwargs)
    _this_thread.importing = True
    started = time.thread_time()
    try:
        return _import(*args, **kwargs)
    finally:
        _seconds.append(time.thread_time() - started)
        _this_thread.importing = False


def _write():
    arguments = getattr(sys, "argv", [""])
    record = {
        "program": arguments[0],
        "cpu_seconds": time.process_time(),
        "import_seconds": sum(_seconds),
    }
    if "--spec" in arguments:
        with open(arguments[arguments.index("--spec") + 1]) as file:  # noqa: PTH123
            spec = json.load(file)
        record |= {"stage": spec["stage"], "method": spec["where"].get("method", "")}
    line = json.dumps(record) + "\n"
    file = os.open(os.environ["PROCESS_TIMES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


if "PROCESS_TIMES" in os.environ:
    builtins.__import__ = _timed_import
    atexit.register(_write)
