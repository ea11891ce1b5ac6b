"""Ensembles of modules, and passes with dropout: what is drawn, and what is left as it was."""

from types import SimpleNamespace

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
    assert torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        hypotheses_of(module, X[:, :4])
    assert [m.training for m in module.modules()] == modes
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


class Wrapped(nn.Module):
    def __init__(self, change, inner=None):
        super().__init__()
        self.inner, self.change = inner or network(), change

    def forward(self, x):
        return self.change(self.inner(x))


class Encoder(nn.Module):
    """A transformer, whose layers have a path without dropout in evaluation mode."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.5, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(self.encoder(x).mean(dim=1))


def test_dropout_inside_of_layers_is_reached():
    x = np.random.default_rng(1).normal(size=(12, 4, 6))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        lstm = nn.LSTM(6, 8, num_layers=2, dropout=0.5, batch_first=True)
        modules = Encoder(), Wrapped(lambda z: z[0][:, -1, :2], lstm)
    for module in modules:
        found = hypotheses_of(module.eval(), x, n_hypotheses=20, outputs="logits")
        assert found.std(axis=1).min() > 1e-4
        assert not any(m.training for m in module.modules())


class Variational(nn.Module):
    """Weights drawn anew in each pass, whatever the mode, as in bayesian-torch."""

    def __init__(self, noise=0.3):
        super().__init__()
        self.noise = noise
        self.mu = nn.Parameter(torch.linspace(-0.5, 0.5, 12).reshape(2, 6))

    def forward(self, x):
        return x @ (self.mu + self.noise * torch.randn_like(self.mu)).T


class FairseqDropout(nn.Module):
    """No layer of PyTorch's, but one by its name and attributes (fairseq, timm, transformers)."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return x * (torch.rand_like(x) > self.p) / (1 - self.p) if self.training else x


def test_what_draws_by_itself_is_asked_many_times():
    module = Variational()
    found = hypotheses_of(module, X, n_hypotheses=400)
    # Along x the logit of the second class less that of the first is normal.
    gap = np.log(found / (1 - found))
    difference = (module.mu[1] - module.mu[0]).detach().numpy()
    scale = 0.3 * np.sqrt(2) * np.linalg.norm(X, axis=1)
    # 40 means of 400 draws; beyond 5 standard errors with a probability of 3e-5.
    assert (np.abs(gap.mean(axis=1) - X @ difference) < 5 * scale / 20).all()
    np.testing.assert_allclose(gap.std(axis=1), scale, rtol=0.2)
    np.testing.assert_array_equal(hypotheses_of(module, X, n_hypotheses=2), found[:, :2])


def test_dropout_is_known_by_its_name():
    layers = nn.Linear(6, 16), FairseqDropout(0.3), nn.Linear(16, 2)
    found = hypotheses_of(nn.Sequential(*layers), X, n_hypotheses=20)
    assert found.std(axis=1).min() > 1e-4 and not FairseqDropout(0.3).eval().training
    still = nn.Sequential(nn.Linear(6, 16), FairseqDropout(0.0), nn.Linear(16, 2))
    with pytest.raises(ModelError, match="has no dropout layers"):
        hypotheses_of(still, X)


class Named(nn.Module):
    """Keywords in, logits with a name out, as the models of transformers."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, input_ids, attention_mask):
        return {"loss": None, "logits": self.inner(input_ids * attention_mask)}


def test_inputs_in_batches_and_outputs_with_names():
    data = torch.utils.data.TensorDataset(TENSOR, torch.zeros(40))
    loader = torch.utils.data.DataLoader(data, batch_size=7)
    modules = [network(seed=k) for k in range(3)]
    expected = hypotheses_of(modules, X)
    for inputs in (data, loader):
        np.testing.assert_allclose(hypotheses_of(modules, inputs), expected, atol=1e-6)
    mask = torch.ones_like(TENSOR)
    tokens = {"input_ids": TENSOR, "attention_mask": mask, "labels": torch.zeros(40)}
    rows = [{name: value[k] for name, value in tokens.items()} for k in range(40)]
    named = Named()
    expected = hypotheses_of(named.inner, X, n_hypotheses=4)
    for inputs in (tokens, torch.utils.data.DataLoader(rows, batch_size=1024)):
        np.testing.assert_allclose(
            hypotheses_of(named, inputs, n_hypotheses=4), expected, atol=1e-6
        )
    with pytest.raises(ModelError, match="shuffles: its order must be that of y_true"):
        hypotheses_of(modules, torch.utils.data.DataLoader(data, shuffle=True))


def test_pixels_of_images_are_samples():
    images = torch.rand(3, 1, 4, 5)
    module = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Dropout2d(0.3), nn.Conv2d(2, 2, 1))
    found = hypotheses_of(module, images, n_hypotheses=6, batch_size=2)
    assert found.shape == (60, 6)
    plain = nn.Sequential(module[0], module[2])
    other = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), module[2])
    two = hypotheses_of([plain, other], images)
    np.testing.assert_allclose(
        two[:, 0].reshape(3, 4, 5), asked(plain, images).softmax(1)[:, 1].numpy(), atol=1e-6
    )


class State:
    """That of a generator of Keras 3: (seed, counter), of which each draw takes one."""

    value = np.array([7, 0])

    def assign(self, value):
        self.value = np.array(value)

    def __array__(self, dtype=None, copy=None):
        return self.value


class KerasDropout(nn.Module):
    """A fake of keras.layers.Dropout on PyTorch, with its attributes: drops where it is told to."""

    rate = 0.4

    def __init__(self):
        super().__init__()
        self.seed_generator = SimpleNamespace(state=State())

    def forward(self, x):
        return self.call(x, training=False)

    def call(self, x, training=False):
        if not training:
            return x
        seed, counter = self.seed_generator.state.value
        self.seed_generator.state.assign([seed, counter + 1])
        rng = torch.Generator().manual_seed(int(seed) + int(counter))
        return x * (torch.rand(x.shape, generator=rng) > self.rate) / (1 - self.rate)


def test_dropout_of_keras_is_told_to_drop_and_its_state_given_back():
    module = nn.Sequential(nn.Linear(6, 16), KerasDropout(), nn.Linear(16, 2))
    found = hypotheses_of(module, X, n_hypotheses=5)
    assert found.std(axis=1).min() > 1e-4
    np.testing.assert_array_equal(module[1].seed_generator.state.value, [7, 0])
    assert "call" not in vars(module[1])
    np.testing.assert_array_equal(hypotheses_of(module, X, n_hypotheses=5), found)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.Sequential(nn.Dropout(0.0), nn.Linear(6, 2)), {}, "has no dropout layers"),
        (Wrapped(lambda z: {"scores": z}), {}, "returns neither a tensor of logits"),
        (Wrapped(torch.sigmoid), {"outputs": "logits"}, r"all outputs of Wrapped lie in \[0, 1\]"),
        ([network(), network()], {}, "all 2 hypotheses of the list of 2 models are equal"),
        (
            [Variational(1e-3), Variational()],
            {},
            "module 0 of the list draws in evaluation mode, too",
        ),
        (Wrapped(lambda z: z[:, :, None]), {}, r"returns shape \(40, 3, 1\) for 40 inputs"),
        (Wrapped(lambda z: z * torch.nan), {}, "outputs that are NaN"),
        (Wrapped(torch.sigmoid), {}, "do not add up to 1 over the 3 classes"),
        (Wrapped(lambda z: z), {"outputs": "probabilities"}, r"must be in \[0, 1\]"),
        (Wrapped(lambda z: z), {"outputs": "scores"}, "'logits' or 'probabilities', got 'scores'"),
        ([network(), network(seed=1, n_outputs=2)], {}, "different shapes"),
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
    [(np.array([["a"]]), "X has dtype <U1"), (np.zeros((0, 6)), "samples on axis 0")],
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
