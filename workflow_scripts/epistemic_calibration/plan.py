"""The plan: for each file of the benchmark, the spec that determines its content.

The workflow asks the plan what a job depends on, hands the answer to the job as its one
parameter, and the job stores it in the file. Nothing here reads a result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from epistemic_calibration.data import DataError, class_names_of, raw_inventory, task_name
from epistemic_calibration.methods import method_path
from epistemic_calibration.provenance import canonical_json, fingerprint
from epistemic_calibration.sources import source_files, source_hashes

SCRIPTS = Path(__file__).resolve().parents[1]
PUBLISHED_TABLES = SCRIPTS.parent / "resources" / "published_tables.csv"

#: The script that makes each stage.
STAGE_SCRIPTS = {
    "images": "load_images.py",
    "autoencoder": "train_autoencoder.py",
    "autoencoder_figures": "plot_autoencoder.py",
    "latents": "encode_latents.py",
    "neighbors": "find_neighbors.py",
    "hypotheses": "fit_method.py",
    "predictions": "import_predictions.py",
    "scores": "score_hypotheses.py",
    "sensitivity": "measure_sensitivity.py",
    "sensitivity_figure": "plot_sensitivity.py",
    "tables": "make_tables.py",
    "partial_tables": "make_tables.py",
    "comparisons": "compare_methods.py",
    "runtimes": "tabulate_runtimes.py",
    "figures": "make_figures.py",
    "paper_comparison": "compare_with_paper.py",
    "toy_data": "run_toy_experiment.py",
    "toy_figures": "plot_toy_experiment.py",
    "claims": "check_claims.py",
    "resolved_config": "write_config.py",
}


class Plan:
    """Specs and fingerprints of every stage under one resolved configuration.

    Parameters
    ----------
    config : mapping
        As returned by `config.resolve_config`.
    base_dir : path
        Folder that relative paths start from.
    """

    def __init__(self, config: Mapping[str, Any], base_dir: str | Path = ".") -> None:
        self.config = config
        self.base_dir = Path(base_dir)
        self.data_dir = self.base_dir / config["data_dir"]

    @cached_property
    def entries(self) -> dict[str, dict[str, Any]]:
        """Methods and controls by name, methods first."""
        return {**self.config["methods"], **self.config["controls"]}

    def methods(self, dataset: str) -> list[str]:
        """Return the names of the methods and controls that run on a data set."""
        return [name for name, entry in self.entries.items() if dataset in entry["datasets"]]

    @property
    def fitted(self) -> list[str]:
        """Names of the methods that are fitted here."""
        return [name for name, entry in self.entries.items() if "predictions" not in entry]

    @property
    def imported(self) -> list[str]:
        """Names of the methods whose predictions were made elsewhere."""
        return [name for name, entry in self.entries.items() if "predictions" in entry]

    def prediction_files(self, dataset: str, seed: int | str, method: str) -> dict[str, Path]:
        """Return the files of predictions made elsewhere, by task."""
        pattern = self.entries[method]["predictions"]
        return {
            task: self.base_dir / pattern.format(dataset=dataset, seed=seed, task=task)
            for task in self.tasks(dataset)
        }

    def missing_predictions(self) -> list[Path]:
        """Return the files of predictions made elsewhere that should be there and are not."""
        return [
            path
            for dataset in self.config["datasets"]
            for method in self.imported
            if dataset in self.entries[method]["datasets"]
            for seed in self.config["seeds"]
            for path in self.prediction_files(dataset, seed, method).values()
            if not path.is_file()
        ]

    @cache
    def class_names(self, dataset: str) -> tuple[str, ...]:
        """Return the classes of a data set, without loading its images.

        Raises
        ------
        ValueError
            If they cannot be told; the message names the data set.
        """
        try:
            return tuple(class_names_of(self._source(dataset), self.data_dir))
        except (DataError, ValueError) as error:
            raise ValueError(f"datasets.{dataset}: {error}") from error

    @cache
    def tasks(self, dataset: str) -> dict[str, int]:
        """Return the one-vs-all tasks of a data set: path-safe name -> positive class.

        Raises
        ------
        ValueError
            If ``tasks`` names a class that the data set does not have, or two classes
            have the same path-safe name.
        """
        classes = self.class_names(dataset)
        chosen = self.config["datasets"][dataset]["tasks"]
        chosen = classes if chosen == "all" else chosen
        tasks: dict[str, int] = {}
        for name in chosen:
            if name not in classes:
                raise ValueError(
                    f"datasets.{dataset}.tasks: no class {name!r}; the classes are "
                    f"{', '.join(classes)}"
                )
            safe = task_name(name)
            if safe in tasks:
                raise ValueError(
                    f"datasets.{dataset}: classes {classes[tasks[safe]]!r} and {name!r} share the "
                    f"path-safe name {safe!r}; rename one"
                )
            tasks[safe] = classes.index(name)
        return tasks

    def finished_scores(self, dataset: str) -> dict[str, Path]:
        """Return the score files of a data set that exist, by DATASET/seedSEED/METHOD."""
        files = {}
        for seed in self.config["seeds"]:
            for method in self.methods(dataset):
                path = Path("results", dataset, f"seed{seed}", "scores", f"{method}.csv")
                if (self.base_dir / path).is_file():
                    files[f"{dataset}/seed{seed}/{method}"] = path
        return files

    def task_chunks(self, dataset: str) -> list[list[str]]:
        """Return the tasks of a data set in the groups that one job fits."""
        tasks, size = list(self.tasks(dataset)), self.config["tasks_per_job"]
        return [tasks[start : start + size] for start in range(0, len(tasks), size)]

    def sources(self, stage: str, method: str | None = None) -> list[Path]:
        """Return the source files that a job of ``stage`` runs, its script first."""
        entries = self._entry_points(stage, method)
        script = entries[0].resolve()
        return [script, *(path for path in source_files(*entries) if path != script)]

    def spec_json(self, stage: str, **wildcards: Any) -> str:
        """Return a job's spec as canonical JSON."""
        return self._spec_json(stage, _sorted_items(wildcards))

    def fingerprint(self, stage: str, **wildcards: Any) -> str:
        """Return the fingerprint that the files of a job carry."""
        return self._fingerprint(stage, _sorted_items(wildcards))

    # The scheduler asks again for every job that is ready, whenever it looks for one to run.
    @cache
    def _spec_json(self, stage: str, wildcards: tuple[tuple[str, str], ...]) -> str:
        return canonical_json(self.spec(stage, **dict(wildcards)))

    @cache
    def _fingerprint(self, stage: str, wildcards: tuple[tuple[str, str], ...]) -> str:
        return fingerprint(self.spec(stage, **dict(wildcards)))

    def spec(
        self,
        stage: str,
        method: str | None = None,
        **wildcards: Any,
    ) -> dict[str, Any]:
        """Return a job's spec: stage, settings, sources, fingerprints of its inputs."""
        if method is not None:
            wildcards["method"] = method
        settings, inputs = getattr(self, f"_{stage}")(**wildcards)
        return {
            "stage": stage,
            "settings": {"threads": self.config["threads"], **settings},
            "sources": source_hashes(*self._entry_points(stage, method)),
            "inputs": inputs,
        }

    def _entry_points(self, stage: str, method: str | None) -> list[Path]:
        entries = [SCRIPTS / STAGE_SCRIPTS[stage]]
        if stage == "paper_comparison":
            entries.append(PUBLISHED_TABLES)
        if stage in ("hypotheses", "toy_data") and method in self.entries:
            implementation = self.entries[method]["implementation"]
            path = method_path(implementation)
            entries.append(self.base_dir / path if implementation.endswith(".py") else path)
        return entries

    def _source(self, dataset: str) -> dict[str, Any]:
        block = self.config["datasets"][dataset]
        return {
            key: value
            for key, value in block.items()
            if key not in ("autoencoder", "latents", "scores", "tasks")
        }

    # One function a stage: (settings, fingerprints of inputs).

    def _images(self, dataset):
        source = self._source(dataset)
        inventory = raw_inventory(source, self.data_dir)
        return {"dataset": dataset, "source": source, "inventory": inventory}, {}

    def _autoencoder(self, dataset, seed):
        settings = {
            "dataset": dataset,
            "seed": int(seed),
            "device": self.config["device"],
            **self.config["datasets"][dataset]["autoencoder"],
        }
        return settings, {"images": self.fingerprint("images", dataset=dataset)}

    def _autoencoder_figures(self, dataset, seed):
        inputs = {
            "images": self.fingerprint("images", dataset=dataset),
            "autoencoder": self.fingerprint("autoencoder", dataset=dataset, seed=seed),
        }
        return {"dataset": dataset, "seed": int(seed)}, inputs

    def _latents(self, dataset, seed):
        scaling = self.config["datasets"][dataset]["latents"]["scaling"]
        inputs = {
            "images": self.fingerprint("images", dataset=dataset),
            "autoencoder": self.fingerprint("autoencoder", dataset=dataset, seed=seed),
        }
        return {"scaling": scaling, "device": self.config["device"]}, inputs

    def _neighbors(self, dataset, seed):
        n_neighbors = self.config["datasets"][dataset]["latents"]["n_neighbors"]
        inputs = {"latents": self.fingerprint("latents", dataset=dataset, seed=seed)}
        return {"n_neighbors": n_neighbors}, inputs

    def _hypotheses(self, dataset, seed, method):
        entry = self.entries[method]
        settings = {
            "dataset": dataset,
            "seed": int(seed),
            "method": method,
            "implementation": entry["implementation"],
            "parameters": entry["parameters"],
        }
        inputs = {"latents": self.fingerprint("latents", dataset=dataset, seed=seed)}
        if entry["uses_neighbors"]:
            inputs["neighbors"] = self.fingerprint("neighbors", dataset=dataset, seed=seed)
        return settings, inputs

    def _predictions(self, dataset, seed, method):
        digests = {}
        for task, path in self.prediction_files(dataset, seed, method).items():
            if not path.is_file():
                raise ValueError(f"methods.{method}.predictions: no such file: {path}")
            digests[task] = hashlib.sha256(path.read_bytes()).hexdigest()
        settings = {"dataset": dataset, "seed": int(seed), "method": method, "files": digests}
        return settings, {"latents": self.fingerprint("latents", dataset=dataset, seed=seed)}

    def _scores(self, dataset, seed, method):
        settings = {
            "dataset": dataset,
            "seed": int(seed),
            "method": method,
            "tasks": list(self.tasks(dataset)),
            **self.config["datasets"][dataset]["scores"],
        }
        stage = "predictions" if method in self.imported else "hypotheses"
        fit = self.fingerprint(stage, dataset=dataset, seed=seed, method=method)
        return settings, {"hypotheses": fit}

    def _sensitivity(self, dataset, seed, method):
        settings, inputs = self._scores(dataset, seed, method)
        block = self.config["sensitivity"]
        settings["tasks"] = settings["tasks"][: block["n_tasks"]]
        for axis in ("n_bins", "n_hypotheses"):
            settings[f"{axis}_values"] = block[axis]
        return settings, inputs

    def _sensitivity_figure(self, dataset):
        seed = self.config["seeds"][0]
        inputs = {
            method: self.fingerprint("sensitivity", dataset=dataset, seed=seed, method=method)
            for method in self.methods(dataset)
        }
        shown = self._methods_shown(self.methods(dataset))
        return {"dataset": dataset, "methods": shown}, inputs

    def _score_fingerprints(self, datasets):
        return {
            f"{dataset}/seed{seed}/{method}": self.fingerprint(
                "scores", dataset=dataset, seed=seed, method=method
            )
            for dataset in datasets
            for seed in self.config["seeds"]
            for method in self.methods(dataset)
        }

    def _methods_shown(self, names):
        return {name: {k: self.entries[name][k] for k in ("label", "family")} for name in names}

    def _resolved_config(self):
        return {"config": self.config}, {}

    def _figures(self, dataset):
        return (
            {"dataset": dataset, "methods": self._methods_shown(self.methods(dataset))},
            self._score_fingerprints([dataset]),
        )

    def _tables(self, dataset):
        settings, inputs = self._figures(dataset)
        expected = {"tasks": list(self.tasks(dataset)), "seeds": self.config["seeds"]}
        n_resamples = self.config["datasets"][dataset]["scores"]["n_resamples"]
        return {**settings, **expected, "n_resamples": n_resamples}, inputs

    def _comparisons(self, dataset):
        settings, inputs = self._figures(dataset)
        block = self.config["datasets"][dataset]["scores"]
        keys = ("confidence_level", "random_state")
        return {**settings, **{key: block[key] for key in keys}}, inputs

    def _runtimes(self, dataset):
        settings, inputs = self._figures(dataset)
        return {**settings, "seeds": self.config["seeds"]}, inputs

    def _partial_tables(self, dataset):
        settings, inputs = self._tables(dataset)
        return settings, {key: inputs[key] for key in self.finished_scores(dataset)}

    def toy_methods(self, toy: str, experiment: str) -> list[str]:
        """Return what a toy experiment is run with, one table each."""
        methods = self.config[toy][experiment]["methods"]
        if experiment == "dataset":
            return ["mixture"]
        return [*methods, "oracle"] if experiment == "eece_per_method" else methods

    def _toy_data(self, toy, experiment, method):
        block = dict(self.config[toy][experiment])
        seeds, _ = block.pop("seeds"), block.pop("methods")
        settings = {"experiment": experiment, "seeds": seeds, "arguments": block}
        if method in self.entries:
            entry = self.entries[method]
            block |= {"method": method, "implementation": entry["implementation"]}
            if experiment == "calibration_plots":
                block["variants"] = {
                    name: {**entry["parameters"], **changes}
                    for name, changes in block["variants"].items()
                }
            else:
                block["parameters"] = entry["parameters"]
        elif method == "oracle":
            block["method"] = method
        return settings, {}

    def _toy_figures(self, toy, experiment):
        methods = self.toy_methods(toy, experiment)
        shown = [name for name in methods if name in self.entries]
        labels = {name: self.entries[name]["label"] for name in shown}
        arguments = {"labels": labels}
        if experiment == "calibration_plots":
            arguments = {"label": labels[methods[0]]}
        elif experiment == "dataset":
            arguments = {}
        inputs = {
            name: self.fingerprint("toy_data", toy=toy, experiment=experiment, method=name)
            for name in methods
        }
        return {"experiment": experiment, "arguments": arguments}, inputs

    def _claims(self):
        toy = {
            experiment: {
                name: self.fingerprint("toy_data", toy="toy", experiment=experiment, method=name)
                for name in self.toy_methods("toy", experiment)
            }
            for experiment in self.config["toy"]
        }
        return {}, {"scores": self._score_fingerprints(self.config["benchmark"]), "toy": toy}

    def _paper_comparison(self):
        return (
            {"methods": self._methods_shown(self.entries)},
            self._score_fingerprints(self.config["benchmark"]),
        )


def _sorted_items(wildcards: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in wildcards.items()))
