"""Downloading raw data: a server that keeps silent is given up."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

#: Seconds that a server may stay silent.
TIMEOUT = 15.0


@contextlib.contextmanager
def socket_timeout() -> Iterator[None]:
    """Let no socket that is opened inside wait longer than `TIMEOUT`."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
