"""Loops compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable

import numba


def compiled(function: Callable) -> Callable:
    """Return the function compiled, and kept beside Python's bytecode for later processes.

    Division by zero follows IEEE 754, as in NumPy: a check would keep loops from being vectorised.
    """
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written to.
        return numba.njit(error_model="numpy")(function)
