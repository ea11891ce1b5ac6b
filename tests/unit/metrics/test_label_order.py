import numpy as np
import pytest
from scipy.stats import spearmanr

from epistemic_calibration import metrics


def drawn(n=2000, k=20, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 2, n)
    return (rng.random(n) < p).astype(int), p, rng.binomial(k, p), k


def test_of_one_label_it_is_the_rank_correlation_of_scipy():
    _, p, positive, k = drawn()
    y = np.zeros(len(p), dtype=int)
    found = metrics.within_label_correlation(y, p, positive, k)
    assert found.estimate == pytest.approx(spearmanr(p, positive).statistic, abs=1e-12)


def test_the_label_itself_does_not_count():
    # Within a label nothing is known, though the prediction is that of the label.
    y, _, positive, k = drawn()
    found = metrics.within_label_correlation(y, np.where(y == 1, 0.9, 0.1), positive, k)
    assert found.estimate == 0


def test_counts_shuffled_within_labels_have_none():
    y, p, positive, k = drawn()
    rng = np.random.default_rng(1)
    z = []
    for _ in range(200):
        shuffled = positive.copy()
        for label in (0, 1):
            shuffled[y == label] = rng.permutation(positive[y == label])
        found = metrics.within_label_correlation(y, p, shuffled, k)
        z.append(found.estimate / found.standard_error)
    # Mean and variance of 200 standard normal values, within four standard errors.
    assert abs(np.mean(z)) < 4 / np.sqrt(200)
    assert abs(np.var(z) - 1) < 4 * np.sqrt(2 / 200)
    true = metrics.within_label_correlation(y, p, positive, k)
    assert true.ci_low > 0.5


def test_inputs_without_labels_are_left_out():
    y, p, positive, k = drawn(300)
    labels = np.full(300, k)
    labels[::3] = positive[::3] = 0
    kept = labels > 0
    found = metrics.within_label_correlation(y, p, positive, labels)
    alone = metrics.within_label_correlation(y[kept], p[kept], positive[kept], k)
    assert found == alone


def test_copies_are_no_more_certain_in_groups():
    y, p, positive, k = drawn(400)
    once = metrics.within_label_correlation(y, p, positive, k)
    twice = (np.repeat(values, 2) for values in (y, p, positive))
    copied = metrics.within_label_correlation(*twice, k, groups=np.repeat(np.arange(400), 2))
    assert copied.estimate == pytest.approx(once.estimate, abs=2e-3)
    assert copied.standard_error == pytest.approx(once.standard_error, rel=2e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": [[0, 1, 1]]}, r"y_true must have shape \(n_samples,\)"),
        ({"prediction": [0.1, 0.2, 1.5]}, "prediction"),
        ({"n_positive": [1, 2, 9]}, "at most n_labels"),
        ({"n_positive": [1, 2], "n_labels": [3, 3]}, "n_positive has 2 samples, y_true has 3"),
    ],
)
def test_wrong_arguments(change, message):
    given = {"y_true": [0, 1, 1], "prediction": [0.1, 0.5, 0.6], "n_positive": [1, 2, 3]}
    with pytest.raises(ValueError, match=message):
        metrics.within_label_correlation(**{**given, "n_labels": [3, 3, 3], **change})
