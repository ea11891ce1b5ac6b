"""Ensembles of modules, and passes with dropout: what is drawn, and what is left as it was."""

import numpy as np
import pytest

from epistemic_calibration import hypotheses_of
from epistemic_calibration.adapters import ModelError

torch = pytest.importorskip("torch")
nn = torch.nn

X = np.random.default_rng(0).normal(size=(40, 6))
TENSOR = torch.tensor(X, dtype=torch.float32)


def network(*layers, seed=0, n_outputs=3):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = [nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.4)]
        return nn.Sequential(*head, nn.Linear(16, n_outputs), *layers)


def asked(module, x=TENSOR):
    module.eval()
    with torch.no_grad():
        return module(x).double()


def test_a_list_has_a_hypothesis_for_each():
    modules = [network(seed=k) for k in range(4)]
    expected = torch.stack([asked(m).softmax(1) for m in modules], dim=1).numpy()
    for several in (modules, nn.ModuleList(modules)):
        found = hypotheses_of(several, X)
        assert found.shape == (40, 4, 3)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    one = hypotheses_of(modules, TENSOR, positive_class=2, batch_size=7)
    np.testing.assert_allclose(one, expected[:, :, 2], atol=1e-6)


@pytest.mark.parametrize("layers", [(), (nn.Softmax(dim=1),), (nn.LogSoftmax(dim=1),)])
def test_logits_and_probabilities_are_told_apart(layers):
    plain = [network(seed=k) for k in range(3)]
    with_layers = [nn.Sequential(m, *layers) for m in plain]
    np.testing.assert_allclose(
        hypotheses_of(with_layers, X), hypotheses_of(plain, X, outputs="logits"), atol=1e-6
    )


def test_one_output_must_be_declared():
    modules = [network(seed=k, n_outputs=1) for k in range(3)]
    expected = torch.cat([asked(m).sigmoid() for m in modules], dim=1).numpy()
    flat = [nn.Sequential(m, nn.Flatten(0)) for m in modules]
    sigmoids = [nn.Sequential(m, nn.Sigmoid()) for m in modules]
    for several, outputs in ((modules, "logits"), (flat, "logits"), (sigmoids, "probabilities")):
        found = hypotheses_of(several, X, outputs=outputs)
        assert found.shape == (40, 3)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(ModelError, match="one output per input: say outputs='logits'"):
        hypotheses_of(modules, X)


def test_passes_are_those_of_the_dropout_layers_alone():
    module = network()
    found = hypotheses_of(module, X, n_hypotheses=200)
    assert found.shape == (40, 200, 3)
    assert hypotheses_of(module, X).shape == (40, 100, 3)
    # With masks drawn by hand, and batch normalisation in evaluation mode.
    hidden = asked(module[:3]).float()
    rng = torch.Generator().manual_seed(1)
    draws = []
    for _ in range(2000):
        mask = (torch.rand(hidden.shape, generator=rng) >= 0.4) / 0.6
        with torch.no_grad():
            draws.append(module[4](hidden * mask).double().softmax(1))
    draws = torch.stack(draws, dim=1).numpy()
    error = draws.std(axis=1) * np.sqrt(1 / 200 + 1 / 2000)
    # 120 means; beyond 5 standard errors with a probability of 1e-4.
    assert (np.abs(found.mean(axis=1) - draws.mean(axis=1)) < 5 * error).all()
    np.testing.assert_allclose(found.std(axis=1), draws.std(axis=1), rtol=0.4)


def test_passes_leave_no_trace():
    module = network()
    module.train()
    module[1].eval()  # frozen normalisation: modes are given back one by one
    modes = [m.training for m in module.modules()]
    state = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(5)
    before = torch.get_rng_state()
    hypotheses_of(module, X, n_hypotheses=3)
    hypotheses_of([module, network(seed=1)], X)
    assert torch.equal(torch.get_rng_state(), before)
    assert [m.training for m in module.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in module.parameters())
    assert torch.backends.mha.get_fastpath_enabled()


def test_modes_are_given_back_after_an_error():
    module = network()
    module.train()
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        hypotheses_of(module, X[:, :4])
    assert all(m.training for m in module.modules())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_seed_makes_the_passes_whatever_was_drawn_before():
    module = network()
    first = hypotheses_of(module, X, n_hypotheses=5, random_state=3)
    torch.rand(100)
    module.train()
    np.testing.assert_array_equal(hypotheses_of(module, X, n_hypotheses=5, random_state=3), first)
    assert (hypotheses_of(module, X, n_hypotheses=5, random_state=4) != first).any()
    # Further passes are added to these.
    more = hypotheses_of(module, X, n_hypotheses=8, random_state=3)
    np.testing.assert_array_equal(more[:, :5], first)


class Encoder(nn.Module):
    """A transformer, whose layers have a path without dropout in evaluation mode."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.5, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(self.encoder(x).mean(dim=1))


class Recurrent(nn.Module):
    """A network whose dropout is a setting of its LSTM."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, dropout=0.5, batch_first=True)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


@pytest.mark.parametrize("kind", [Encoder, Recurrent])
def test_dropout_inside_of_layers_is_reached(kind):
    x = np.random.default_rng(1).normal(size=(12, 4, 6))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = kind()
    module.eval()
    found = hypotheses_of(module, x, n_hypotheses=20, outputs="logits")
    assert found.std(axis=1).min() > 1e-4
    assert not any(m.training for m in module.modules())


class Hidden(nn.Module):
    """Dropout that forward does not use."""

    def __init__(self):
        super().__init__()
        self.dropout, self.out = nn.Dropout(0.5), nn.Linear(6, 2)

    def forward(self, x):
        return nn.functional.dropout(self.out(x), 0.5, self.training)


class Wrapped(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.inner, self.change = network(), change

    def forward(self, x):
        return self.change(self.inner(x))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.Linear(6, 2), {}, "one module without dropout layers, so one hypothesis"),
        (nn.Sequential(nn.Dropout(0.0), nn.Linear(6, 2)), {}, "without dropout layers"),
        (Hidden(), {}, "all passes of Hidden are equal"),
        (Wrapped(lambda z: {"logits": z}), {}, "returns a dict, expected a tensor"),
        (Wrapped(lambda z: z[:, :, None]), {}, r"returns shape \(40, 3, 1\) for 40 inputs"),
        (Wrapped(lambda z: z * torch.nan), {}, "outputs that are NaN"),
        (Wrapped(torch.sigmoid), {}, "do not add up to 1 over the 3 classes"),
        (Wrapped(lambda z: z), {"outputs": "probabilities"}, r"must be in \[0, 1\]"),
        (Wrapped(lambda z: z), {"outputs": "scores"}, "'logits' or 'probabilities', got 'scores'"),
        (Wrapped(lambda z: z), {"batch_size": 0}, "batch_size must be an integer >= 1, got 0"),
        (Wrapped(lambda z: z), {"pred_type": "nn"}, "no option for PyTorch: outputs, batch_size"),
        ([network(), network(seed=1, n_outputs=2)], {}, "different shapes"),
        (nn.ModuleList([network()]), {}, "has 1 member"),
        ([network(), network(seed=1)], {"n_hypotheses": 5}, "n_hypotheses=5, but"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(model, options, message):
    with pytest.raises(ModelError, match=message) as caught:
        hypotheses_of(model, X, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("inputs", "message"),
    [(np.array([["a"]]), "X has dtype <U1"), (np.zeros((0, 6)), "samples on axis 0, got shape")],
)
def test_wrong_inputs_are_told(inputs, message):
    with pytest.raises(ModelError, match=message):
        hypotheses_of(network(), inputs)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_state_of_a_gpu_is_given_back():
    module = network().cuda()
    before = torch.cuda.get_rng_state()
    first = hypotheses_of(module, X, n_hypotheses=4)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    torch.cuda.manual_seed(9)
    np.testing.assert_array_equal(hypotheses_of(module, X, n_hypotheses=4), first)
