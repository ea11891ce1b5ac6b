"""Whether hypotheses are hypotheses, and a reported uncertainty a variance."""

from __future__ import annotations

import numpy as np

from epistemic_calibration.predictions._arrays import finite_within, to_numbers
from epistemic_calibration.predictions._words import PredictionsError

# With fewer samples, chance alone may make a column look like labels.
_MIN_SAMPLES = 4
_MAX_VARIANCE = 0.25
_NO_VARIANCE = ". Give a variance, or leave it out, and it is that of the hypotheses"


def to_hypotheses(
    value: object, y_true: np.ndarray, columns: list[str] | None
) -> tuple[np.ndarray, list[str]]:
    """Return hypotheses of shape (n_samples, n_hypotheses) in [0, 1], and warnings."""
    array = to_numbers("hypotheses", value)
    n_samples = len(y_true)
    if array.ndim != 2 or len(array) != n_samples or array.size == 0:
        hint = ""
        if array.shape == (n_samples,):
            hint = ". For a single hypothesis, give numpy.reshape(hypotheses, (-1, 1))"
        elif array.ndim == 2 and array.shape[1] == n_samples:
            hint = ". It looks transposed: give numpy.transpose(hypotheses)"
        raise PredictionsError(
            f"hypotheses has shape {array.shape}, expected ({n_samples}, n_hypotheses){hint}"
        )
    array = finite_within("hypotheses", array, 0, 1, columns=columns)
    _refuse_class_probabilities(array, columns)
    return array, _refuse_labels(array, y_true, columns)


def _refuse_class_probabilities(array: np.ndarray, columns: list[str] | None) -> None:
    n_samples, n_columns = array.shape
    if n_samples < 2 or n_columns < 2:
        return
    array = array.astype(np.float64)
    excess = array.sum(axis=1) - 1
    spread = np.square(array - 1 / n_columns).sum()
    # Files round to two decimals; hypotheses that are all 1 / n_columns sum to 1 as well.
    rounded = np.abs(excess).max() <= 0.005 * n_columns
    if rounded and spread > 1e-9 * array.size and np.square(excess).sum() <= 0.01 * spread:
        where = f" (columns {columns[0]!r} to {columns[-1]!r})" if columns else ""
        raise PredictionsError(
            f"hypotheses has shape {array.shape}, and the values of each row sum to 1{where}: they "
            f"seem to be the probabilities of {n_columns} classes by one model, as predict_proba "
            f"gives, and not {n_columns} hypotheses of P(Y = 1 | x). Pass shape ({n_samples}, "
            f"n_hypotheses), the probability of the positive class by each member, sample or "
            f"pass: numpy.stack([m.predict_proba(X)[:, 1] for m in members], axis=1); or the "
            f"probabilities of all classes, shape (n_samples, n_hypotheses, n_classes)"
        )


def _refuse_labels(array: np.ndarray, y_true: np.ndarray, columns: list[str] | None) -> list[str]:
    n_samples, n_columns = array.shape
    if n_samples < _MIN_SAMPLES:
        return []
    hard = (array == 0) | (array == 1)
    only_labels = hard.all(axis=0)
    if not only_labels.any():
        return []
    leaks = only_labels & (
        (array == y_true[:, None]).all(axis=0) | (array == 1 - y_true[:, None]).all(axis=0)
    )
    if 0 < y_true.sum() < n_samples and leaks.any():
        message = f"{_column(columns, int(leaks.argmax()))} is y_true itself or its complement"
        # Trees grown to the end vote, and on an easy task all of them may be right.
        if only_labels.all() and n_columns > 2:
            return [f"hypotheses: {message}; all hypotheses are votes of 0 or 1"]
        raise PredictionsError(f"hypotheses: {message}, a leak of the labels: leave it out")
    if n_columns == 1:
        return ["hypotheses: the only one holds 0 and 1 alone, as predicted classes do"]
    others = hard[:, ~only_labels]
    if others.size and others.mean() < 0.5:
        raise PredictionsError(
            f"hypotheses: {_column(columns, int(only_labels.argmax()))} holds only 0 and 1, the "
            f"others hold probabilities: it seems to be labels, classes or folds. Leave it out"
        )
    return []


def _column(columns: list[str] | None, j: int) -> str:
    return f"column {columns[j]!r}" if columns else f"column {j}"


def check_prediction(
    prediction: np.ndarray, hypotheses: np.ndarray, y_true: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the reported prediction in [0, 1], and warnings."""
    prediction = finite_within("prediction", prediction, 0, 1)
    votes = np.isin(hypotheses, (0, 1)).mean() >= 0.5
    if len(prediction) >= _MIN_SAMPLES and not votes and np.isin(prediction, (0, 1)).all():
        what = "is y_true itself" if (prediction == y_true).all() else "holds only 0 and 1"
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
        + ". Scores of the prediction use `prediction`: check that both are P(Y = 1 | x), of the "
        "same samples in the same order"
    ]


def check_uncertainty(uncertainty: np.ndarray, hypotheses: np.ndarray) -> np.ndarray:
    """Return the reported uncertainty, a variance in [0, 1/4]."""
    uncertainty = finite_within("epistemic_uncertainty", uncertainty, 0, np.inf)
    largest = int(uncertainty.argmax())
    other = _other_quantity(uncertainty, hypotheses)
    if uncertainty[largest] > _MAX_VARIANCE + 1e-6 or other:
        raise PredictionsError(
            f"epistemic_uncertainty reaches {uncertainty[largest]:.4g} (sample {largest}): it must "
            f"be a variance of P(Y = 1 | x), in [0, 1/4]; an entropy or a standard deviation is "
            f"not one{other or _NO_VARIANCE}"
        )
    return np.minimum(uncertainty, _MAX_VARIANCE)


def _other_quantity(uncertainty: np.ndarray, hypotheses: np.ndarray) -> str:
    """Return the end of a sentence on what an uncertainty is, if it is no variance."""
    n_hypotheses = hypotheses.shape[1]
    hypotheses = hypotheses.astype(np.float64)
    variance = hypotheses.var(axis=1)
    told = variance > 1e-5
    if np.count_nonzero(told) < _MIN_SAMPLES:
        return ""
    total = _binary_entropy(hypotheses[told].mean(axis=1))
    mutual = total - _binary_entropy(hypotheses[told]).mean(axis=1)
    unbiased = n_hypotheses / (n_hypotheses - 1)
    deviation = (
        "a standard deviation: its square is the variance of the hypotheses. Give the square, or"
    )
    information = "a mutual information of the hypotheses. Give the variance, or"
    entropy = "the entropy of the mean of the hypotheses. Give the variance, or"
    candidates = [
        (deviation, np.sqrt(variance[told])),
        (deviation, np.sqrt(variance[told] * unbiased)),
        (information, mutual),
        (information, mutual / np.log(2)),
        (entropy, total),
        (entropy, total / np.log(2)),
    ]
    for words, values in candidates:
        if np.allclose(uncertainty[told], values, rtol=0.02, atol=0):
            return f". It looks like {words} leave it out"
    return ""


def _binary_entropy(p: np.ndarray) -> np.ndarray:
    from scipy.special import entr

    return entr(p) + entr(1 - p)


def repeated_samples(hypotheses: np.ndarray, y_true: np.ndarray) -> list[str]:
    """Return a warning if samples, of two classes or of several, seem to be in more than once.

    Equal rows mean that only of predictions that are continuous: those of trees, of counts of
    neighbours and of constants take few values, and all of them round or saturate near 0 and 1.
    A row with both labels does not count: a network without active units says the same of many.
    """
    n_samples = len(hypotheses)
    of_classes = hypotheses if hypotheses.ndim == 3 else None
    hypotheses = hypotheses.reshape(n_samples, -1)
    n_hypotheses = hypotheses.shape[1]
    # Adding 0 makes -0 and 0 the same bytes.
    rows = np.ascontiguousarray(hypotheses + 0.0, dtype=np.float32)
    bytes_of = rows.view(np.dtype((np.void, n_hypotheses * rows.itemsize)))[:, 0]
    _, first, row_of, counts = np.unique(
        bytes_of, return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == n_samples:
        return []
    all_copied = counts.min() > 1 and counts.min() == counts.max()
    if len(first) < 10 or (2 * len(first) < n_samples and not all_copied):
        return []
    distinct = hypotheses[first].astype(np.float64)
    columns = distinct[:, :: max(1, n_hypotheses // 8)]
    if np.median([len(np.unique(column)) for column in columns.T]) < 0.5 * len(first):
        return []
    mean = distinct.mean(axis=1)
    if of_classes is not None:
        mean = of_classes[first].mean(axis=1, dtype=np.float64).max(axis=1)
    one_label = np.zeros(len(first), dtype=bool)
    one_label[row_of] = True
    one_label[row_of[y_true != y_true[first][row_of]]] = False
    n_repeated = int(np.sum((counts - 1)[one_label & (mean > 0.01) & (mean < 0.99)]))
    # To four decimals, or to the 11 bits of half precision.
    bits = np.frexp(columns)[0] * 2**11
    rounded = np.abs(columns - np.round(columns, 4)).max() < 1e-7 or (bits == np.round(bits)).all()
    if n_repeated <= (0.05 * n_samples if rounded else 0) or (rounded and n_hypotheses == 1):
        return []
    return [
        f"{n_repeated} of {n_samples} samples repeat another one exactly, hypotheses and label. If "
        f"the same input is in more than once, intervals are too narrow: leave the copies out, or "
        f"give groups= (--groups in the command), with equal values for the same input"
    ]
