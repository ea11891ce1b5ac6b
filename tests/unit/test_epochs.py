"""Small sets are trained for enough steps; those of the paper as it says."""

import pytest
from shipped import ROOT, SHIPPED

from epistemic_calibration._epochs import number_of_epochs
from epistemic_calibration.workflow.config import resolve_config

CONFIG = resolve_config(SHIPPED, ROOT)
#: Training images; of cifar10n, a fifth is held out.
SIZES = {"mnist": 60_000, "cifar10": 50_000, "cifar10h": 50_000, "cifar10n": 40_000}


def epochs(parameters, n_samples):
    sizes = {name: parameters[name] for name in ("min_steps", "batch_size")}
    return number_of_epochs(parameters["n_epochs"], n_samples=n_samples, **sizes)


@pytest.mark.parametrize("dataset", SIZES)
def test_large_sets_have_the_epochs_of_the_paper(dataset):
    encoder = CONFIG.datasets[dataset].encoder_parameters
    assert epochs(encoder, SIZES[dataset]) == encoder["n_epochs"] == 5
    networks = [e.parameters for e in CONFIG.methods.values() if "min_steps" in e.parameters]
    assert len(networks) >= 4
    for parameters in networks:
        assert epochs(parameters, SIZES[dataset]) == parameters["n_epochs"] == 20


@pytest.mark.parametrize("n_samples", [1, 10, 143, 900, 6401])
@pytest.mark.parametrize("min_steps", [1, 40, 1000])
def test_steps_are_enough_and_no_epoch_too_many(n_samples, min_steps):
    n_epochs = number_of_epochs(5, min_steps=min_steps, n_samples=n_samples, batch_size=128)
    steps_per_epoch = len(range(0, n_samples, 128))
    assert n_epochs >= 5
    assert n_epochs * steps_per_epoch >= min_steps
    assert n_epochs == 5 or (n_epochs - 1) * steps_per_epoch < min_steps


@pytest.mark.fault
@pytest.mark.parametrize("name", ["n_epochs", "min_steps", "n_samples", "batch_size"])
def test_numbers_below_one_are_refused(name):
    given = {"n_epochs": 1, "min_steps": 1, "n_samples": 1, "batch_size": 1, name: 0}
    with pytest.raises(ValueError, match=f"{name}=0; it must be an integer of at least 1"):
        number_of_epochs(given.pop("n_epochs"), **given)
