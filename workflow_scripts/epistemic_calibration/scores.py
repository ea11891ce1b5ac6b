"""Scoring files of hypotheses: one tidy table a method."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.provenance import (
    StaleResultError,
    atomic_path,
    check_fingerprint,
    fingerprint,
    read_npz,
    write_npz,
)

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.metrics import CorrectedError

logger = logging.getLogger("epistemic_calibration")

COLUMNS = (
    "dataset",
    "seed",
    "method",
    "task",
    "metric",
    "value",
    "n_bins",
    "n_hypotheses",
    "binning",
    "fingerprint",
)


#: In place of a task: what is estimated of all tasks of a data set together.
ALL_TASKS = "(all)"


def score_tasks(spec: Mapping[str, Any], folder: str | Path, output: str | Path) -> None:
    """Score every task's file of hypotheses in ``folder`` and write one tidy CSV.

    Besides a row a task and metric there are rows of the task ``(all)``: the mean over tasks
    of the corrected error, whose interval knows that the tasks share their images. What
    other methods are compared with goes to the ``.npz`` beside it: ``y_true``,
    ``prediction`` and ``bins``, each of shape (n_tasks, n_samples).

    Raises
    ------
    StaleResultError
        If a file is broken, belongs to another task, or was made under other settings.
    """
    import pandas as pd

    settings = spec["settings"]
    rows, samples = [], []
    for task in settings["tasks"]:
        arrays, record = _read_hypotheses(folder, task, spec)
        scorer = Scorer(arrays, settings)
        rows += [{"task": task, **row} for row in scorer.rows(record["diagnostics"])]
        samples.append((scorer.y_true, scorer.mean, scorer.corrected_bins))
        logger.info("task %s scored", task)
    rows += [{"task": ALL_TASKS, **row} for row in _rows_of_all_tasks(samples, settings)]
    context = {key: settings[key] for key in ("dataset", "seed", "method")}
    table = pd.DataFrame(rows).assign(**context, fingerprint=fingerprint(spec))
    names = ("y_true", "prediction", "bins")
    arrays = {
        name: np.stack(part) for name, part in zip(names, zip(*samples, strict=True), strict=True)
    }
    write_npz(Path(output).with_suffix(".npz"), arrays, spec)
    with atomic_path(output) as path:
        table.to_csv(path, index=False, columns=list(COLUMNS))


def _read_hypotheses(
    folder: str | Path, task: str, spec: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    path = Path(folder) / f"{task}.npz"
    arrays, record = read_npz(path, expected_fingerprint=spec["inputs"]["hypotheses"])
    if record["task"] != task:
        raise StaleResultError(f"{path} holds the hypotheses of task {record['task']!r}")
    return arrays, record


class Scorer:
    """Every metric of one set of hypotheses.

    Parameters
    ----------
    arrays : mapping
        ``y_true``, ``hypotheses`` and, where the method reports them, ``prediction`` and
        ``epistemic_uncertainty``, as in a file of hypotheses.
    settings : mapping
        The ``scores`` block of the configuration.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> None:
        from epistemic_calibration import metrics

        self.settings = settings
        self.y_true = arrays["y_true"]
        self.hypotheses = arrays["hypotheses"]
        self.mean = self.hypotheses.mean(axis=1, dtype=np.float64)
        self.reported = arrays.get("epistemic_uncertainty")
        self.prediction = arrays.get("prediction", self.mean)
        self.corrected_bins = metrics.assign_bins(
            self.hypotheses,
            n_bins=settings["corrected_n_bins"],
            binning=settings["corrected_binning"],
            random_state=settings["random_state"],
        )

    def rows(self, diagnostics: Mapping[str, float] | None = None) -> Iterator[dict[str, Any]]:
        """Yield one row a metric: metric, value, n_bins, n_hypotheses, binning.

        Parameters
        ----------
        diagnostics : mapping, optional
            Numbers about the fit; they become rows named ``diagnostic_NAME``.
        """
        parts = (self._first_order(), self._eece(), self._corrected(), self._tests())
        for metric, value, binning, n_bins in itertools.chain(*parts):
            yield self._row(metric, value, binning, n_bins)
        if self.settings["recalibration"]:
            for metric, value in self._recalibrated():
                yield self._row(metric, value)
        for name, value in (diagnostics or {}).items():
            yield self._row(f"diagnostic_{name}", value)

    def _row(
        self, metric: str, value: float, binning: str | None = None, n_bins: int | None = None
    ) -> dict[str, Any]:
        return {
            "metric": metric,
            "value": float(value),
            "n_bins": n_bins,
            "n_hypotheses": self.hypotheses.shape[1],
            "binning": binning,
        }

    def _first_order(self) -> Iterator[tuple[str, float, str | None, int | None]]:
        from epistemic_calibration import metrics

        y_true, prediction = self.y_true, self.prediction
        yield "accuracy", metrics.accuracy(y_true, prediction), None, None
        yield "brier", metrics.brier_score(y_true, prediction), None, None
        yield "log_loss", metrics.log_loss(y_true, prediction), None, None
        yield "auroc", metrics.auroc(y_true, prediction), None, None
        n_bins = self.settings["ece_n_bins"]
        ece = metrics.expected_calibration_error(y_true, prediction, n_bins=n_bins)
        yield "ece", ece, "uniform", n_bins
        eu = (
            self.hypotheses.var(axis=1, dtype=np.float64)
            if self.reported is None
            else self.reported
        )
        yield "mean_epistemic_uncertainty", np.mean(eu, dtype=np.float64), None, None

    def _eece(self) -> Iterator[tuple[str, float, str, int]]:
        from epistemic_calibration import metrics

        binning, n_bins = self.settings["binning"], self.settings["n_bins"]
        parts = metrics.decompose_eece(
            self.y_true,
            self.hypotheses,
            epistemic_uncertainty=self.reported,
            n_bins=n_bins,
            binning=binning,
            random_state=self.settings["random_state"],
        )
        yield "eece", parts.eece, binning, n_bins
        yield "eece_calibration", parts.calibration, binning, n_bins
        yield "eece_dispersion", parts.dispersion, binning, n_bins
        yield "eece_noise_floor", parts.noise_floor, binning, n_bins

    def _corrected(self) -> Iterator[tuple[str, float, str, int]]:
        from epistemic_calibration import metrics

        binning, n_bins = self.settings["corrected_binning"], self.settings["corrected_n_bins"]
        level = self.settings["confidence_level"]
        corrected = metrics.corrected_epistemic_calibration_error(
            self.y_true, self.hypotheses, bins=self.corrected_bins, confidence_level=level
        )
        yield from _corrected_rows(corrected, binning, n_bins)
        split = metrics.split_epistemic_calibration_error(
            self.y_true,
            self.hypotheses,
            n_bins=n_bins,
            random_state=self.settings["random_state"],
            confidence_level=level,
            bins=self.corrected_bins if binning == "nested" else None,
        )
        yield "mean_miscalibration", split.mean_miscalibration.estimate, "nested", n_bins
        yield "epistemic_dependence", split.epistemic_dependence.estimate, "nested", n_bins
        bound = metrics.cross_fitted_lower_bound(
            self.y_true,
            self.hypotheses,
            random_state=self.settings["random_state"],
            confidence_level=level,
        )
        yield "tece_cross_fitted", bound.estimate, None, None
        yield "tece_cross_fitted_low", bound.ci_low, None, None

    def _tests(self) -> Iterator[tuple[str, float, str | None, int | None]]:
        from epistemic_calibration import metrics

        seed, n_resamples = self.settings["random_state"], self.settings["n_resamples"]
        drawn = {"random_state": seed, "n_resamples": n_resamples}
        calibration = metrics.epistemic_calibration_test(
            self.y_true, self.hypotheses, bins=self.corrected_bins, **drawn
        )
        mean = metrics.mean_calibration_test(self.y_true, self.hypotheses, **drawn)
        independence = metrics.epistemic_independence_test(
            self.y_true,
            self.hypotheses,
            epistemic_uncertainty=self.reported,
            random_state=seed,
        )
        binning, n_bins = self.settings["corrected_binning"], self.settings["corrected_n_bins"]
        yield "p_epistemic_calibration", calibration.p_value, binning, n_bins
        yield "p_mean_calibration", mean.p_value, "quantile", None
        yield "p_epistemic_independence", independence.p_value, None, None

    def _recalibrated(self) -> Iterator[tuple[str, float]]:
        """Yield scores before and after recalibration, on the half that it was not fitted on."""
        from sklearn.model_selection import train_test_split

        from epistemic_calibration import metrics

        fitted_on, scored_on = train_test_split(
            np.arange(len(self.y_true)),
            test_size=0.5,
            random_state=self.settings["random_state"],
            stratify=self.y_true,
        )
        recalibrator = metrics.SecondOrderRecalibrator().fit(
            self.y_true[fitted_on], self.hypotheses[fitted_on]
        )
        y_true, before = self.y_true[scored_on], self.hypotheses[scored_on]
        for when, hypotheses in (
            ("before", before),
            ("after", recalibrator.transform(before)),
        ):
            corrected = metrics.corrected_epistemic_calibration_error(
                y_true,
                hypotheses,
                n_bins=self.settings["corrected_n_bins"],
                binning=self.settings["corrected_binning"],
                random_state=self.settings["random_state"],
            )
            mean = hypotheses.mean(axis=1, dtype=np.float64)
            yield f"tece_corrected_{when}_recalibration", corrected.estimate
            yield f"log_loss_{when}_recalibration", metrics.log_loss(y_true, mean)


def _corrected_rows(
    corrected: CorrectedError, binning: str, n_bins: int
) -> Iterator[tuple[str, float, str, int]]:
    for metric, value in (
        ("tece_corrected", corrected.estimate),
        ("tece_corrected_low", corrected.ci_low),
        ("tece_corrected_high", corrected.ci_high),
        ("tece_noise_floor", corrected.noise_floor),
        ("tece_minimum_detectable", corrected.minimum_detectable),
        ("tece_dropped_mass", corrected.dropped_mass),
    ):
        yield metric, value, binning, n_bins


def _rows_of_all_tasks(
    samples: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], settings: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    from epistemic_calibration import metrics

    y_true, predictions, bins = zip(*samples, strict=True)
    corrected = metrics.mean_corrected_error(
        y_true,
        predictions,
        bins,
        confidence_level=settings["confidence_level"],
        random_state=settings["random_state"],
    )
    rows = _corrected_rows(corrected, settings["corrected_binning"], settings["corrected_n_bins"])
    for metric, value, binning, n_bins in rows:
        yield {"metric": metric, "value": value, "n_bins": n_bins, "binning": binning}


def measure_sensitivity(spec: Mapping[str, Any], folder: str | Path, output: str | Path) -> None:
    """Write how EECE and the corrected error move with the numbers of bins and hypotheses.

    Where the number of hypotheses varies, they are a random subset of the method's, and the
    bins are as many as in the benchmark; where the number of bins varies, all are used.
    Numbers beyond what there is are left out.

    Raises
    ------
    StaleResultError
        As of `score_tasks`.
    """
    import pandas as pd

    settings = spec["settings"]
    rows = []
    for task in settings["tasks"]:
        arrays, _ = _read_hypotheses(folder, task, spec)
        for row in _sensitivity(arrays, settings):
            rows.append({"task": task, **row})
        logger.info("task %s measured", task)
    context = {key: settings[key] for key in ("dataset", "seed", "method")}
    table = pd.DataFrame(rows).assign(**context, fingerprint=fingerprint(spec))
    with atomic_path(output) as path:
        table.to_csv(path, index=False)


def _sensitivity(
    arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    from epistemic_calibration import metrics

    y_true, hypotheses = arrays["y_true"], arrays["hypotheses"]
    reported = arrays.get("epistemic_uncertainty")
    n_samples, n_hypotheses = hypotheses.shape
    seed = settings["random_state"]
    order = np.random.default_rng(seed).permutation(n_hypotheses)

    cases = [("n_bins", m, hypotheses, m, m) for m in settings["n_bins_values"] if m < n_samples]
    for h in settings["n_hypotheses_values"]:
        if h <= n_hypotheses:
            chosen = hypotheses[:, order[:h]]
            bins = (settings["n_bins"], settings["corrected_n_bins"])
            cases.append(("n_hypotheses", h, chosen, *bins))
    for axis, value, rows, n_bins, corrected_n_bins in cases:
        eece = metrics.expected_epistemic_calibration_error(
            y_true,
            rows,
            epistemic_uncertainty=reported,
            n_bins=n_bins,
            binning=settings["binning"],
            random_state=seed,
        )
        corrected = metrics.corrected_epistemic_calibration_error(
            y_true,
            rows,
            n_bins=corrected_n_bins,
            binning=settings["corrected_binning"],
            random_state=seed,
        )
        common = {"axis": axis, "axis_value": value}
        yield {**common, "metric": "eece", "value": eece}
        yield {**common, "metric": "tece_corrected", "value": corrected.estimate}


def compare_methods(
    paths: Iterable[str | Path],
    expected_fingerprints: Mapping[str, str],
    methods: Sequence[str],
    *,
    confidence_level: float,
    random_state: int,
) -> pd.DataFrame:
    """Compare the methods of a data set by the corrected error, every one with every other.

    Parameters
    ----------
    paths : iterable of path
        ``results/DATASET/seedSEED/scores/METHOD.npz``, of the same seeds for all methods.
    expected_fingerprints : mapping
        By ``DATASET/seedSEED/METHOD``.
    methods : sequence of str
        Names, in the order of the pairs.
    confidence_level, random_state
        As of `metrics.compare_mean_corrected_errors`.

    Returns
    -------
    DataFrame
        One row a pair: ``method``, ``other``, ``difference`` (of the mean over tasks and
        seeds, method less other), ``standard_error``, ``ci_low``, ``ci_high``, ``p_value``,
        ``p_holm`` (Holm over all pairs).

    Raises
    ------
    StaleResultError
        As of `read_scores`.
    """
    import pandas as pd

    from epistemic_calibration import metrics

    by_key = _by_key(paths)
    labels: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    predictions: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    bins: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    for key, expected in expected_fingerprints.items():
        if key not in by_key:
            raise StaleResultError(f"no compared predictions of {key} among {sorted(by_key)}")
        arrays, _ = read_npz(by_key[key], expected_fingerprint=expected)
        method = key.rsplit("/", 1)[1]
        labels[method] += list(arrays["y_true"])
        predictions[method] += list(arrays["prediction"])
        bins[method] += list(arrays["bins"])
    y_true = labels[methods[0]]
    for method in methods:
        if not np.array_equal(labels[method], y_true):
            raise StaleResultError(f"{method} was scored on other labels than {methods[0]}")
    differences = metrics.compare_mean_corrected_errors(
        y_true,
        predictions,
        bins,
        confidence_level=confidence_level,
        random_state=random_state,
    )
    columns = ["method", "other", "difference", "standard_error", "ci_low", "ci_high", "p_value"]
    rows = [
        (*pair, d.estimate, d.standard_error, d.ci_low, d.ci_high, d.p_value)
        for pair, d in differences.items()
    ]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_holm=metrics.holm_correction(table["p_value"]) if rows else [])


def _by_key(paths: Iterable[str | Path]) -> dict[str, Path]:
    return {"/".join([*path.parts[-4:-2], path.stem]): path for path in map(Path, paths)}


def read_scores(
    paths: Iterable[str | Path], expected_fingerprints: Mapping[str, str]
) -> pd.DataFrame:
    """Read and join score files, checking that each is whole and the one meant.

    Parameters
    ----------
    paths : iterable of path
        ``results/DATASET/seedSEED/scores/METHOD.csv``
    expected_fingerprints : mapping
        By ``DATASET/seedSEED/METHOD``.

    Raises
    ------
    StaleResultError
        If a file is missing, broken, or was made under other settings.
    """
    return _join(_by_key(paths), expected_fingerprints)


def read_joined_table(path: str | Path, expected_fingerprints: Collection[str]) -> pd.DataFrame:
    """Read a table of rows from several jobs, checked to be of these and of no others.

    Raises
    ------
    StaleResultError
        If it is not.
    """
    table, found = _read_table(path)
    if found != set(expected_fingerprints):
        raise StaleResultError(
            f"{path} holds results of other settings, sources or inputs than the ones now asked "
            f"for. Delete it and run again."
        )
    return table


def read_tables(
    paths: Iterable[str | Path], expected_fingerprints: Mapping[str, str]
) -> pd.DataFrame:
    """Read and join tables named after what they hold, checked as by `read_scores`."""
    return _join({path.stem: path for path in map(Path, paths)}, expected_fingerprints)


def _join(by_key: Mapping[str, Path], expected_fingerprints: Mapping[str, str]) -> pd.DataFrame:
    import pandas as pd

    tables = []
    for key, expected in expected_fingerprints.items():
        if key not in by_key:
            raise StaleResultError(f"no table of {key} among {sorted(by_key)}")
        path = by_key[key]
        table, found = _read_table(path)
        check_fingerprint(path, found.pop() if len(found) == 1 else "mixed", expected)
        tasks = table[table["task"] != ALL_TASKS].groupby("task") if "task" in table else None
        if tasks is not None and len(set(tasks["metric"].agg(tuple))) != 1:
            raise StaleResultError(f"{path} is truncated. Delete it and run again.")
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _read_table(path: str | Path) -> tuple[pd.DataFrame, set[str]]:
    """Return a table and the fingerprints of its rows."""
    import pandas as pd

    try:
        # Names such as the task "0" are text, also where they read as a missing value ("None").
        names = dict.fromkeys(("dataset", "method", "task"), str)
        table = pd.read_csv(path, dtype=names, keep_default_na=False, na_values=[""])
        return table, set(table["fingerprint"])
    except (OSError, ValueError, KeyError) as error:
        raise StaleResultError(
            f"{path} cannot be read ({error}). Delete it and run again."
        ) from error
