"""Groups of methods that cannot be told apart, as letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase


def letters(names: Sequence[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a compact letter display: names share a letter where they do not differ.

    The first of ``names`` has an a; after z come aa, bb, ... Of ``different``, pairs with a name
    that ``names`` lacks are ignored. Insertion and absorption, of Piepho (2004), "An algorithm for
    a letter-based representation of all-pairwise comparisons", Journal of Computational and
    Graphical Statistics 13(2).
    """
    groups = [frozenset(names)]
    for pair in different:
        if not set(pair) <= set(names):
            continue
        split = [
            part
            for group in groups
            for part in ([group - {name} for name in pair] if set(pair) <= group else [group])
        ]
        unique = list(dict.fromkeys(split))
        groups = [group for group in unique if not any(group < other for other in unique)]
    place = {name: number for number, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    named = [ascii_lowercase[n % 26] * (n // 26 + 1) for n in range(len(groups))]
    return {
        name: "".join(letter for letter, group in zip(named, groups, strict=True) if name in group)
        for name in names
    }
