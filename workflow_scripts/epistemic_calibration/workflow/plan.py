"""The plan: for each job of the benchmark, the spec that determines its outputs.

The spec of a job is a file among its inputs, which the plan writes; the stages, one file each in
``workflow_scripts/stages/``, say what is in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from epistemic_calibration.data import (
    DataError,
    MissingDataError,
    class_names_of,
    has_features,
    task_names,
)
from epistemic_calibration.files import write_text
from epistemic_calibration.latents import load_encoder
from epistemic_calibration.methods import method_path, user_file
from epistemic_calibration.paper.toy import load_experiment
from epistemic_calibration.scores._resamples import adequate_resamples
from epistemic_calibration.workflow.config import Config, MethodEntry
from epistemic_calibration.workflow.provenance import (
    fingerprint,
    is_current,
    job_name,
    spec_path,
)
from epistemic_calibration.workflow.sources import FORMAT, STAGES, files_below, source_hashes
from epistemic_calibration.workflow.stage import Stage, load_stage


@cache
def stages() -> dict[str, Stage]:
    """Return the stages by name."""
    return {path.stem: load_stage(path) for path in sorted(STAGES.glob("*.py"))}


class Encoding(NamedTuple):
    """How the latents of a data set are made of its inputs."""

    encoder: str
    encoder_parameters: dict[str, Any]
    scaling: str


class UnavailableDatasetError(ValueError):
    """The raw data of a data set are not there."""


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
        #: Stage and wildcards of the jobs whose specs were asked for, by name.
        self.asked: dict[str, tuple[str, dict[str, str]]] = {}

    # What the configuration says of methods, data sets and tasks

    @cached_property
    def entries(self) -> dict[str, MethodEntry]:
        """Methods and controls by name, methods first."""
        return {**self.config.methods, **self.config.controls}

    @cached_property
    def unavailable(self) -> dict[str, str]:
        """Data sets whose raw data are not there: why, by name."""
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

    def seeds(self, dataset: str, method: str | None = None) -> list[int]:
        """Return the seeds that a method, or any, is trained with on a data set."""
        methods = self.methods(dataset) if method is None else [method]
        more = [seed for name in methods for seed in self.entries[name].more_seeds]
        return list(dict.fromkeys([*self.config.datasets[dataset].seeds, *more]))

    def trainings(self, dataset: str) -> list[tuple[int, str]]:
        """Return the seed and the method of each training on a data set, by seed."""
        return [
            (seed, method)
            for seed in self.seeds(dataset)
            for method in self.methods(dataset)
            if seed in self.seeds(dataset, method)
        ]

    def encoder_seed(self, dataset: str, seed: int | str) -> int:
        """Return the seed of the encoder whose latents a training uses."""
        return self.seeds(dataset)[0] if self.config.share_encoder else int(seed)

    def has_one_encoder(self, dataset: str) -> bool:
        """Return whether all trainings on a data set have the latents of one trained encoder."""
        trained = self.encoding(dataset).encoder != "none"
        return trained and len(self.encoder_seeds(dataset)) == 1

    def encoder_seeds(self, dataset: str) -> list[int]:
        """Return the seeds that the encoder of a data set is trained with."""
        return sorted({self.encoder_seed(dataset, seed) for seed in self.seeds(dataset)})

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

    def method_sources(self, method: str) -> list[Path]:
        """Return the file that defines a method, and those that its entry lists beside it."""
        entry = self.entries[method]
        path = method_path(entry.implementation)
        found = [self.base_dir / path if user_file(entry.implementation) else path]
        for name in entry.depends_on:
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

    @cache
    def of_source(self, function: Callable[[dict[str, Any], Path], Any], dataset: str) -> Any:
        """Return what a function of `epistemic_calibration.data` says of a data set's source."""
        try:
            return function(self.config.datasets[dataset].source, self.data_dir)
        except (DataError, ValueError, OSError) as error:
            missing = isinstance(error, MissingDataError | PermissionError)
            kind = UnavailableDatasetError if missing else ValueError
            text = str(error).replace("datasets.<name>", f"datasets.{dataset}")
            raise kind(f"datasets.{dataset}: {text}") from error

    @cache
    def encoding(self, dataset: str) -> Encoding:
        """Return how the latents of a data set are made, where "auto" too is one of the names."""
        block = self.config.datasets[dataset]
        features = self.of_source(has_features, dataset)
        encoder = block.encoder
        if encoder == "auto":
            encoder = "none" if features else "autoencoder"
        if features and not load_encoder(encoder).takes_features:
            raise ValueError(
                f"datasets.{dataset}.latents.encoder: {encoder} encodes images, and this data set "
                f"has features, which need no encoder: set it to none or auto, here or at the top "
                f"level, and give {encoder} in the blocks of data sets of images"
            )
        scaling = block.scaling
        if scaling == "auto":
            scaling = "standard" if features else "none"
        # With "auto" the parameters are those of the autoencoder.
        parameters = {} if features else block.encoder_parameters
        return Encoding(encoder, parameters, scaling)

    @cache
    def tasks(self, dataset: str) -> dict[str, int]:
        """Return the one-vs-all tasks of a data set: path-safe name -> positive class.

        Two classes make one task, by default that of the second: the other would be the same
        with the labels exchanged, and count one finding twice.
        """
        classes = self.of_source(class_names_of, dataset)
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
        classes = self.of_source(class_names_of, dataset)
        return {task: classes[k] for task, k in self.tasks(dataset).items() if classes[k] != task}

    @cache
    def score_settings(self, dataset: str) -> dict[str, Any]:
        """Return how hypotheses of a data set are scored, with the number of resamples."""
        settings = self.config.datasets[dataset].scores.model_dump()
        if settings["n_resamples"] == "auto":
            n_tests = len(self.methods(dataset)) * len(self.tasks(dataset))
            settings["n_resamples"] = adequate_resamples(n_tests)
        return settings

    def toy_runs(self, experiment: str) -> list[str]:
        """Return what a toy experiment is run with, one table each: methods, then controls."""
        return load_experiment(experiment).runs(self.config.toy[experiment]["methods"])

    # Specs

    def hypotheses_of(self, **where: Any) -> dict[str, str]:
        """Return the job that makes a method's hypotheses, as `made_by` returns it."""
        stage = "predictions" if where["method"] in self.imported else "hypotheses"
        return self.made_by(stage, **where)

    def scores_of(self, dataset: str, seeds: Sequence[int] | None = None) -> dict[str, str]:
        """Return the jobs that score all methods of a data set, as `made_by` returns them."""
        found: dict[str, str] = {}
        for seed, method in self.trainings(dataset):
            if seeds is None or seed in seeds:
                found |= self.made_by("scores", dataset=dataset, seed=seed, method=method)
        return found

    def table_inputs_of(self, dataset: str) -> dict[str, str]:
        """Return the jobs that make what tables and figures of a data set are made of."""
        found = self.scores_of(dataset)
        for seed in self.seeds(dataset):
            found |= self.made_by("bounds", dataset=dataset, seed=seed)
        return found

    def made_by(self, stage: str, **where: Any) -> dict[str, str]:
        """Return a job, by its name the fingerprint of its spec, which its receipt carries."""
        name, _, made_from = self._job(stage, **{key: str(where[key]) for key in where})
        return {name: made_from}

    def spec(self, stage: str, **where: Any) -> dict[str, Any]:
        """Return the spec of a job: everything that determines its outputs."""
        return self._job(stage, **{key: str(where[key]) for key in where})[1]

    @cache
    def write_spec(self, stage: str, **where: Any) -> str:
        """Write the spec of a job, unless it is there, and return its path.

        Its time says whether the job's outputs are those that it asks for: it is in the distant
        past if they are, and now if they are not, which makes them older than an input of theirs.
        """
        where = {key: str(where[key]) for key in where}
        name, spec, made_from = self._job(stage, **where)
        self.asked[name] = (stage, where)
        path = self.base_dir / spec_path(name)
        text = json.dumps(spec, sort_keys=True, indent=1, allow_nan=False) + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
            write_text(path, text)
        os.utime(path, (0, 0) if is_current(name, made_from, self.base_dir) else None)
        return spec_path(name)

    @cache
    def _job(self, stage: str, **where: str) -> tuple[str, dict[str, Any], str]:
        """Return the name, the spec and its fingerprint of a job."""
        made = stages()[stage]
        needs = made.needs(self, **where)
        spec = {
            "format": FORMAT,
            "stage": stage,
            "where": where,
            "threads": self.config.threads if made.threads else 1,
            "settings": needs.settings,
            "sources": source_hashes(self.base_dir, STAGES / f"{stage}.py", *needs.sources),
            "inputs": needs.inputs,
        }
        return job_name(stage, where), spec, fingerprint(spec)
