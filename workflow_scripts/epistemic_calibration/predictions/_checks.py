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
    spread = np.square(array - 1 / n_columns).sum(dtype=np.float64)
    # Files round to two decimals; hypotheses that are all 1 / n_columns sum to 1 as well.
    sums_are_1 = np.abs(excess).max() <= 0.005 * n_columns
    if sums_are_1 and spread > 1e-9 * array.size and np.square(excess).sum() <= 0.01 * spread:
        where = f" (columns {columns[0]!r} to {columns[-1]!r})" if columns else ""
        raise PredictionsError(
            f"hypotheses has shape {array.shape}, and the values of each row sum to 1{where}: they "
            f"seem to be the probabilities of {n_columns} classes by one model. Of an ensemble "
            f"give numpy.stack([m.predict_proba(X)[:, 1] for m in members], axis=1), or all "
            f"classes, shape (n_samples, n_hypotheses, n_classes)"
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
    # Mostly the first rows tell.
    for rows in (array[:_MIN_SAMPLES], array):
        hard = ((rows == 0) | (rows == 1)).reshape(len(rows), n_hypotheses, -1).all(axis=(0, 2))
        if not hard.any():
            return doubts
    labels = array[:, hard] if array.ndim == 2 else array[:, hard].argmax(axis=2)
    leaks = (labels == y[:, None]).all(axis=0)
    if array.ndim == 2:
        leaks |= (labels == 1 - y[:, None]).all(axis=0)
    called = [repr(name) for name in columns] if columns else list(range(n_hypotheses))
    if y.min() < y.max() and leaks.any():
        where = f"column {called[np.flatnonzero(hard)[leaks.argmax()]]} is y_true itself"
        # Trees grown to the end vote, and on an easy task all of them may be right.
        if not (hard.all() and n_hypotheses > 2):
            raise PredictionsError(
                f"hypotheses: {where} or its complement, a leak of the labels: leave it out"
            )
        doubts.append(f"hypotheses: {where}")
    if hard.all():
        return [*doubts, VOTES]
    if array.ndim == 2 and np.isin(array[:, ~hard], (0, 1)).mean() < 0.5:
        raise PredictionsError(
            f"hypotheses: column {called[hard.argmax()]} holds only 0 and 1, the others hold "
            f"probabilities: it seems to be labels, classes or folds. Leave it out"
        )
    return doubts


def check_prediction(
    prediction: np.ndarray, hypotheses: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the reported prediction in [0, 1], and what is to be doubted."""
    prediction = within("prediction", prediction, 1)
    votes = np.isin(hypotheses, (0, 1)).mean() >= 0.5
    if len(y) >= _MIN_SAMPLES and not votes and np.isin(prediction, (0, 1)).all():
        what = "is y_true itself" if (prediction == y).all() else "holds only 0 and 1"
        raise PredictionsError(
            f"prediction {what}: give the probability of the positive class, or leave it out, and "
            f"the mean of the hypotheses is the prediction"
        )
    difference = np.abs(prediction - hypotheses.mean(axis=1, dtype=np.float64)).mean()
    if difference <= 0.1:
        return prediction, []
    return prediction, [
        f"prediction differs from the mean of the hypotheses by {difference:.2f} on average: check "
        f"that both are P(Y = 1 | x), and not of the other class, of the same samples in the same "
        f"order"
    ]


def check_uncertainty(uncertainty: np.ndarray, hypotheses: np.ndarray) -> np.ndarray:
    """Return the reported uncertainty, a variance in [0, 1/4]."""
    uncertainty = within("epistemic_uncertainty", uncertainty, np.inf)
    looks = _other_quantity(uncertainty, hypotheses)
    if uncertainty.max() > _MAX_VARIANCE + 1e-6 or looks:
        raise PredictionsError(
            f"epistemic_uncertainty reaches {uncertainty.max():.4g} (sample "
            f"{uncertainty.argmax()}): it must be a variance of P(Y = 1 | x), in [0, 1/4]"
            f"{f'. It looks like {looks} of the hypotheses' if looks else ''}. Give a variance, or "
            f"leave it out, and it is that of the hypotheses"
        )
    return np.minimum(uncertainty, _MAX_VARIANCE)


def _other_quantity(uncertainty: np.ndarray, hypotheses: np.ndarray) -> str:
    """Return what an uncertainty is, if it is something else of the hypotheses than a variance."""
    from scipy.special import entr

    told = hypotheses.var(axis=1, dtype=np.float64) > 1e-5
    if np.count_nonzero(told) < _MIN_SAMPLES:
        return ""
    rows, n_hypotheses = hypotheses[told].astype(np.float64), hypotheses.shape[1]
    mean = rows.mean(axis=1)
    total = entr(mean) + entr(1 - mean)
    mutual = total - (entr(rows) + entr(1 - rows)).mean(axis=1)
    bits = 1 / np.log(2)
    candidates = {
        "the standard deviation": (rows.std(axis=1), np.sqrt(n_hypotheses / (n_hypotheses - 1))),
        "the mutual information": (mutual, bits),
        "the entropy of the mean": (total, bits),
    }
    for words, (quantity, factor) in candidates.items():
        for q in (quantity, factor * quantity):
            if np.allclose(uncertainty[told], q, rtol=0.02, atol=0):
                return words
    return ""


def doubts_of_equal_rows(hypotheses: np.ndarray, y: np.ndarray, *, grouped: bool) -> list[str]:
    """Return doubts of samples, of two classes or more, whose hypotheses are equal throughout."""
    n_samples = len(hypotheses)
    # Adding 0 makes -0 and 0 the same bytes.
    rows = np.ascontiguousarray(hypotheses.reshape(n_samples, -1)) + np.zeros((), hypotheses.dtype)
    _, first, row_of, counts = np.unique(
        np.array([hash(row.tobytes()) for row in rows]),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    if len(first) == n_samples:
        return []
    one_label = np.ones(len(first), dtype=bool)
    one_label[row_of[y != y[first][row_of]]] = False
    mean = hypotheses[first].mean(axis=1, dtype=np.float64)
    if hypotheses.ndim == 2:
        mean = np.stack([1 - mean, mean], axis=1)
    right, surest = mean[np.arange(len(first)), y[first]], mean.max(axis=1)
    # As likely as a coin that falls on one side 20 times.
    held_out = one_label & (counts >= 20) & (right < 0.9)
    held_out &= counts * np.log2(np.clip(right, 1e-300, 1)) < -20
    if held_out.any():
        return [
            f"{counts[held_out].sum()} samples have hypotheses equal to those of others, and all "
            f"of these the same label. If the predictions are cross-validated, they depend on the "
            f"label that was left out, and only those of one fitted model can be judged"
        ]
    return [] if grouped else _repeated(rows, first, counts, one_label & (surest < 0.99))


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
