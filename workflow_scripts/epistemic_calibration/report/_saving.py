"""Figures as files."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from epistemic_calibration.files import atomic_path, write_text
from epistemic_calibration.report.style import rc_params

# Neither time nor version: the same figure of the same results gives the same bytes.
_METADATA = {
    ".png": {"Software": None},
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def save_figure(figure: Figure, stem: str | Path, *, caption: str | None = None) -> list[Path]:
    """Write ``STEM.png`` (200 dpi) and ``STEM.pdf`` (fonts embedded); return their paths.

    With a caption, ``STEM.txt`` holds it. The same figure gives the same bytes each time.
    """
    paths = [Path(f"{stem}{suffix}") for suffix in _METADATA]
    with mpl.rc_context(rc_params()):
        for path in paths:
            with atomic_path(path) as temporary:
                figure.savefig(temporary, metadata=_METADATA[path.suffix])
            # Laying out takes as long as drawing, and both files should agree.
            figure.set_layout_engine("none")
    if caption is not None:
        paths.append(Path(f"{stem}.txt"))
        write_text(paths[-1], caption + "\n")
    return paths
