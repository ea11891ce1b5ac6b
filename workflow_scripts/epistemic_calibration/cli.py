"""What every script of the workflow does around its one library call."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

logger = logging.getLogger("epistemic_calibration")


def run_step(
    description: str,
    step: Callable[[argparse.Namespace, dict[str, Any]], None],
    *arguments: tuple[str, dict[str, Any]],
) -> None:
    """Parse the command line, log to file, limit threads, run ``step``, report the outcome.

    Parameters
    ----------
    description : str
        What the script does, for ``--help``.
    step : callable
        Gets the parsed arguments and the job's spec.
    *arguments : tuple of (flag, keywords of ``add_argument``)
        The script's own inputs and outputs.

    Notes
    -----
    Progress goes to ``--log``; an error goes there with its traceback and to the screen
    in one line, and the process ends with status 1.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--spec", required=True, type=json.loads, help="the job's spec, as JSON")
    parser.add_argument("--log", type=Path, help="file for progress lines (default: the screen)")
    for flag, keywords in arguments:
        parser.add_argument(flag, **keywords)
    args = parser.parse_args()

    _start_logging(args.log)
    threads = args.spec.get("settings", {}).get("threads", 1)
    _limit_threads(threads)
    started = time.perf_counter()
    logger.info("start %s (%d thread(s))", args.spec.get("stage", parser.prog), threads)
    try:
        step(args, args.spec)
    except Exception as error:
        logger.exception("failed after %.1f s", time.perf_counter() - started)
        log_hint = f" (log: {args.log})" if args.log else ""
        print(
            f"{Path(sys.argv[0]).name}: {type(error).__name__}: {error}{log_hint}", file=sys.stderr
        )
        sys.exit(1)
    logger.info("done in %.1f s", time.perf_counter() - started)


def _start_logging(path: Path | None) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    else:
        handler = logging.StreamHandler()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[handler]
    )
    logging.captureWarnings(True)


def _limit_threads(threads: int) -> None:
    # Before numpy, torch or OpenMP start their pools: the number of threads changes the
    # order of floating-point sums, so it is the spec that says it, not the machine.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
