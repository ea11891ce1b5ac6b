"""The image benchmark as one would first write it: one process, plain loops, library calls.

The yardstick of `make bench`, which times it and the workflow on the same images. It shares no
code with the workflow, so that its scores check those of the workflow too.
"""

import argparse
import csv
import resource
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import torch
from laplace import Laplace
from polyagamma import random_polyagamma
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

METHODS = (
    "centroids",
    "dropconnect",
    "bayesian_logistic_regression",
    "likelihood",
    "eknn",
    "random_forest",
    "mc_dropout",
    "deep_ensemble",
    "laplace",
)
N_PASSES = 100


class Stages:
    """Seconds by (stage, method), summed over tasks."""

    def __init__(self):
        self.seconds = defaultdict(lambda: np.zeros(2))
        self.peak = {}
        # All that the process did until here.
        wall = time.time() - psutil.Process().create_time()
        self.seconds["imports", ""] += (wall, time.process_time())
        self.peak["imports", ""] = _peak_memory()

    @contextmanager
    def timed(self, stage, method=""):
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds[stage, method] += (time.perf_counter() - wall, time.process_time() - cpu)
        self.peak[stage, method] = _peak_memory()

    def write(self, path):
        with Path(path).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["stage", "method", "seconds", "cpu_seconds", "peak_mb_so_far"])
            for key, (wall, cpu) in self.seconds.items():
                writer.writerow([*key, wall, cpu, self.peak[key]])


def _peak_memory():
    """Return the largest memory of the process so far, in MB (2**20 bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def pixels(images):
    """Return images (n, height, width[, channels]) as a tensor (n, channels, height, width)."""
    scale = 255 if images.dtype == np.uint8 else 1
    images = torch.from_numpy(images).float() / scale
    return images.unsqueeze(1) if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()


class Autoencoder(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        quarter = size // 4
        flat = 32 * quarter**2
        latent_size = {(1, 28): 64, (3, 32): 256}.get((channels, size), 32)
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(flat, latent_size),
            nn.ReLU(),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent_size, flat),
            nn.ReLU(),
            nn.Unflatten(1, (32, quarter, quarter)),
            nn.ConvTranspose2d(32, 16, 3, stride=2, padding=1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, channels, 3, stride=2, padding=1, output_padding=1),
            nn.Sigmoid(),
        )

    def forward(self, images):
        return self.decoder(self.encoder(images))


def train_autoencoder(images, n_epochs):
    model = Autoencoder(images.shape[1], images.shape[2])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(n_epochs):
        for chosen in torch.randperm(len(images)).split(128):
            batch = images[chosen]
            loss = functional.mse_loss(model(batch), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


@torch.no_grad()
def encode(model, images):
    return torch.cat([model.encoder(batch) for batch in images.split(1000)]).numpy()


class DropConnect(nn.Linear):
    def forward(self, x):
        weight = functional.dropout(self.weight, 0.3, training=True)
        return functional.linear(x, weight, functional.dropout(self.bias, 0.3, training=True))


def network(n_features, method):
    linear = DropConnect if method == "dropconnect" else nn.Linear
    layers = [linear(n_features, 100), nn.ReLU(), linear(100, 20), nn.ReLU(), nn.Linear(20, 2)]
    if method == "mc_dropout":
        layers.insert(2, nn.Dropout(0.3))
        layers.insert(5, nn.Dropout(0.2))
    return nn.Sequential(*layers)


def train(model, x, y, n_epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(n_epochs):
        for chosen in torch.randperm(len(x)).split(32):
            loss = functional.cross_entropy(model(x[chosen]), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


@torch.no_grad()
def positive_probability(model, x):
    return model(x).softmax(dim=1)[:, 1].numpy()


def gaussian_hypotheses(prediction, uncertainty, rng):
    noise = rng.standard_normal((len(prediction), 200))
    drawn = prediction[:, None] + np.sqrt(uncertainty)[:, None] * noise
    return np.clip(drawn, 0, 1), prediction, uncertainty


def centroids(x_train, y, x_test, rng):
    centres = np.stack([x_train[y == label].mean(axis=0) for label in (0, 1)])
    distance = ((x_test[:, None] - centres) ** 2).sum(axis=2) / (2 * 10 * 2)
    nearest = distance.min(axis=1)
    uncertainty = 0.8 * nearest / (nearest + 10 * np.median(nearest))
    return gaussian_hypotheses(expit(distance[:, 0] - distance[:, 1]), uncertainty, rng)


def likelihood(neighbors, y, rng):
    distance, index = neighbors
    weights = 1 / np.maximum(distance, 1e-12)
    prediction = (weights * y[index]).sum(axis=1) / weights.sum(axis=1)
    theta = np.linspace(1e-6, 1 - 1e-6, 4001)
    uncertainty = np.empty(len(index))
    for n in range(len(index)):
        near = y[index[n][distance[n] < 0.3]]
        if len(near) == 0:
            near = y[index[n][:1]]
        positives, negatives = near.sum(), len(near) - near.sum()
        log_likelihood = positives * np.log(theta) + negatives * np.log(1 - theta)
        relative = np.exp(log_likelihood - log_likelihood.max())
        support = [np.minimum(relative, np.clip(s * (2 * theta - 1), 0, 1)).max() for s in (1, -1)]
        uncertainty[n] = min(support) / 2
    return gaussian_hypotheses(prediction, uncertainty, rng)


def eknn(neighbors, x_train, y, rng):
    distance, index = neighbors
    i, j = rng.integers(0, len(x_train), (2, 10000))
    scale = np.linalg.norm(x_train[i] - x_train[j], axis=1).mean()
    support = 0.4 * np.exp(-((distance / scale) ** 0.5))
    q1 = np.prod(np.where(y[index] == 1, 1 - support, 1), axis=1)
    q0 = np.prod(np.where(y[index] == 0, 1 - support, 1), axis=1)
    total = q1 + q0 - q1 * q0
    ignorance = q1 * q0 / total
    return gaussian_hypotheses((1 - q1) * q0 / total + ignorance / 2, ignorance, rng)


def bayesian_logistic_regression(x_train, y, x_test, rng):
    """Pólya-Gamma Gibbs sampling (Polson, Scott & Windle 2013)."""
    x = np.c_[x_train, np.ones(len(x_train))].astype(float)
    x_test = np.c_[x_test, np.ones(len(x_test))]
    prior = np.eye(x.shape[1]) / 0.5**2
    weights, hypotheses = np.zeros(x.shape[1]), []
    for sweep in range(300):
        omega = random_polyagamma(1, x @ weights, random_state=rng)
        precision = x.T @ (omega[:, None] * x) + prior
        mean = np.linalg.solve(precision, x.T @ (y - 0.5))
        noise = rng.standard_normal(len(mean))
        weights = mean + np.linalg.solve(np.linalg.cholesky(precision).T, noise)
        if sweep >= 100 and sweep % 2 == 0:
            hypotheses.append(expit(x_test @ weights))
    return np.stack(hypotheses, axis=1)


def random_forest(x_train, y, x_test, seed):
    forest = RandomForestClassifier(100, min_samples_leaf=5, n_jobs=-1, random_state=seed)
    forest.fit(x_train, y)
    return np.stack([tree.predict_proba(x_test)[:, 1] for tree in forest.estimators_], axis=1)


def network_hypotheses(method, x_train, y, x_test, n_epochs):
    x_train, y, x_test = map(torch.from_numpy, (x_train, y, x_test))

    def trained():
        return train(network(x_train.shape[1], method), x_train, y, n_epochs)

    if method == "deep_ensemble":
        columns = [positive_probability(trained(), x_test) for _ in range(10)]
        return np.stack(columns, axis=1)
    model = trained()
    if method != "laplace":
        # Dropout stays on, as in training.
        columns = [positive_probability(model, x_test) for _ in range(N_PASSES)]
        return np.stack(columns, axis=1)
    model.eval()
    posterior = Laplace(
        model, "classification", subset_of_weights="last_layer", hessian_structure="full"
    )
    posterior.fit(DataLoader(TensorDataset(x_train, y), batch_size=1024))
    posterior.optimize_prior_precision(method="marglik")
    samples = posterior.predictive_samples(x_test, pred_type="nn", n_samples=N_PASSES)
    return samples[:, :, 1].T.numpy()


def expected_calibration_error(y, p, n_bins=10):
    bins = np.clip((p * n_bins).astype(int), 0, n_bins - 1)
    error = 0
    for m in np.unique(bins):
        inside = bins == m
        error += inside.mean() * abs(y[inside].mean() - p[inside].mean())
    return error


def expected_epistemic_calibration_error(y, hypotheses, uncertainty, n_bins):
    bins = KMeans(n_bins, n_init=1, random_state=0).fit_predict(hypotheses)
    error = 0
    for m in np.unique(bins):
        inside = bins == m
        squares = (y[inside].mean() - hypotheses[inside].mean(axis=0)) ** 2
        error += inside.mean() * abs(squares.mean() - uncertainty[inside].mean())
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help=".npz: x_train, y_train, x_test, y_test")
    parser.add_argument("--output", required=True, help="CSV of scores")
    parser.add_argument("--times", help="CSV of seconds by stage and method")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--tasks", nargs="+", help="class names (default: every class)")
    parser.add_argument("--n-epochs", type=int, default=20, help="of the networks")
    parser.add_argument("--autoencoder-epochs", type=int, default=5)
    parser.add_argument("--n-bins", type=int, default=100, help="of the EECE")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    stages = Stages()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    with stages.timed("images"):
        data = np.load(args.data)
        images_train, images_test = pixels(data["x_train"]), pixels(data["x_test"])
        y_train, y_test = data["y_train"].astype(int), data["y_test"].astype(int)
        n_classes = y_train.max() + 1
        names = data["class_names"] if "class_names" in data.files else range(n_classes)
        classes = {str(name): k for k, name in enumerate(names)}
    with stages.timed("encoder"):
        autoencoder = train_autoencoder(images_train, args.autoencoder_epochs)
    with stages.timed("latents"):
        x_train, x_test = encode(autoencoder, images_train), encode(autoencoder, images_test)
    neighbors = {}
    with stages.timed("neighbors"):
        for method, k in (("likelihood", 10), ("eknn", 12)):
            if method in args.methods:
                search = NearestNeighbors(n_neighbors=k, n_jobs=-1).fit(x_train)
                neighbors[method] = search.kneighbors(x_test)

    rows = []
    for method in args.methods:
        for task in args.tasks or classes:
            y = (y_train == classes[task]).astype(np.int64)
            y_true = (y_test == classes[task]).astype(int)
            with stages.timed("hypotheses", method):
                prediction = uncertainty = None
                if method == "centroids":
                    hypotheses, prediction, uncertainty = centroids(x_train, y, x_test, rng)
                elif method == "likelihood":
                    hypotheses, prediction, uncertainty = likelihood(neighbors[method], y, rng)
                elif method == "eknn":
                    hypotheses, prediction, uncertainty = eknn(neighbors[method], x_train, y, rng)
                elif method == "bayesian_logistic_regression":
                    hypotheses = bayesian_logistic_regression(x_train, y, x_test, rng)
                elif method == "random_forest":
                    hypotheses = random_forest(x_train, y, x_test, args.seed)
                else:
                    hypotheses = network_hypotheses(method, x_train, y, x_test, args.n_epochs)
            with stages.timed("scores", method):
                if uncertainty is None:
                    prediction, uncertainty = hypotheses.mean(axis=1), hypotheses.var(axis=1)
                scores = {
                    "accuracy": ((prediction > 0.5) == y_true).mean(),
                    "ece": expected_calibration_error(y_true, prediction),
                    "eece": expected_epistemic_calibration_error(
                        y_true, hypotheses, uncertainty, args.n_bins
                    ),
                    "mean_epistemic_uncertainty": uncertainty.mean(),
                }
            rows += [(method, task, metric, float(value)) for metric, value in scores.items()]
            print(method, task, *(f"{k} {v:.4f}" for k, v in scores.items()), flush=True)

    with Path(args.output).open("w", newline="") as file:
        csv.writer(file).writerows([("method", "task", "metric", "value"), *rows])
    if args.times:
        stages.write(args.times)


if __name__ == "__main__":
    main()
