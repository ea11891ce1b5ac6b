import numpy as np
import pytest
import torch

from epistemic_calibration.methods._adam import Adam


def random_gradients(n_steps, n):
    generator = np.random.default_rng(0)
    # Of very unlike sizes, and some that are 0 throughout.
    scales = 10 ** generator.uniform(-6, 2, n)
    scales[::7] = 0
    return (generator.normal(size=(n_steps, n)) * scales).astype(np.float32)


def moved(gradients, learning_rate=1e-3, start=None):
    n = gradients.shape[1]
    parameters = np.zeros(n, np.float32) if start is None else start.astype(np.float32)
    arrays = [parameters, *np.zeros((3, n), np.float32)]
    adam = Adam(*arrays)
    for gradient in gradients:
        arrays[1][:] = gradient
        adam.step(learning_rate)
    return parameters


def test_the_first_steps_have_the_size_of_the_learning_rate():
    # Both corrected moments are those of the only gradient: g / (|g| + ε).
    gradient = np.float32([[3, -0.02, 1e-8, 0]])
    np.testing.assert_allclose(moved(gradient, 0.01), [-0.01, 0.01, -0.005, 0], rtol=2e-6)


def test_steps_are_those_of_pytorch():
    gradients = random_gradients(500, 1000)
    start = np.random.default_rng(1).normal(size=1000)
    parameters = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
    optimiser = torch.optim.Adam([parameters], lr=1e-3)
    for gradient in gradients:
        parameters.grad = torch.from_numpy(gradient)
        optimiser.step()
    # Sums of 500 steps of at most about 0.001, each rounded to 24 bits of a number near 1.
    np.testing.assert_allclose(
        moved(gradients, start=start), parameters.detach().numpy(), rtol=0, atol=500 * 2**-23
    )


@pytest.mark.parametrize("n", [1, 7, 31, 64, 100])
def test_a_parameter_goes_its_way_alone(n):
    gradients = random_gradients(50, 129)
    together = moved(gradients)
    for first in (0, 3, 29):
        np.testing.assert_array_equal(
            moved(gradients[:, first : first + n]), together[first : first + n]
        )


@pytest.mark.fault
@pytest.mark.parametrize("wrong", [np.zeros(4), np.zeros((4, 2), np.float32)[:, 0]])
def test_what_cannot_be_changed_in_place_is_refused(wrong):
    arrays = np.zeros((3, 4), np.float32)
    with pytest.raises(ValueError, match="contiguous arrays of float32"):
        Adam(wrong, *arrays)
