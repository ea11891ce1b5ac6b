"""Downloading raw data: with an answer in time if no server can be reached."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence

#: Seconds that a server may stay silent.
TIMEOUT = 15.0


class NoAnswerError(OSError):
    """No server answers in time."""


@contextlib.contextmanager
def socket_timeout(seconds: float) -> Iterator[None]:
    """Let no socket that is opened inside wait longer than this."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def check_reachable(urls: Sequence[str]) -> None:
    """Raise OSError if no server of ``urls`` can be reached, NoAnswerError if all are silent."""
    import urllib.error
    import urllib.request

    answers: dict[str, str] = {}
    answered = threading.Event()

    def ask(url: str) -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            urllib.request.urlopen(request, timeout=2 * TIMEOUT).close()
            answers[url] = ""
        except urllib.error.HTTPError:
            answers[url] = ""
        except (OSError, ValueError) as error:
            answers[url] = str(error)
        if not answers[url] or len(answers) == len(servers):
            answered.set()

    # One file of each server. In threads, since neither looking a name up nor trying all
    # of a server's addresses obeys the timeout.
    servers = {url.split("/")[2]: url for url in reversed(urls)}
    for url in servers.values():
        threading.Thread(target=ask, args=(url,), daemon=True).start()
    if not answered.wait(TIMEOUT):
        raise NoAnswerError(f"no answer from {', '.join(servers)} within {TIMEOUT:g} s")
    if all(answers.values()):
        raise OSError(f"no connection to {', '.join(servers)}: {next(iter(answers.values()))}")
