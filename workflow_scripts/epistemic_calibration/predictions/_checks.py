"""Arrays that have the right shape and range and cannot be meant: refused, or doubted aloud."""

from __future__ import annotations

import numpy as np

from epistemic_calibration.predictions._arrays import PredictionsError, within

# With fewer samples, chance alone may make a column look like labels.
_MIN_SAMPLES = 4
_MAX_VARIANCE = 0.25
#: What is doubted of hypotheses that are 0 or 1.
VOTES = (
    "All hypotheses are votes of 0 or 1: their variance is Δ(1 − Δ) by construction, the whole "
    "predictive variance and no epistemic uncertainty; give probabilities"
)


def refuse_class_probabilities(array: np.ndarray, columns: list[str] | None) -> None:
    """Refuse a matrix whose rows are the probabilities of all classes by one model."""
    n_samples, n_columns = array.shape
    if n_samples < 2 or n_columns < 2:
        return
    excess = array.sum(axis=1, dtype=np.float64) - 1
    # Files round to two decimals; hypotheses that are all 1 / n_columns sum to 1 as well.
    if np.abs(excess).max() > 0.005 * n_columns:
        return
    spread = np.square(array - 1 / n_columns).sum(dtype=np.float64)
    if spread > 1e-9 * array.size and np.square(excess).sum() <= 0.01 * spread:
        where = f" (columns {columns[0]!r} to {columns[-1]!r})" if columns else ""
        raise PredictionsError(
            f"hypotheses has shape {array.shape}, and the values of each row sum to 1{where}: they "
            f"seem to be the probabilities of {n_columns} classes by one model, as predict_proba "
            f"gives, and not {n_columns} hypotheses of P(Y = 1 | x). Pass shape ({n_samples}, "
            f"n_hypotheses), the probability of the positive class by each member, sample or "
            f"pass: numpy.stack([m.predict_proba(X)[:, 1] for m in members], axis=1); or the "
            f"probabilities of all classes, shape (n_samples, n_hypotheses, n_classes)"
        )


def leaks_and_votes(array: np.ndarray, y: np.ndarray, columns: list[str] | None) -> list[str]:
    """Refuse labels among the hypotheses, of two classes or more; return what is to be doubted.

    Of several classes a hypothesis is an indicator of a class or it is not.
    """
    n_samples, n_hypotheses = array.shape[:2]
    if n_samples < _MIN_SAMPLES or n_hypotheses == 0:
        return []
    equal = n_hypotheses > 1 and bool((array == array[:, :1]).all())
    doubts = ["All hypotheses of each input are equal, so that their spread is 0"] * equal
    # The first samples tell of nearly all columns that they hold more than 0 and 1.
    hard = (array[:_MIN_SAMPLES] == 0) | (array[:_MIN_SAMPLES] == 1)
    suspects = np.flatnonzero(hard.reshape(len(hard), n_hypotheses, -1).all(axis=(0, 2)))
    if not len(suspects):
        return doubts
    some = array[:, suspects]
    hard = ((some == 0) | (some == 1)).reshape(n_samples, len(suspects), -1).all(axis=2)
    only_labels = suspects[hard.all(axis=0)]
    if not len(only_labels):
        return doubts
    labels = array[:, only_labels]
    if array.ndim == 3:
        labels = labels.argmax(axis=2)
    leaks = (labels == y[:, None]).all(axis=0)
    if array.ndim == 2:
        leaks |= (labels == 1 - y[:, None]).all(axis=0)
    all_votes = len(only_labels) == n_hypotheses
    if y.min() < y.max() and leaks.any():
        where = f"{_column(columns, int(only_labels[leaks.argmax()]))} is y_true itself"
        # Trees grown to the end vote, and on an easy task all of them may be right.
        if not (all_votes and n_hypotheses > 2):
            raise PredictionsError(
                f"hypotheses: {where} or its complement, a leak of the labels: leave it out"
            )
        doubts.append(f"hypotheses: {where}")
    if all_votes:
        return [*doubts, VOTES]
    others = np.delete(array, only_labels, axis=1)
    if array.ndim == 2 and np.mean((others == 0) | (others == 1)) < 0.5:
        raise PredictionsError(
            f"hypotheses: {_column(columns, int(only_labels[0]))} holds only 0 and 1, the "
            f"others hold probabilities: it seems to be labels, classes or folds. Leave it out"
        )
    return doubts


def _column(columns: list[str] | None, j: int) -> str:
    return f"column {columns[j]!r}" if columns else f"column {j}"


def check_prediction(
    prediction: np.ndarray, hypotheses: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the reported prediction in [0, 1], and what is to be doubted."""
    prediction = within("prediction", prediction, 1)
    votes = np.isin(hypotheses, (0, 1)).mean() >= 0.5
    if len(prediction) >= _MIN_SAMPLES and not votes and np.isin(prediction, (0, 1)).all():
        what = "is y_true itself" if (prediction == y).all() else "holds only 0 and 1"
        raise PredictionsError(
            f"prediction {what}: give the probability of the positive class, or leave it out, and "
            f"the mean of the hypotheses is the prediction"
        )
    mean = hypotheses.mean(axis=1, dtype=np.float64)
    difference = np.abs(prediction - mean).mean()
    if difference <= 0.1:
        return prediction, []
    other = np.abs(1 - prediction - mean).mean() < 0.5 * difference
    return prediction, [
        f"prediction differs from the mean of the hypotheses by {difference:.2f} on average"
        + (", and is near 1 minus that mean, as the other class's would be" if other else "")
        + ": check that both are P(Y = 1 | x), of the same samples in the same order"
    ]


def check_uncertainty(uncertainty: np.ndarray, hypotheses: np.ndarray) -> np.ndarray:
    """Return the reported uncertainty, a variance in [0, 1/4]."""
    uncertainty = within("epistemic_uncertainty", uncertainty, np.inf)
    largest = int(uncertainty.argmax())
    looks = _other_quantity(uncertainty, hypotheses)
    if uncertainty[largest] > _MAX_VARIANCE + 1e-6 or looks:
        raise PredictionsError(
            f"epistemic_uncertainty reaches {uncertainty[largest]:.4g} (sample {largest}): it must "
            f"be a variance of P(Y = 1 | x), in [0, 1/4]; an entropy or a standard deviation is "
            f"not one{f'. It looks like {looks}' if looks else ''}. Give a variance, or leave it "
            f"out, and it is that of the hypotheses"
        )
    return np.minimum(uncertainty, _MAX_VARIANCE)


def _other_quantity(uncertainty: np.ndarray, hypotheses: np.ndarray) -> str:
    """Return what an uncertainty is, if it is something else of the hypotheses than a variance."""
    variance = hypotheses.var(axis=1, dtype=np.float64)
    told = variance > 1e-5
    if np.count_nonzero(told) < _MIN_SAMPLES:
        return ""
    rows, n_hypotheses = hypotheses[told].astype(np.float64), hypotheses.shape[1]
    total = _binary_entropy(rows.mean(axis=1))
    mutual = total - _binary_entropy(rows).mean(axis=1)
    deviation = np.sqrt(variance[told])
    candidates = {
        "a standard deviation, whose square is the variance of the hypotheses": (
            deviation,
            deviation * np.sqrt(n_hypotheses / (n_hypotheses - 1)),
        ),
        "a mutual information of the hypotheses": (mutual, mutual / np.log(2)),
        "the entropy of the mean of the hypotheses": (total, total / np.log(2)),
    }
    for words, quantities in candidates.items():
        if any(np.allclose(uncertainty[told], q, rtol=0.02, atol=0) for q in quantities):
            return words
    return ""


def _binary_entropy(p: np.ndarray) -> np.ndarray:
    from scipy.special import entr

    return entr(p) + entr(1 - p)


def doubts_of_equal_rows(hypotheses: np.ndarray, y: np.ndarray, *, grouped: bool) -> list[str]:
    """Return doubts of samples, of two classes or more, whose hypotheses are equal throughout."""
    n_samples = len(hypotheses)
    mean = hypotheses.mean(axis=1, dtype=np.float64)
    rows = hypotheses.reshape(n_samples, -1)
    # Adding 0 makes -0 and 0 the same bits; of 64 bits two rows have the same by chance never.
    bits = np.ascontiguousarray(rows + np.zeros((), rows.dtype)).view(f"u{rows.itemsize}")
    weights = np.random.default_rng(0).integers(0, 2**64, rows.shape[1], dtype=np.uint64) | 1
    keys = np.zeros(n_samples, dtype=np.uint64)
    for column, weight in zip(bits.T, weights, strict=True):
        keys += (column.astype(np.uint64) + 1) * weight
        keys ^= keys >> 29
    _, first, row_of, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == n_samples:
        return []
    one_label = np.ones(len(first), dtype=bool)
    one_label[row_of[y != y[first][row_of]]] = False
    if hypotheses.ndim == 3:
        right = mean[first, y[first]]
        middle = mean[first].max(axis=1)
    else:
        middle = mean[first]
        right = np.where(y[first] == 1, middle, 1 - middle)
    found = []
    # As likely as a coin that falls on one side 20 times.
    held_out = (
        one_label
        & (counts * np.log2(np.clip(right, 1e-300, 1)) < -20)
        & (right < 0.9)
        & (counts >= 20)
    )
    if held_out.any():
        found.append(
            f"{counts[held_out].sum()} samples have hypotheses equal to those of others, and all "
            f"of these the same label. If the predictions are cross-validated, they depend on the "
            f"label that was left out, and only those of one fitted model can be judged"
        )
    elif not grouped:
        found += _repeated(rows, first, counts, one_label & (middle > 0.01) & (middle < 0.99))
    return found


def _repeated(
    rows: np.ndarray, first: np.ndarray, counts: np.ndarray, countable: np.ndarray
) -> list[str]:
    """Return a doubt if samples seem to be in more than once.

    Equal rows mean that only of predictions that are continuous: those of trees, of counts of
    neighbours and of constants take few values, and all of them round or saturate near 0 and 1.
    A row with both labels does not count: a network without active units says the same of many.
    """
    n_samples, n_numbers = rows.shape
    all_copied = counts.min() > 1 and counts.min() == counts.max()
    if len(first) < 10 or (2 * len(first) < n_samples and not all_copied):
        return []
    columns = rows[first][:, :: max(1, n_numbers // 8)].astype(np.float64)
    if np.median([len(np.unique(column)) for column in columns.T]) < 0.5 * len(first):
        return []
    n_repeated = int(np.sum((counts - 1)[countable]))
    # To four decimals, or to the 11 bits of half precision.
    bits = np.frexp(columns)[0] * 2**11
    rounded = np.abs(columns - np.round(columns, 4)).max() < 1e-7 or (bits == np.round(bits)).all()
    # Of a single number in single precision some are equal by chance.
    by_chance = 0.05 * n_samples if rounded else 0.01 * n_samples * (n_numbers == 1)
    if n_repeated <= by_chance or (rounded and n_numbers == 1):
        return []
    return [
        f"{n_repeated} of {n_samples} samples repeat another one exactly, hypotheses and label. If "
        f"the same input is in more than once, intervals are too narrow: leave the copies out, or "
        f"give groups= (--groups in the command), with equal values for the same input"
    ]
