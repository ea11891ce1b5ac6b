"""The contract of a method, checked fault by fault on small synthetic data."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.methods import Method, Predictions, load_method, user_file
from epistemic_calibration.methods._faults import told
from epistemic_calibration.methods.base import check_predictions

#: Batched products may be summed in another order, which training in float32 amplifies.
_ATOL = 1e-4


@dataclass(frozen=True)
class Outcome:
    """What must hold, and where it does not (or may not be meant), what to do about it."""

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
    """A check has found what may be meant."""


def check_file(path: str | Path, *, random_state: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of each check of the method that a file defines.

    ``path`` ends in ``::`` and the name of a class where the file defines several;
    ``random_state`` is the seed of the data. A fault that leaves nothing to check is the last.
    """
    file = user_file(str(path))
    try:
        method = load_method(str(path))
    except Exception as error:
        # Of a ValueError that no line of the file raises, the message says it all.
        fault = told(error, file).removeprefix("ValueError: ")
        yield Outcome("the file defines one method", fault)
        return
    yield Outcome("the file defines one method")
    yield from check_method(method, path=file, random_state=random_state)


def check_method(
    method: type[Method], *, path: str | Path | None = None, random_state: int = 0
) -> Iterator[Outcome]:
    """Yield the outcome of each check of a method, as `check_file` does; ``path`` is its file."""
    trial = _Trial(method, random_state)
    for check in _CHECKS:
        name, outcome = check.__doc__.removesuffix("."), {}
        try:
            with _global_states_kept():
                check(trial)
        except _Note as note:
            outcome["note"] = str(note)
        except _Fault as fault:
            outcome["fault"] = str(fault)
        except Exception as error:
            outcome["fault"] = told(error, path)
        yield Outcome(name, **outcome)
        # Without these there is nothing to compare.
        if "fault" in outcome and check in (_constructor, _well_formed, _seeded):
            return


class _Trial:
    """A method and data: two tasks, with both labels in the first ten points of each."""

    def __init__(self, method: type[Method], random_state: int) -> None:
        rng = np.random.default_rng(random_state)
        X = rng.standard_normal((80, 4))
        Y = X[:, :2] + 0.5 * rng.standard_normal((80, 2)) > 0.3
        Y[:2] = [[False, True], [True, False]]
        self.method = method
        self.X, self.Y = X.astype(np.float32), Y.astype(np.uint8)
        self.X_test = rng.standard_normal((30, 4)).astype(np.float32)

    def predictions(self, seed: int = 1, task: int = 0, n_train: int = 80) -> Predictions:
        y = self.Y[:n_train, task].copy()
        fitted = self.method(random_state=seed).fit(self.X[:n_train].copy(), y)
        return fitted.predict(self.X_test.copy())


def _same(a: Predictions, b: Predictions, *, atol: float = 0.0) -> bool:
    values = ([p.hypotheses, p.epistemic_uncertainty, p.prediction] for p in (a, b))
    return all(
        (left is None) == (right is None)
        and np.shape(left) == np.shape(right)
        and (left is None or np.allclose(left, right, rtol=0, atol=atol))
        for left, right in zip(*values, strict=True)
    )


def _check_valid(predictions: Predictions, n_samples: int = 30) -> None:
    try:
        check_predictions(predictions, n_samples=n_samples, task="")
    except RuntimeError as error:
        raise _Fault(
            f"{str(error).removeprefix('task : ')}; return one row for each input, one column for "
            f"each hypothesis, and P(Y = 1) in each"
        ) from None


def _constructor(trial: _Trial) -> None:
    """Parameters have defaults, random_state is one, and packages are installed."""
    if missing := trial.method.missing_packages():
        raise _Fault("; ".join(missing))
    try:
        made = trial.method(random_state=3)
    except TypeError as error:
        raise _Fault(
            f"{error}; every parameter needs a default, and random_state must be one of them"
        ) from None
    if getattr(made, "random_state", None) != 3:
        raise _Fault("random_state is not kept; set self.random_state = random_state")


def _well_formed(trial: _Trial) -> None:
    """Hypotheses have the right shape and range."""
    fitted = trial.method(random_state=1).fit(trial.X.copy(), trial.Y[:, 0].copy())
    if not isinstance(fitted, Method):
        raise _Fault(f"fit returns {type(fitted).__name__}; it must return self")
    _check_valid(fitted.predict(trial.X_test.copy()))
    _check_valid(fitted.predict(trial.X_test[:1].copy()), n_samples=1)


def _seeded(trial: _Trial) -> None:
    """One random_state gives the same hypotheses."""
    if not _same(trial.predictions(), trial.predictions()):
        raise _Fault(
            "two fits with one random_state differ; draw everything from "
            "np.random.default_rng(self.random_state), made in fit, and hand random_state to "
            "every estimator"
        )


def _other_seed(trial: _Trial) -> None:
    """Another random_state gives others."""
    if _same(trial.predictions(), trial.predictions(seed=2)):
        raise _Note("it does not; right if nothing is drawn, else use self.random_state")


def _global_states() -> dict[str, Any]:
    states = {"numpy.random": np.random.get_state(), "random": random.getstate()}  # noqa: NPY002
    if "torch" in sys.modules:
        states["torch"] = sys.modules["torch"].random.get_rng_state()
    return states


@contextlib.contextmanager
def _global_states_kept() -> Iterator[None]:
    """Put the global generators back: neither the next check nor the caller sees the method's."""
    states = _global_states()
    try:
        yield
    finally:
        np.random.set_state(states["numpy.random"])  # noqa: NPY002
        random.setstate(states["random"])
        if "torch" in states:
            sys.modules["torch"].random.set_rng_state(states["torch"])


def _comparable(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(map(_comparable, state))
    return np.asarray(state).tobytes()


def _global_state(trial: _Trial) -> None:
    """No global random state is used."""
    # States that no method's own seeds would give.
    np.random.seed(918_273_645)  # noqa: NPY002
    random.seed(918_273_645)
    if "torch" in sys.modules:
        sys.modules["torch"].random.default_generator.manual_seed(918_273_645)
    before = _global_states()
    trial.predictions()
    after = _global_states()
    if changed := [k for k, state in before.items() if _comparable(state) != _comparable(after[k])]:
        raise _Fault(
            f"the global state of {' and '.join(changed)} is used or changed; draw from a "
            f"generator of your own, np.random.default_rng(self.random_state)"
        )


def _inputs_kept(trial: _Trial) -> None:
    """Inputs are not changed, and may be read-only."""
    given = [trial.X.copy(), trial.Y[:, 0].copy(), trial.X_test.copy()]
    for array in given:
        array.setflags(write=False)
    trial.method(random_state=1).fit(*given[:2]).predict(given[2])
    # A tensor that shares its memory can be written to.
    for array, kept in zip(given, (trial.X, trial.Y[:, 0], trial.X_test), strict=True):
        if not np.array_equal(array, kept):
            raise _Fault("an input is changed in place, which spoils the tasks after it")


def _refit(trial: _Trial) -> None:
    """A fit does not depend on an earlier one."""
    method = trial.method(random_state=1)
    method.fit(trial.X[:40].copy(), trial.Y[:40, 0].copy()).predict(trial.X_test.copy())
    again = method.fit(trial.X.copy(), trial.Y[:, 1].copy()).predict(trial.X_test.copy())
    if not _same(trial.predictions(task=1), again):
        raise _Fault(
            "a second fit is not as a first one; make generators and everything learnt in fit, "
            "not in __init__, and keep nothing on the class"
        )


def _tasks(trial: _Trial) -> None:
    """A task does not depend on others."""

    def run(columns: Sequence[int]) -> list[Predictions]:
        arrays = trial.X.copy(), trial.Y[:, columns].copy(), trial.X_test.copy()
        parameters = trial.method.default_parameters()
        seeds = [11 + column for column in columns]
        return list(
            trial.method.fit_predict_tasks(*arrays, parameters=parameters, random_states=seeds)
        )

    together, apart = run([0, 1]), [*run([0]), *run([1])]
    if len(together) != 2:
        raise _Fault(f"fit_predict_tasks yields {len(together)} predictions for 2 tasks")
    if not all(_same(a, b, atol=_ATOL) for a, b in zip(together, apart, strict=True)):
        raise _Fault("a task depends on those it is fitted with; use its own labels and seed only")


def _small_data(trial: _Trial) -> None:
    """Ten training points suffice, and constant features are harmless."""
    _check_valid(trial.predictions(n_train=10))
    trial.X[:, 0] = trial.X_test[:, 0] = 0
    _check_valid(trial.predictions())


_CHECKS = (
    *(_constructor, _well_formed, _seeded, _other_seed, _global_state),
    *(_inputs_kept, _refit, _tasks, _small_data),
)
