"""Draws of laplace-torch's predictive."""

import numpy as np
import pytest

from epistemic_calibration import hypotheses_of
from epistemic_calibration.adapters import ModelError

torch = pytest.importorskip("torch")
laplace = pytest.importorskip("laplace")

N = 150
X = np.random.default_rng(0).normal(size=(N, 4))


def approximation(structure="full", weights="all", likelihood="classification", *, fit=True):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5)]
        module = torch.nn.Sequential(*layers, torch.nn.Linear(8, 2))
        found = laplace.Laplace(module, likelihood, weights, structure, prior_precision=5.0)
        if fit:
            y = (X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=N) > 0).astype(np.int64)
            data = torch.utils.data.TensorDataset(torch.tensor(X).float(), torch.tensor(y))
            found.fit(torch.utils.data.DataLoader(data, batch_size=50))
    return found


@pytest.mark.parametrize("pred_type", ["glm", "nn"])
@pytest.mark.parametrize(
    ("structure", "weights"), [("full", "all"), ("kron", "all"), ("full", "last_layer")]
)
def test_draws_are_those_of_the_library(structure, weights, pred_type):
    model = approximation(structure, weights)
    options = {"n_hypotheses": 400, "pred_type": pred_type}
    found = hypotheses_of(model, X, **options)
    assert found.shape == (N, 400)
    np.testing.assert_allclose(hypotheses_of(model, X, batch_size=13, **options), found, atol=1e-5)
    np.testing.assert_array_equal(hypotheses_of(model, X, **options), found)
    generator = torch.Generator().manual_seed(7)
    inputs = torch.tensor(X, dtype=torch.float32)
    draws = model.predictive_samples(
        inputs, pred_type=pred_type, n_samples=4000, generator=generator
    )
    draws = draws[:, :, 1].T.detach().double().numpy()
    error = draws.std(axis=1) * np.sqrt(1 / 400 + 1 / 4000)
    # Draws share their noise, so that there are a few independent means; 5 standard errors.
    assert (np.abs(found.mean(axis=1) - draws.mean(axis=1)) < 5 * error).all()
    np.testing.assert_allclose(found.std(axis=1), draws.std(axis=1), rtol=0.3)


@pytest.mark.parametrize("pred_type", ["glm", "nn"])
def test_drawing_leaves_no_trace(pred_type):
    model = approximation()
    model.model.train()
    weights = {name: value.clone() for name, value in model.model.state_dict().items()}
    state = torch.get_rng_state()
    first = hypotheses_of(model, X, n_hypotheses=5, pred_type=pred_type)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(module.training for module in model.model.modules())
    now = model.model.state_dict()
    assert all(torch.equal(value, now[name]) for name, value in weights.items())
    # Dropout was off.
    model.model.eval()
    np.testing.assert_array_equal(
        hypotheses_of(model, X, n_hypotheses=5, pred_type=pred_type), first
    )
    other = hypotheses_of(model, X, n_hypotheses=5, pred_type=pred_type, random_state=1)
    assert (other != first).any()


@pytest.mark.fault
@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: approximation(fit=False), {}, "FullLaplace is not fitted"),
        (lambda: approximation("full", "last_layer", fit=False), {}, "is not fitted"),
        (
            lambda: approximation(likelihood="regression", fit=False),
            {},
            "likelihood 'regression', expected 'classification'",
        ),
        (approximation, {"pred_type": "mcmc"}, "'glm' or 'nn', got 'mcmc'"),
        (lambda: [approximation(), approximation()], {}, "each with draws of its own"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(model, options, message):
    with pytest.raises(ModelError, match=message) as caught:
        hypotheses_of(model(), X, **options)
    assert "\n" not in str(caught.value)
