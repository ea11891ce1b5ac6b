"""The plan: for each job of the benchmark, the spec that determines its outputs.

The workflow asks the plan for the spec of a job and hands it over as a file; the stages, one
file each in ``workflow_scripts/``, say what is in it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from epistemic_calibration.data import (
    DataError,
    MissingDataError,
    class_names_of,
    has_features,
    has_label_counts,
    label_counts_inventory,
    raw_inventory,
    task_names,
)
from epistemic_calibration.latents import load_encoder
from epistemic_calibration.methods import method_path, user_file
from epistemic_calibration.paper.toy import load_experiment
from epistemic_calibration.scoring._resamples import adequate_resamples
from epistemic_calibration.workflow.config import Config, MethodEntry
from epistemic_calibration.workflow.ledger import Ledger
from epistemic_calibration.workflow.provenance import fingerprint, spec_path
from epistemic_calibration.workflow.sources import SCRIPTS, files_below, source_hashes
from epistemic_calibration.workflow.stage import Stage


@cache
def stages() -> dict[str, Stage]:
    """Return the stages by name: every script that defines ``STAGE``."""
    found = {}
    for path in sorted(SCRIPTS.glob("*.py")):
        module_spec = importlib.util.spec_from_file_location(f"stage_{path.stem}", path)
        module = importlib.util.module_from_spec(module_spec)
        # Dataclasses look their module up.
        sys.modules[module_spec.name] = module
        module_spec.loader.exec_module(module)
        if hasattr(module, "STAGE"):
            found[path.stem] = module.STAGE
    return found


class Encoding(NamedTuple):
    """How the latents of a data set are made of its inputs."""

    encoder: str
    encoder_parameters: dict[str, Any]
    scaling: str


class UnavailableDatasetError(ValueError):
    """The raw data of a data set are not there, or must not be read."""


class Plan:
    """Specs and fingerprints of all jobs under one configuration.

    Parameters
    ----------
    config : Config
        From `config.resolve_config`.
    base_dir : path
        Folder that relative paths start from.
    """

    def __init__(self, config: Config, base_dir: str | Path = ".") -> None:
        self.config = config
        self.base_dir = Path(base_dir)
        self.data_dir = self.base_dir / Path(config.data_dir).expanduser()
        #: Stage and wildcards of the specs that were asked for, by `spec_path`.
        self.asked: dict[str, tuple[str, dict[str, str]]] = {}

    # What the configuration says of methods, data sets and tasks

    @cached_property
    def entries(self) -> dict[str, MethodEntry]:
        """Methods and controls by name, methods first."""
        return {**self.config.methods, **self.config.controls}

    @cached_property
    def unavailable(self) -> dict[str, str]:
        """Data sets whose raw data are not there or must not be read: why, by name.

        Raises
        ------
        ValueError
            If a data set that is there is wrong.
        """
        found = {}
        for dataset in self.config.datasets:
            try:
                self.tasks(dataset)
                self.encoding(dataset)
            except UnavailableDatasetError as error:
                found[dataset] = str(error)
        return found

    def methods(self, dataset: str) -> list[str]:
        """Return the names of the methods and controls that run on a data set."""
        return [name for name, entry in self.entries.items() if dataset in entry.datasets]

    def methods_shown(self, names: list[str]) -> dict[str, dict[str, str]]:
        """Return what tables and figures show of methods: label and family, by name."""
        entries = {name: self.entries[name] for name in names}
        return {n: {"label": e.label, "family": e.family} for n, e in entries.items()}

    @property
    def fitted(self) -> list[str]:
        """Names of the methods that are fitted here."""
        return [name for name, entry in self.entries.items() if not entry.predictions]

    @property
    def imported(self) -> list[str]:
        """Names of the methods whose predictions were made elsewhere."""
        return [name for name, entry in self.entries.items() if entry.predictions]

    def method_source(self, method: str) -> Path:
        """Return the file that defines a method."""
        implementation = self.entries[method].implementation
        path = method_path(implementation)
        return self.base_dir / path if user_file(implementation) else path

    def method_sources(self, method: str) -> list[Path]:
        """Return the file that defines a method, and those that its entry lists beside it."""
        found = [self.method_source(method)]
        for name in self.entries[method].depends_on:
            path = self.base_dir / name
            found += files_below(path) if path.is_dir() else [path]
        return found

    def prediction_files(self, dataset: str, seed: int | str, method: str) -> dict[str, Path]:
        """Return the files of predictions made elsewhere, by task."""
        pattern = self.entries[method].predictions
        return {
            task: self.base_dir / pattern.format(dataset=dataset, seed=seed, task=task)
            for task in self.tasks(dataset)
        }

    def missing_predictions(self) -> list[Path]:
        """Return the files of predictions made elsewhere that are not there or not readable."""
        files = (
            path
            for dataset in self.config.datasets
            if dataset not in self.unavailable
            for method in self.imported
            if dataset in self.entries[method].datasets
            for seed in self.config.seeds
            for path in self.prediction_files(dataset, seed, method).values()
        )
        # One file of all classes is that of each task.
        return [path for path in dict.fromkeys(files) if not os.access(path, os.R_OK)]

    @cache
    def class_names(self, dataset: str) -> tuple[str, ...]:
        """Return the classes of a data set, without loading its inputs.

        Raises
        ------
        ValueError
            If they cannot be told; the message names the data set.
        """
        with _naming(dataset):
            return tuple(class_names_of(self.config.datasets[dataset].source, self.data_dir))

    @cache
    def encoding(self, dataset: str) -> Encoding:
        """Return how the latents of a data set are made, where "auto" too is one of the names.

        Raises
        ------
        ValueError
            If the encoder needs images and the data set has features, or which of them it has
            cannot be told; the message names the data set.
        """
        block = self.config.datasets[dataset]
        with _naming(dataset):
            features = has_features(block.source, self.data_dir)
        encoder = block.encoder
        if encoder == "auto":
            encoder = "none" if features else "autoencoder"
        if features and not load_encoder(encoder).takes_features:
            raise ValueError(
                f"datasets.{dataset}.latents.encoder: {encoder} encodes images, and this data set "
                f"has features, which need no encoder: set it to none or auto, here or at the top "
                f"level"
            )
        scaling = block.scaling
        if scaling == "auto":
            scaling = "standard" if features else "none"
        # With "auto" the parameters are those of the autoencoder.
        parameters = {} if features else block.encoder_parameters
        return Encoding(encoder, parameters, scaling)

    @cache
    def raw_inventory(self, dataset: str) -> dict[str, Any]:
        """Return what tells the raw data of a data set from others."""
        with _naming(dataset):
            return raw_inventory(self.config.datasets[dataset].source, self.data_dir)

    @cache
    def has_label_counts(self, dataset: str) -> bool:
        """Return whether several labels of each test input of a data set are known.

        Raises
        ------
        ValueError
            If that cannot be told; the message names the data set.
        """
        with _naming(dataset):
            return has_label_counts(self.config.datasets[dataset].source, self.data_dir)

    @cache
    def label_counts_inventory(self, dataset: str) -> dict[str, Any]:
        """Return what tells the several labels of a data set from others."""
        return label_counts_inventory(self.config.datasets[dataset].source, self.data_dir)

    @cache
    def tasks(self, dataset: str) -> dict[str, int]:
        """Return the one-vs-all tasks of a data set: path-safe name -> positive class.

        Two classes make one task, by default that of the second: the other would be the same
        with the labels exchanged, and count one finding twice.

        Raises
        ------
        ValueError
            If ``tasks`` names a class that the data set does not have, or both of two.
        """
        classes = self.class_names(dataset)
        chosen = self.config.datasets[dataset].tasks
        if chosen == "all":
            chosen = classes if len(classes) > 2 else classes[1:]
        elif len(classes) == 2 and set(chosen) == set(classes):
            raise ValueError(
                f"datasets.{dataset}.tasks: with two classes the tasks {chosen[0]!r} and "
                f"{chosen[1]!r} are one with the labels exchanged, and would count each finding "
                f"twice; name one"
            )
        safe, tasks = task_names(classes), {}
        for name in chosen:
            if name not in classes:
                raise ValueError(
                    f"datasets.{dataset}.tasks: no class {name!r}; the classes are "
                    f"{', '.join(classes)}"
                )
            tasks[safe[classes.index(name)]] = classes.index(name)
        return tasks

    def task_labels(self, dataset: str) -> dict[str, str]:
        """Return the class that each task is named after, where its path-safe name differs."""
        classes = self.class_names(dataset)
        return {task: classes[k] for task, k in self.tasks(dataset).items() if classes[k] != task}

    def task_chunks(self, dataset: str) -> list[list[str]]:
        """Return the tasks of a data set in the groups that one job fits."""
        tasks, size = list(self.tasks(dataset)), self.config.tasks_per_job
        return [tasks[start : start + size] for start in range(0, len(tasks), size)]

    @property
    def fits_one_by_one(self) -> bool:
        """Whether each job that fits a method fits one task, and is named after it."""
        return self.config.tasks_per_job == 1

    def fits(self, dataset: str) -> dict[str, list[str]]:
        """Return the tasks of each job that fits a method, by what its logs have in their names.

        That is the number of the chunk; where each is of one task, that task.
        """
        chunks = self.task_chunks(dataset)
        if self.fits_one_by_one:
            return {task: [task] for (task,) in chunks}
        return {str(number): chunk for number, chunk in enumerate(chunks)}

    @cache
    def finished_scores(self, dataset: str) -> dict[tuple[int, str], str]:
        """Return the score files of a data set that are there and current, by seed and method."""
        ledger, finished = Ledger(self.base_dir), {}
        for seed in self.config.seeds:
            for method in self.methods(dataset):
                path = f"results/{dataset}/seed{seed}/scores/{method}.csv"
                where = {"dataset": dataset, "seed": seed, "method": method}
                # Old scores of a method that fails now are not finished.
                if ledger.state(path, self.fingerprint("scores", **where)) == "current":
                    finished[seed, method] = path
        return finished

    @cache
    def score_settings(self, dataset: str) -> dict[str, Any]:
        """Return how hypotheses of a data set are scored, with the number of resamples."""
        settings = self.config.datasets[dataset].scores.model_dump()
        if settings["n_resamples"] == "auto":
            n_tests = len(self.methods(dataset)) * len(self.tasks(dataset))
            settings["n_resamples"] = adequate_resamples(n_tests)
        return settings

    def failures(self, dataset: str) -> dict[str, str]:
        """Return why methods have no scores on a data set, by name, where a log tells."""
        from epistemic_calibration.workflow.status import dataset_status

        return {
            status.method: status.reason
            for status in dataset_status(self, dataset)
            if status.state == "failed"
        }

    def toy_runs(self, toy: str, experiment: str) -> list[str]:
        """Return what a toy experiment is run with, one table each: methods, then controls."""
        return load_experiment(experiment).runs(getattr(self.config, toy)[experiment]["methods"])

    def page_contents(self, page: str) -> tuple[list[str], str | None]:
        """Return the data sets of a page, and its toy experiments: ``toy``, ``toy_demo`` or None.

        Parameters
        ----------
        page : str
            A data set; ``demo``; or ``all``, the benchmark.
        """
        if page == "all":
            return list(self.config.benchmark), "toy"
        return (["digits"], "toy_demo") if page == "demo" else ([page], None)

    # Specs

    def fit_stage(self, method: str) -> str:
        """Return the stage that makes a method's files of hypotheses."""
        return "predictions" if method in self.imported else "hypotheses"

    def score_fingerprints(self, dataset: str, seeds: Sequence[int] | None = None) -> list[str]:
        """Return the fingerprints of all score files of a data set, by seed and method."""
        return [
            self.fingerprint("scores", dataset=dataset, seed=seed, method=method)
            for seed in (self.config.seeds if seeds is None else seeds)
            for method in self.methods(dataset)
        ]

    def table_fingerprints(self, dataset: str) -> list[str]:
        """Return the fingerprints of all that tables and figures of a data set are made of."""
        bounds = [self.fingerprint("bounds", dataset=dataset, seed=s) for s in self.config.seeds]
        return [*self.score_fingerprints(dataset), *bounds]

    def fingerprint(self, stage: str, **where: Any) -> str:
        """Return the fingerprint of a job's spec, which the receipts of its outputs carry."""
        return self._fingerprint(stage, _sorted_items(where))

    def spec_path(self, stage: str, **where: Any) -> str:
        """Return where the spec of a job is kept."""
        return self._spec_path(stage, _sorted_items(where))

    @cache
    def _fingerprint(self, stage: str, where: tuple[tuple[str, str], ...]) -> str:
        return fingerprint(self.spec(stage, **dict(where)))

    # The scheduler asks again for every job that is ready, whenever it looks for one to run.
    @cache
    def _spec_path(self, stage: str, where: tuple[tuple[str, str], ...]) -> str:
        path = spec_path(self.spec(stage, **dict(where)))
        self.asked[path] = (stage, dict(where))
        return path

    def spec(self, stage: str, **where: Any) -> dict[str, Any]:
        """Return the spec of a job, which is made once; it must not be changed.

        Parameters
        ----------
        stage : str
        **where
            The job's wildcards.

        Raises
        ------
        TypeError
            If the stage and its settings do not fit each other.
        ValueError
            If the configuration asks for what there is not.
        """
        return self._spec(stage, _sorted_items(where))

    @cache
    def _spec(self, stage: str, items: tuple[tuple[str, str], ...]) -> dict[str, Any]:
        where = dict(items)
        needs = stages()[stage].needs(self, **where)
        # An input that the spec does not name could change, and nothing would be made again.
        inputs = {name.rstrip("*") for name in stages()[stage].inputs}
        if different := inputs ^ set(needs.inputs):
            raise TypeError(
                f"{stage}.py: {', '.join(sorted(different))} must be both in `inputs` of the stage "
                f"and in what `needs` returns"
            )
        return {
            "stage": stage,
            "where": where,
            "threads": self.config.threads,
            "settings": stages()[stage].spec_settings(needs.settings),
            "sources": source_hashes(self.base_dir, SCRIPTS / f"{stage}.py", *needs.sources),
            "inputs": _sorted_inputs(needs.inputs),
        }


@contextmanager
def _naming(dataset: str) -> Iterator[None]:
    """Have what is raised of a data set name it."""
    try:
        yield
    except (DataError, ValueError, OSError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        unavailable = isinstance(error, MissingDataError | PermissionError)
        raise (UnavailableDatasetError if unavailable else ValueError)(
            f"datasets.{dataset}: {text}"
        ) from error


def _sorted_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v if isinstance(v, str) else sorted(v) for n, v in inputs.items()}


def _sorted_items(where: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in where.items()))
