"""Which rule makes a file, by how its name ends.

Snakemake looks for the rule by what stands before the first wildcard of an output, which the files
of all tasks share: with thousands of tasks it would hold each file against each of them. It would
compile a regular expression for each of them, too; what stands between their first and their last
wildcard has the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from snakemake.io import regex_from_filepattern
from snakemake.output_index import OutputIndex

if TYPE_CHECKING:
    from snakemake.rules import Rule


class RuleIndex(OutputIndex):
    """Snakemake's index of rules by their outputs, asked by suffix first.

    Parameters
    ----------
    rules : iterable of Rule
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        # By the suffix of an output, which follows its last wildcard: its rule, its prefix, and
        # what stands between the two.
        self._by_suffix: dict[str, dict[tuple[Rule, str, str], None]] = {}
        for rule in rules:
            for product in rule.products():
                pattern, suffix = str(product.file), str(product.constant_suffix())
                # Without a wildcard, all of it is the suffix.
                prefix = "" if suffix == pattern else str(product.constant_prefix())
                middle = pattern[len(prefix) : len(pattern) - len(suffix)]
                self._by_suffix.setdefault(suffix, {})[rule, prefix, middle] = None
        self._lengths = {len(suffix) for suffix in self._by_suffix}

    def match(self, targetfile: str) -> set[Rule]:
        """Return the rules that make a file."""
        found = set()
        for length in self._lengths:
            end = len(targetfile) - length
            for rule, prefix, middle in self._by_suffix.get(targetfile[max(end, 0) :], ()):
                start = len(prefix)
                ends_match = start <= end and targetfile.startswith(prefix)
                if ends_match and _regex(middle).match(targetfile[start:end]):
                    found.add(rule)
        return found

    # No regular expression of a whole output is needed for it.
    match_producers = match


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(regex_from_filepattern(pattern))
