"""Seeds that depend on what a job computes, never on when or where it runs."""

import hashlib


def derive_seed(*parts: int | str) -> int:
    """Return a seed in [0, 2**32) from the SHA-256 of ``parts``.

    Parameters
    ----------
    *parts
        What the random numbers are for, from the general to the particular,
        e.g. ``(root_seed, dataset, method, task, member)``. Strings must not
        contain NUL, which separates the parts.

    Raises
    ------
    ValueError
        If ``parts`` is empty or a part contains NUL.
    """
    if not parts:
        raise ValueError("derive_seed needs at least one part")
    texts = [str(part) for part in parts]
    if any("\0" in text for text in texts):
        raise ValueError(f"a part of a seed contains NUL: {parts!r}")
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return int.from_bytes(digest[:4], "big")
