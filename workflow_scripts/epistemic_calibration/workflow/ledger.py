"""The ledger: which results on disk are the ones that the plan asks for.

Whether a job must run is decided here, not from Snakemake's records or from modification
times: a result is current if its receipt has the fingerprint that the plan expects, and its
content is the one that the receipt has. So that starting a run opens no file that has not
changed, ``results/ledger.json`` keeps what was found, with each file's size, inode and times;
where one of them differs, the file is read again. Receipts and ledger lie in ``results/``, and
go where it goes.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from epistemic_calibration.files import write_text
from epistemic_calibration.workflow.provenance import (
    canonical_json,
    file_digest,
    file_signature,
    read_receipt,
    receipt_name,
)

State = Literal["missing", "current", "stale", "damaged"]


class Ledger:
    """What is known of the results on disk.

    Parameters
    ----------
    base_dir : path
        The working folder, which holds ``results/``.
    """

    def __init__(self, base_dir: str | Path = ".") -> None:
        self.base_dir = Path(base_dir)
        self.path = self.base_dir / "results" / "ledger.json"
        self._changed = False
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
            self._entries = {
                path: entry
                for path, entry in entries.items()
                if entry.keys() >= {"signature", "fingerprint", "sha256"}
            }
        except (OSError, ValueError, AttributeError):
            # Without it, everything is looked at anew.
            self._entries = {}

    def state(self, path: str, fingerprint: str) -> State:
        """Return what a result is to a job that expects it to have this fingerprint.

        Parameters
        ----------
        path : str
            Relative to the working folder, in ``results/``.
        fingerprint : str
            Of the spec that it must have been made from.

        Returns
        -------
        {"missing", "current", "stale", "damaged"}
            ``stale``: made from another spec, or by a job that did not finish. ``damaged``: made
            from this spec, but its content is no longer what the job has written.
        """
        # As text: with thousands of results, objects of paths would take most of the time.
        file = f"{self.base_dir}/{path}"
        try:
            signature = file_signature(file)
        except FileNotFoundError:
            return "missing"
        entry = self._entries.get(path)
        known = entry is not None and entry["signature"] == signature
        # A job that reads the result asks for its receipt.
        receipt_file = f"{self.base_dir}/{receipt_name(path)}"
        if not known or not os.path.isfile(receipt_file):  # noqa: PTH113
            receipt = read_receipt(path, self.base_dir)
            if receipt is None or receipt["fingerprint"] != fingerprint:
                return "stale"
            if receipt["signature"] != signature and receipt["sha256"] != file_digest(file):
                return "damaged"
            entry = {
                "signature": signature,
                "fingerprint": fingerprint,
                "sha256": receipt["sha256"],
            }
            self._entries[path] = entry
            self._changed = True
        return "current" if entry["fingerprint"] == fingerprint else "stale"

    def states(self, expected: Iterable[tuple[str, str]]) -> dict[State, list[str]]:
        """Return the paths in each state, given (path, fingerprint) of each."""
        found: dict[State, list[str]] = {"missing": [], "current": [], "stale": [], "damaged": []}
        for path, fingerprint in expected:
            found[self.state(path, fingerprint)].append(path)
        return {state: sorted(paths) for state, paths in found.items()}

    def save(self) -> None:
        """Write the ledger, where it has changed; it only saves time, so failing to is no error."""
        if self._changed:
            with contextlib.suppress(OSError):
                write_text(self.path, canonical_json(self._entries))
                self._changed = False
