"""Which rule makes a file, by how its name ends.

Snakemake looks for the rule by what stands before the first wildcard of an output, which the files
of all tasks share: with thousands of tasks it would hold each file against each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from snakemake.common.prefix_lookup import PrefixLookup
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
        self._by_suffix = PrefixLookup(
            [
                (_reversed(product.constant_suffix()), (rule, str(product.constant_prefix())))
                for rule in rules
                for product in rule.products()
            ]
        )

    def match(self, targetfile: str) -> set[Rule]:
        """Return the rules with an output that begins and ends as a file does."""
        found = self._by_suffix.match_iter(_reversed(targetfile))
        return {rule for _, (rule, prefix) in found if targetfile.startswith(prefix)}


def _reversed(text: object) -> str:
    return str(text)[::-1]
