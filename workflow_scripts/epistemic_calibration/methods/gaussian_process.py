"""Sparse variational Gaussian process classification."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from epistemic_calibration.methods.base import Method
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import gpytorch
    import torch

#: Training points, drawn at random, among which K-means places the inducing points.
_N_CLUSTERED = 10_000
#: Added to the diagonal of the inducing points' covariance, for its Cholesky factor.
_JITTER = 1e-6
#: Test points evaluated at once.
_CHUNK = 2048


@dataclass(kw_only=True, eq=False)
class GaussianProcess(Method):
    """A sparse variational Gaussian process classifier (Hensman et al. 2015).

    P(Y = 1 | x, f) = Φ(f(x)), with f a Gaussian process of constant mean and squared-exponential
    covariance with one length scale, on standardised features. A Gaussian over f at the inducing
    points, which K-means places among the training points, stands for the posterior; it
    maximises the evidence lower bound over minibatches, together with mean, variance and length
    scale of the prior. Where there are no more distinct training points than inducing points,
    these are the former, and the approximation is the Gaussian one alone. One step costs the
    same whatever the size of the training set, and the number of steps is fixed.

    The hypotheses at x are Φ(f), f drawn from the marginal posterior N(m(x), v(x)) of f(x), for
    each input by itself: a column is no function drawn from the posterior, since values at
    neighbouring inputs are drawn independently. Nothing that is estimated of single inputs'
    hypotheses depends on this. Their mean is Φ(m/√(1 + v)) up to the draws.

    The paper moves the inducing points, too, and takes Adadelta or L-BFGS; here they stay where
    K-means puts them, the Gaussian takes natural-gradient steps (Salimbeni et al. 2018), which
    need far fewer, and the prior Adam's. Tasks are fitted one by one, in float64: with large
    minibatches, batched products would save little, and would round differently.

    References
    ----------
    Hensman, Matthews, Ghahramani, "Scalable variational Gaussian process classification",
    AISTATS 2015, arXiv 1411.2005.
    Salimbeni, Eleftheriadis, Hensman, "Natural gradients in practice", AISTATS 2018, arXiv
    1803.09151.
    Gardner, Pleiss, Bindel, Weinberger, Wilson, "GPyTorch", NeurIPS 2018, arXiv 1809.11165.
    """

    label: ClassVar[str] = "Gaussian Process"
    required_packages: ClassVar[dict[str, str]] = {"gpytorch": "epistemic-calibration[extended]"}

    n_hypotheses: int = parameter(100, ge=1, description="draws of f at each input")
    n_inducing_points: int = parameter(
        100, ge=1, description="inducing points, at most; 4 to 500 in Hensman et al."
    )
    n_steps: int = parameter(200, ge=1, description="minibatches")
    batch_size: int = parameter(1024, ge=1, description="training points of a minibatch, at most")
    natural_step: float = parameter(
        0.1, gt=0, le=1, description="natural-gradient step of the variational Gaussian"
    )
    learning_rate: float = parameter(0.05, gt=0, description="Adam's step of the prior's settings")

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Maximise the evidence lower bound."""
        import torch
        from sklearn.preprocessing import StandardScaler

        self.scaler_ = StandardScaler().fit(np.asarray(X, dtype=np.float64))
        X = self.scaler_.transform(np.asarray(X, dtype=np.float64))
        rng = np.random.default_rng(derive_seed(self.random_state, "fit"))
        # Modules draw from the global generator when they are made.
        with torch.random.fork_rng(devices=[]):
            self.model_ = _model(_inducing_points(X, self.n_inducing_points, rng))
            self.evidence_lower_bound_ = self._maximise(
                torch.as_tensor(X), torch.as_tensor(np.array(y, dtype=np.float64)), rng
            )
        return self

    def _maximise(self, X: torch.Tensor, y: torch.Tensor, rng: np.random.Generator) -> float:
        """Fit the model; return the mean bound over the last tenth of the steps."""
        import torch

        gpytorch = _import_gpytorch()
        bound = gpytorch.mlls.VariationalELBO(
            gpytorch.likelihoods.BernoulliLikelihood(), self.model_, num_data=len(X)
        )
        optimisers = [
            gpytorch.optim.NGD(
                self.model_.variational_parameters(), num_data=len(X), lr=self.natural_step
            ),
            torch.optim.Adam(self.model_.hyperparameters(), lr=self.learning_rate),
        ]
        self.model_.train()
        bounds = []
        for rows in _minibatches(len(X), self.batch_size, self.n_steps, rng):
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss = -bound(self.model_(X[rows]), y[rows])
            loss.backward()
            for optimiser in optimisers:
                optimiser.step()
            bounds.append(-loss.item())
        self.model_.eval()
        return float(np.mean(bounds[-max(self.n_steps // 10, 1) :]))

    def marginal_posterior(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at each input, each of shape (n_samples,)."""
        import torch

        X = self.scaler_.transform(np.asarray(X, dtype=np.float64))
        means, variances = [], []
        with torch.no_grad():
            for chunk in torch.as_tensor(X).split(_CHUNK):
                f = self.model_(chunk)
                means.append(f.mean.numpy())
                variances.append(f.variance.clamp_min(0).numpy())
        return np.concatenate(means), np.concatenate(variances)

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return Φ(f) of draws of f at each input, shape (n_samples, n_hypotheses)."""
        from scipy.special import ndtr

        mean, variance = self.marginal_posterior(X)
        rng = np.random.default_rng(derive_seed(self.random_state, "draws"))
        draws = rng.standard_normal((len(X), self.n_hypotheses))
        return ndtr(mean[:, None] + np.sqrt(variance)[:, None] * draws)

    def diagnostics(self) -> dict[str, float]:
        """Return the bound, in nats per training point, and what was learnt of the prior."""
        kernel = self.model_.covar_module
        return {
            "evidence_lower_bound": self.evidence_lower_bound_,
            "length_scale": float(kernel.base_kernel.lengthscale.detach()),
            "prior_variance": float(kernel.outputscale.detach()),
            "prior_mean": float(self.model_.mean_module.constant.detach()),
            "n_inducing_points": float(len(self.model_.variational_strategy.inducing_points)),
        }


def _import_gpytorch():
    with warnings.catch_warnings():
        # Of what it imports: torch.jit is to go.
        warnings.simplefilter("ignore", FutureWarning)
        import gpytorch
    return gpytorch


def _inducing_points(X: np.ndarray, n_points: int, rng: np.random.Generator) -> np.ndarray:
    """Return the centres of K-means, or the distinct points where there are as few."""
    from sklearn.cluster import KMeans

    if len(X) > _N_CLUSTERED:
        X = X[rng.choice(len(X), _N_CLUSTERED, replace=False)]
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_points:
        return distinct
    seed = int(rng.integers(2**31))
    return KMeans(n_points, n_init=1, max_iter=30, random_state=seed).fit(X).cluster_centers_


def _minibatches(n_samples: int, batch_size: int, n_steps: int, rng: np.random.Generator):
    """Yield the rows of each step: every point once, in random order, then again."""
    n_batches = -(-n_samples // batch_size)
    for step in range(n_steps):
        if step % n_batches == 0:
            parts = np.array_split(rng.permutation(n_samples), n_batches)
        yield parts[step % n_batches]


def _model(inducing_points: np.ndarray) -> gpytorch.models.ApproximateGP:
    import torch
    from scipy.spatial.distance import pdist

    gpytorch = _import_gpytorch()
    distances = pdist(inducing_points)
    median = float(np.median(distances)) if len(distances) else 1.0

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self):
            points = torch.as_tensor(inducing_points)
            # Natural parameters, for natural gradients.
            posterior = gpytorch.variational.NaturalVariationalDistribution(
                len(points), mean_init_std=0.0
            )
            strategy = gpytorch.variational.VariationalStrategy(
                self, points, posterior, learn_inducing_locations=False, jitter_val=_JITTER
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model = Model().double()
    model.covar_module.base_kernel.lengthscale = median or 1.0
    model.covar_module.outputscale = 1.0
    return model
