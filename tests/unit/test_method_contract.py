"""What every method keeps, found by the registry: a new file is covered by being there."""

import functools
import inspect
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pydantic
import pytest
import torch
from shipped import python

from epistemic_calibration.latents._neighbors import nearest_neighbors
from epistemic_calibration.methods import available_methods, load_method
from epistemic_calibration.methods.base import Predictions

METHODS = available_methods()
N_TRAIN, N_TEST, N_FEATURES = 60, 25, 3
RNG = np.random.default_rng(0)
X_TRAIN = RNG.standard_normal((N_TRAIN, N_FEATURES)).astype(np.float32)
Y_TRAIN = np.stack([X_TRAIN[:, 0] > 0.3, X_TRAIN[:, 1] > 0], axis=1).astype(np.uint8)
X_TEST = RNG.standard_normal((N_TEST, N_FEATURES)).astype(np.float32)


@pytest.fixture(params=METHODS)
def method_class(request):
    return load_method(request.param)


@pytest.fixture
def cheap(method_class, few):
    """The class of a method, with parameters that make it cheap."""
    return functools.partial(method_class, **few(method_class))


def is_valid(predictions, n_samples):
    assert isinstance(predictions, Predictions)
    hypotheses = predictions.hypotheses
    assert hypotheses.ndim == 2 and len(hypotheses) == n_samples and hypotheses.shape[1] >= 1
    arrays = [hypotheses]
    for own in (predictions.epistemic_uncertainty, predictions.prediction):
        if own is not None:
            assert own.shape == (n_samples,)
            arrays.append(own)
    for array in arrays:
        assert np.issubdtype(array.dtype, np.floating)
        # NaN fails both comparisons.
        assert np.all((array >= 0) & (array <= 1))
    return True


def assert_equal_predictions(a, b, *, atol=0.0):
    for name in ("hypotheses", "epistemic_uncertainty", "prediction"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        if left is not None:
            np.testing.assert_allclose(left, right, rtol=0, atol=atol)


def test_class_states_what_it_is(method_class):
    assert isinstance(method_class.label, str) and method_class.label
    assert method_class.family in ("active", "illustrative", "control")
    assert method_class.__doc__


def test_labels_are_unique():
    labels = [load_method(name).label for name in METHODS]
    assert len(set(labels)) == len(labels)


def test_fields_and_parameters_are_in_step(method_class):
    signature = inspect.signature(method_class.__init__).parameters
    assert all(p.kind is p.KEYWORD_ONLY for name, p in signature.items() if name != "self")
    assert "random_state" in signature
    fields, defaults = method_class.parameter_fields(), method_class.default_parameters()
    assert set(fields) == set(defaults)
    assert set(signature) == {"self", "random_state", *defaults}
    hints = get_type_hints(method_class, include_extras=True)
    for name, field in fields.items():
        bounds = {key: bound for key, bound in field.metadata.items() if key != "description"}
        assert field.metadata["description"]
        checked = pydantic.TypeAdapter(Annotated[hints[name], pydantic.Field(**bounds)])
        assert checked.validate_python(defaults[name]) == defaults[name]
        outside = {"ge": -1, "gt": 0, "le": 1, "lt": 0}
        wrong = [bounds[key] + step for key, step in outside.items() if key in bounds]
        for value in [{"not": "a value"}, *wrong, *([[]] if "min_length" in bounds else [])]:
            with pytest.raises(pydantic.ValidationError):
                checked.validate_python(value)


def test_parameters_are_kept(method_class):
    method = method_class(random_state=7)
    for name, default in method_class.default_parameters().items():
        assert getattr(method, name) == default
    assert method.random_state == 7


@pytest.mark.parametrize("name", METHODS)
def test_reading_the_class_imports_nothing_heavy(name):
    code = (
        "import sys; from epistemic_calibration.methods import load_method; "
        f"load_method({name!r}).default_parameters(); "
        "print(*sorted({'torch', 'sklearn', 'scipy', 'laplace', 'numba'} & set(sys.modules)))"
    )
    assert python("-c", code).stdout.split() == []


@pytest.mark.fault
def test_a_misspelt_choice_is_named(method_class):
    hints = get_type_hints(method_class)
    for name in method_class.parameter_fields():
        if get_origin(hints[name]) is Literal:
            choices = " or ".join(map(repr, get_args(hints[name])))
            with pytest.raises(ValueError, match=f"{name}='paer' must be {choices}"):
                method_class(**{name: "paer"})


def test_same_seed_same_predictions_and_no_global_state(cheap):
    wide = np.repeat(X_TRAIN, 2, axis=1)
    wide.setflags(write=False)
    strided = wide[:, ::2]
    assert not strided.flags.c_contiguous and not strided.flags.writeable
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first, second, of_strided = (
        cheap(random_state=1).fit(X, Y_TRAIN[:, 0]).predict(X_TEST)
        for X in (X_TRAIN, X_TRAIN.copy(), strided)
    )
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
    assert is_valid(first, N_TEST)
    assert all(np.isfinite(value) for value in first.diagnostics.values())
    assert_equal_predictions(first, second)
    assert_equal_predictions(first, of_strided, atol=1e-4)
    other = cheap(random_state=2).fit(X_TRAIN, Y_TRAIN[:, 0]).predict(X_TEST)
    nothing_is_drawn = cheap.func.label == "Base rate"
    assert np.array_equal(other.hypotheses, first.hypotheses) == nothing_is_drawn


def test_a_task_depends_neither_on_the_others_nor_on_given_neighbours(cheap):

    def run(columns, **given):
        return list(
            cheap.func.fit_predict_tasks(
                X_TRAIN,
                Y_TRAIN[:, columns],
                X_TEST,
                parameters=cheap.func.default_parameters() | cheap.keywords,
                random_states=[11 + c for c in columns],
                **given,
            )
        )

    together = run([0, 1])
    assert len(together) == 2
    by_itself = [run([column])[0] for column in (0, 1)]
    # Batched products may be summed in another order, which training in float32 amplifies.
    for column in (0, 1):
        assert_equal_predictions(together[column], by_itself[column], atol=1e-4)
        alone = cheap(random_state=11 + column).fit(X_TRAIN, Y_TRAIN[:, column])
        assert_equal_predictions(together[column], alone.predict(X_TEST), atol=1e-4)
    (given,) = run([0], neighbors=nearest_neighbors(X_TRAIN, X_TEST, 20))
    assert_equal_predictions(given, by_itself[0])


def test_ten_training_points_suffice(method_class):
    # The first ten have both labels.
    assert 0 < Y_TRAIN[:10, 1].sum() < 10
    method = method_class(random_state=1).fit(X_TRAIN[:10], Y_TRAIN[:10, 1])
    assert is_valid(method.predict(X_TEST), N_TEST)


@pytest.mark.parametrize("n_constant", [1, N_FEATURES])
def test_constant_features_are_harmless(cheap, n_constant):
    X_train, X_test = X_TRAIN.copy(), X_TEST.copy()
    X_train[:, :n_constant] = 0
    X_test[:, :n_constant] = 0
    method = cheap(random_state=1).fit(X_train, Y_TRAIN[:, 1])
    assert is_valid(method.predict(X_test), N_TEST)
