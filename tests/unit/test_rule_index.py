"""The index of rules finds what Snakemake's own does."""

import pytest
from snakemake.io import IOFile
from snakemake.output_index import OutputIndex

from epistemic_calibration.workflow.rule_index import RuleIndex, _regex


class Rule:
    """As much of a rule as an index asks for."""

    def __init__(self, *patterns):
        self.patterns = patterns

    def products(self):
        return [IOFile(pattern) for pattern in self.patterns]

    def is_producer(self, file):
        return any(product.match(file) for product in self.products())


RULES = [
    Rule("results/a/seed{seed}/hypotheses/{method}/0.npz"),
    Rule(*(f"results/a/seed{{seed}}/hypotheses/{{method}}/{n}.npz" for n in ("1", "10", "x.y"))),
    Rule("results/b/seed{seed}/hypotheses/{method}/{task,2|3}.npz"),
    Rule("results/{dataset}/labels.npz", "results/{dataset}/images.npz"),
    Rule("results/{dataset}/seed{seed}/scores/{method}.csv"),
    Rule("results/report.html"),
    Rule("results/{page}/report.html"),
    Rule("{anything}"),
    Rule("{folder}/x"),
    Rule("results/aba{middle,.*}ab"),
]
FILES = [
    "results/a/seed0/hypotheses/eknn/0.npz",
    "results/a/seed0/hypotheses/eknn/10.npz",
    "results/a/seed0/hypotheses/eknn/x.y.npz",
    "results/a/seed0/hypotheses/eknn/2.npz",
    "results/b/seed12/hypotheses/eknn/2.npz",
    "results/b/seed12/hypotheses/eknn/4.npz",
    "results/a/labels.npz",
    "results/a/seed0/scores/eknn.csv",
    "results/abaab",
    "results/abab",
    "results/report.html",
    "results/a/report.html",
    "x",
    "a/x",
    "0.npz",
]


@pytest.mark.parametrize("file", FILES)
def test_the_rules_found_are_those_that_snakemake_finds(file):
    expected = {rule for rule in RULES if rule.is_producer(file)}
    assert expected
    for index in (RuleIndex(RULES), OutputIndex(RULES)):
        assert index.match_producers(file) == expected


def test_of_the_rules_of_many_tasks_only_one_is_looked_at():
    rules = [Rule(f"results/a/seed{{seed}}/{{method}}/{n}.npz") for n in range(100)]
    file = "results/a/seed0/eknn/17.npz"
    compiled = _regex.cache_info().currsize
    assert RuleIndex(rules).match_producers(file) == {rules[17]}
    assert RuleIndex(rules[:17]).match_producers(file) == set()
    # Outputs that differ by how they end have one regular expression.
    assert _regex.cache_info().currsize <= compiled + 1
