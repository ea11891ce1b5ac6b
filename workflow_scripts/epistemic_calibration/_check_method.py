"""The contract of a method, checked fault by fault on small synthetic data."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.methods import Method, Predictions, load_method, user_file
from epistemic_calibration.methods._faults import told
from epistemic_calibration.methods.base import check_predictions

_N_TRAIN, _N_TEST, _N_FEATURES = 80, 30, 4
#: Batched products may be summed in another order, which training in float32 amplifies.
_ATOL = 1e-4


@dataclass(frozen=True)
class Outcome:
    """What one check found.

    Attributes
    ----------
    check : str
        What must hold.
    fault : str or None
        What does not, and what to do about it.
    note : str or None
        What is worth knowing and no fault.
    """

    check: str
    fault: str | None = None
    note: str | None = None

    def __str__(self) -> str:
        if self.fault is not None:
            return f"FAULT  {self.check}: {self.fault}"
        return f"note   {self.check}: {self.note}" if self.note else f"OK     {self.check}"


class _Fault(Exception):
    """A check has failed; the message says what to do."""


class _Note(Exception):
    """A check has found what is no fault."""


@dataclass(frozen=True)
class _Data:
    X: np.ndarray
    Y: np.ndarray  # two tasks, both labels in the first ten of each
    X_test: np.ndarray

    @classmethod
    def draw(cls, random_state: int) -> _Data:
        rng = np.random.default_rng(random_state)
        X = rng.standard_normal((_N_TRAIN, _N_FEATURES))
        Y = X[:, :2] + 0.5 * rng.standard_normal((_N_TRAIN, 2)) > 0.3
        Y[:2] = [[False, True], [True, False]]
        X_test = rng.standard_normal((_N_TEST, _N_FEATURES))
        return cls(X.astype(np.float32), Y.astype(np.uint8), X_test.astype(np.float32))

    def copy(self) -> _Data:
        return _Data(self.X.copy(), self.Y.copy(), self.X_test.copy())


def check_file(path: str | Path, *, random_state: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of each check of the method that a file defines.

    Parameters
    ----------
    path : path of a ``.py`` file
        With ``::`` and the name of a class where it defines several.
    random_state : int, default 0
        Seed of the data.

    Yields
    ------
    Outcome
        Where a fault leaves nothing to check, it is the last.
    """
    try:
        method = load_method(str(path))
    except Exception as error:
        # Of a ValueError that no line of the file raises, the message says it all.
        fault = told(error, user_file(str(path)))
        yield Outcome("the file defines one method", fault.removeprefix("ValueError: "))
        return
    yield Outcome("the file defines one method")
    yield from check_method(method, path=user_file(str(path)), random_state=random_state)


def check_method(
    method: type[Method], *, path: str | Path | None = None, random_state: int = 0
) -> Iterator[Outcome]:
    """Yield the outcome of each check of a method.

    Parameters
    ----------
    method : subclass of Method
    path : path, optional
        Its file, whose lines are named where they raise.
    random_state : int, default 0
        Seed of the data.

    Yields
    ------
    Outcome
        Where a fault leaves nothing to check, it is the last.

    Examples
    --------
    >>> from epistemic_calibration.methods import load_method
    >>> outcomes = list(check_method(load_method("eknn")))
    >>> print(outcomes[1])
    OK     hypotheses have the right shape, range and type
    >>> any(outcome.fault for outcome in outcomes)
    False
    """
    data = _Data.draw(random_state)
    failed = set()
    for name, check in _CHECKS.items():
        # What draws without a seed differs from fit to fit whatever else it does.
        if check in (_other_seed, _refit, _tasks) and _seeded in failed:
            continue
        outcome = _run(name, check, method, data.copy(), path)
        if outcome is None:
            continue
        yield outcome
        if outcome.fault is not None:
            failed.add(check)
            if check in (_packages, _constructor, _well_formed):
                return


def _run(
    name: str,
    check: Callable[[type[Method], _Data], bool | None],
    method: type[Method],
    data: _Data,
    path: str | Path | None,
) -> Outcome | None:
    # Whatever a method does to the global generators, the next check starts from the same.
    states = _random_states()
    try:
        skipped = check(method, data) is False
    except _Fault as fault:
        return Outcome(name, str(fault))
    except _Note as note:
        return Outcome(name, note=str(note))
    except Exception as error:
        return Outcome(name, told(error, path))
    finally:
        _restore(states)
    return None if skipped else Outcome(name)


# --- What the checks do with a method


def _fit(method: type[Method], X: np.ndarray, y: np.ndarray, **parameters: Any) -> Method:
    return method(**{"random_state": 1, **parameters}).fit(X, y)


def _valid(predictions: Predictions, n_samples: int) -> Predictions:
    try:
        check_predictions(predictions, n_samples=n_samples, task="")
    except RuntimeError as error:
        raise _Fault(
            f"{str(error).removeprefix('task : ')}; return one row for each input, one column for "
            f"each hypothesis, and P(Y = 1) in each"
        ) from None
    for name in ("hypotheses", "epistemic_uncertainty", "prediction"):
        value = getattr(predictions, name)
        if value is not None and not np.issubdtype(np.asarray(value).dtype, np.floating):
            raise _Fault(f"{name} has dtype {np.asarray(value).dtype}; return floating point")
    return predictions


def _same(a: Predictions, b: Predictions, *, atol: float = 0.0) -> bool:
    for name in ("hypotheses", "epistemic_uncertainty", "prediction"):
        left, right = getattr(a, name), getattr(b, name)
        if (left is None) != (right is None):
            return False
        if left is not None and (
            np.shape(left) != np.shape(right) or not np.allclose(left, right, rtol=0, atol=atol)
        ):
            return False
    return True


def _random_states() -> dict[str, Any]:
    states = {"numpy.random": np.random.get_state()}  # noqa: NPY002
    states["random"] = random.getstate()
    if "torch" in sys.modules:
        states["torch"] = sys.modules["torch"].random.get_rng_state()
    return states


def _restore(states: dict[str, Any]) -> None:
    np.random.set_state(states["numpy.random"])  # noqa: NPY002
    random.setstate(states["random"])
    if "torch" in states:
        sys.modules["torch"].random.set_rng_state(states["torch"])


def _reseed() -> None:
    """Give the global generators states that no method's own seeds would."""
    np.random.seed(918_273_645)  # noqa: NPY002
    random.seed(918_273_645)
    if "torch" in sys.modules:
        sys.modules["torch"].random.default_generator.manual_seed(918_273_645)


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in before if _comparable(before[name]) != _comparable(after[name])]


def _comparable(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(_comparable(part) for part in state)
    return np.asarray(state).tobytes()


# --- The checks: each raises _Fault or _Note, or returns False where there is nothing to check


def _packages(method: type[Method], data: _Data) -> bool | None:
    if not method.required_packages:
        return False
    missing = method.missing_packages()
    if missing:
        raise _Fault("; ".join(missing))
    return None


def _constructor(method: type[Method], data: _Data) -> None:
    try:
        made = method(random_state=3)
    except TypeError as error:
        raise _Fault(
            f"{error}; every parameter needs a default, and random_state must be one of them"
        ) from None
    if getattr(made, "random_state", None) != 3:
        raise _Fault("random_state is not kept; set self.random_state = random_state")
    lost = [
        name
        for name, value in method.default_parameters().items()
        if not hasattr(made, name) or repr(getattr(made, name)) != repr(value)
    ]
    if lost and method.parameter_fields() is not None:
        raise _Fault(f"{', '.join(lost)} changed by __init__; keep parameters as they are given")


def _well_formed(method: type[Method], data: _Data) -> None:
    fitted = method(random_state=1).fit(data.X, data.Y[:, 0])
    if not isinstance(fitted, Method):
        raise _Fault(f"fit returns {type(fitted).__name__}; it must return self")
    hypotheses = np.asarray(_valid(fitted.predict(data.X_test), _N_TEST).hypotheses)
    if len(data.X_test) > 1 and np.ptp(hypotheses) == 0:
        raise _Note("all hypotheses at all inputs are the same number")


def _single_input(method: type[Method], data: _Data) -> None:
    fitted = _fit(method, data.X, data.Y[:, 0])
    _valid(fitted.predict(data.X_test[:1]), 1)


def _seeded(method: type[Method], data: _Data) -> None:
    first, second = (
        _fit(method, data.X.copy(), data.Y[:, 0].copy()).predict(data.X_test.copy())
        for _ in range(2)
    )
    if not _same(first, second):
        raise _Fault(
            "two fits with one random_state differ; draw everything from "
            "np.random.default_rng(self.random_state), made in fit, and hand random_state to "
            "every estimator"
        )


def _other_seed(method: type[Method], data: _Data) -> None:
    first, second = (
        _fit(method, data.X.copy(), data.Y[:, 0].copy(), random_state=seed).predict(
            data.X_test.copy()
        )
        for seed in (1, 2)
    )
    if _same(first, second):
        raise _Note(
            "it is the same under another random_state; right if it draws nothing, else use "
            "self.random_state"
        )


def _global_state(method: type[Method], data: _Data) -> None:
    # Libraries that are imported now may draw.
    _fit(method, data.X.copy(), data.Y[:, 0].copy()).predict(data.X_test.copy())
    _reseed()
    before = _random_states()
    _fit(method, data.X, data.Y[:, 0]).predict(data.X_test)
    changed = _changed(before, _random_states())
    if changed:
        raise _Fault(
            f"the global state of {' and '.join(changed)} is used or changed; draw from a "
            f"generator of your own, np.random.default_rng(self.random_state)"
        )


def _inputs_kept(method: type[Method], data: _Data) -> None:
    given = data.copy()
    y = given.Y[:, 0].copy()
    fitted = _fit(method, given.X, y)
    fitted.predict(given.X_test)
    for name, now, before in (
        ("X of fit", given.X, data.X),
        ("y of fit", y, data.Y[:, 0]),
        ("X of sample_hypotheses", given.X_test, data.X_test),
    ):
        if not np.array_equal(now, before):
            raise _Fault(
                f"{name} is changed in place, which spoils the tasks after it; work on a copy "
                f"(X = X - mean, not X -= mean)"
            )


def _read_only(method: type[Method], data: _Data) -> None:
    for array in (data.X, data.Y, data.X_test):
        array.setflags(write=False)
    _valid(_fit(method, data.X, data.Y[:, 0]).predict(data.X_test), _N_TEST)


def _refit(method: type[Method], data: _Data) -> None:
    once = _fit(method, data.X.copy(), data.Y[:, 1].copy()).predict(data.X_test.copy())
    other = _fit(method, data.X[:40].copy(), data.Y[:40, 0].copy())
    other.predict(data.X_test.copy())
    again = other.fit(data.X.copy(), data.Y[:, 1].copy()).predict(data.X_test.copy())
    if not _same(once, again):
        raise _Fault(
            "a second fit is not as a first one; make generators and everything learnt in fit, "
            "not in __init__, and keep nothing on the class"
        )


def _tasks(method: type[Method], data: _Data) -> None:
    def run(columns: list[int]) -> list[Predictions]:
        return list(
            method.fit_predict_tasks(
                data.X.copy(),
                data.Y[:, columns].copy(),
                data.X_test.copy(),
                parameters=method.default_parameters(),
                random_states=[11 + column for column in columns],
            )
        )

    together = run([0, 1])
    if len(together) != 2:
        raise _Fault(f"fit_predict_tasks yields {len(together)} predictions for 2 tasks")
    for column in (0, 1):
        if not _same(together[column], run([column])[0], atol=_ATOL):
            raise _Fault(
                "a task depends on those it is fitted with; use its own labels and seed only"
            )


def _ten_points(method: type[Method], data: _Data) -> None:
    fitted = _fit(method, data.X[:10], data.Y[:10, 0])
    _valid(fitted.predict(data.X_test), _N_TEST)


def _constant_features(method: type[Method], data: _Data) -> None:
    for n_constant in (1, _N_FEATURES):
        data.X[:, :n_constant] = 0
        data.X_test[:, :n_constant] = 0
        _valid(_fit(method, data.X, data.Y[:, 0]).predict(data.X_test), _N_TEST)


def _one_class(method: type[Method], data: _Data) -> None:
    for label in (0, 1):
        y = np.full(_N_TRAIN, label, dtype=np.uint8)
        try:
            predictions = _fit(method, data.X, y).predict(data.X_test)
            _valid(predictions, _N_TEST)
        except Exception as error:
            raise _Note(
                f"where all labels are {label}: {type(error).__name__}: "
                f"{' '.join(str(error).split())}. Tasks of the benchmark have both labels; other "
                f"data may not"
            ) from None


def _n_hypotheses(method: type[Method], data: _Data) -> bool | None:
    if "n_hypotheses" not in method.default_parameters():
        return False
    predictions = _fit(method, data.X, data.Y[:, 0], n_hypotheses=7).predict(data.X_test)
    found = np.shape(predictions.hypotheses)[1]
    if found != 7:
        raise _Fault(f"n_hypotheses=7 gives {found} columns; it must give 7")
    return None


def _diagnostics(method: type[Method], data: _Data) -> None:
    fitted = _fit(method, data.X, data.Y[:, 0])
    fitted.predict(data.X_test)
    for name, value in fitted.diagnostics().items():
        if not isinstance(name, str) or not np.isscalar(value) or not np.isfinite(value):
            raise _Fault(f"diagnostics has {name!r}: {value!r}; it takes names and finite numbers")


_CHECKS: dict[str, Callable[[type[Method], _Data], bool | None]] = {
    "the packages that it needs are installed": _packages,
    "parameters have defaults, and random_state is one": _constructor,
    "hypotheses have the right shape, range and type": _well_formed,
    "a single input can be predicted": _single_input,
    "one random_state gives the same hypotheses": _seeded,
    "another random_state gives others": _other_seed,
    "no global random state is used": _global_state,
    "inputs are not changed": _inputs_kept,
    "read-only inputs are accepted": _read_only,
    "a fit does not depend on an earlier one": _refit,
    "a task does not depend on others": _tasks,
    "n_hypotheses is kept": _n_hypotheses,
    "ten training points suffice": _ten_points,
    "constant features are harmless": _constant_features,
    "labels of one class only": _one_class,
    "diagnostics are finite numbers": _diagnostics,
}
