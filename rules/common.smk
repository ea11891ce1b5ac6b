# What the rules share: the resolved configuration, the plan, and helpers for paths.
import os
import re
import shlex
import sys
import uuid
from pathlib import Path

from snakemake.exceptions import WorkflowError

RESOURCES = Path(os.path.relpath(workflow.basedir)) / "resources"
sys.path.insert(0, str(Path(workflow.basedir) / "workflow_scripts"))

from epistemic_calibration.config import (
    check_duplicate_keys,
    resolve_config,
    retype_overrides,
)
from epistemic_calibration.manifest import append_manifest
from epistemic_calibration.plan import Plan
from epistemic_calibration.stale import damaged_files, recorded_files, stale_files, touches
from epistemic_calibration.style import DATASET_FIGURES


def first_of(paths, n=5):
    """A list of paths for a message, cut where it is long."""
    return ", ".join([*map(str, paths[:n]), *(["..."] if len(paths) > n else [])])


try:
    for _path in workflow.configfiles:
        check_duplicate_keys(_path)
    config = resolve_config(retype_overrides(config, workflow.config_settings.config))
    plan = Plan(config)
    for _dataset in config["datasets"]:
        plan.tasks(_dataset)
    # Removing a lock needs no results.
    if workflow.is_main_process and "--unlock" not in sys.argv:
        _missing = plan.missing_predictions()
        if _missing:
            raise ValueError(
                f"{len(_missing)} files of predictions are missing: {first_of(_missing)}. Where a "
                f"method has none for a data set, leave that out of its `datasets`"
            )
        _damaged = damaged_files(plan)
        if _damaged:
            raise ValueError(
                f"{first_of(_damaged)} cannot be read, and jobs that need it would delete their "
                f"results first and then fail. Delete it; it is made again, as it was, when a job needs it"
            )
        # Of files that are as recorded Snakemake itself knows, unless it is to forget.
        _stale = stale_files(
            plan, besides=() if touches(sys.argv) else recorded_files(plan.base_dir)
        )
        if _stale:
            # The same configuration, or it would delete what belongs to this one.
            _own = (plan.base_dir / "config.yaml").resolve()
            _further = [
                os.path.relpath(p) for p in workflow.configfiles if Path(p).resolve() != _own
            ]
            _options = ["--configfile", *_further] if _further else []
            if workflow.config_settings.config_args:
                _options += ["--config", *workflow.config_settings.config_args]
            raise ValueError(
                f"{len(_stale)} results are truncated or were made from other settings, sources or "
                f"inputs, and Snakemake would take them for current: {first_of(_stale)}. To delete "
                f"them, and have them made again: "
                f"python {Path(os.path.relpath(workflow.basedir), 'workflow_scripts')}/"
                f"{shlex.join(['discard_stale.py', *_options])}"
            )
except (ValueError, RuntimeError) as error:
    # The message says it all; a traceback through the workflow would bury it.
    raise WorkflowError(str(error)) from None
# GPUs that a job asks for where its work can use one.
GPU = int(config["device"] == "cuda")
RUN_ID = uuid.uuid4().hex

# Jobs run the Python that runs Snakemake, whatever the shell's PATH says; with conda
# environments, each job runs the Python of its own.
if not workflow.deployment_settings.deployment_method:
    shell.prefix(f"export PATH={str(Path(sys.executable).parent)!r}:$PATH; ")


def any_of(names):
    """A wildcard constraint that admits these names alone."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    dataset=any_of(config["datasets"]),
    method="[A-Za-z][A-Za-z0-9_]*",
    seed="[0-9]+",


def spec(stage):
    """The one parameter of a job: everything that determines its outputs."""
    return lambda wildcards: plan.spec_json(stage, **dict(wildcards.items()))


def sources(stage):
    """Source files that a job of a stage runs, its script first, as inputs."""

    def files(wildcards):
        paths = plan.sources(stage, method=wildcards.get("method"))
        return [os.path.relpath(path) for path in paths]

    return files


def growing(amount):
    """Memory in MB or time in minutes that a job asks for, more at each attempt."""
    return lambda wildcards, attempt: amount * attempt


def task_files(dataset, tasks=None):
    """Files of hypotheses of a data set's tasks, with wildcards for seed and method."""
    folder = f"results/{dataset}/seed{{seed}}/hypotheses/{{method}}"
    return [f"{folder}/{task}.npz" for task in (tasks or plan.tasks(dataset))]


def score_files(dataset, suffix=".csv"):
    """Score files of a data set: every seed and method."""
    return expand(
        f"results/{dataset}/seed{{seed}}/scores/{{method}}{suffix}",
        seed=config["seeds"],
        method=plan.methods(dataset),
    )


def sensitivity_files(dataset):
    """Tables of how the estimates move, of the first seed."""
    folder = f"results/{dataset}/seed{config['seeds'][0]}/sensitivity"
    return [f"{folder}/{name}.csv" for name in plan.methods(dataset)]


def dataset_results(dataset):
    """Everything that a target named after a data set makes."""
    figures = [*DATASET_FIGURES]
    for seed in config["seeds"]:
        figures += [f"autoencoder_loss_seed{seed}", f"reconstructions_seed{seed}"]
    return [
        multiext(f"results/tables/{dataset}", ".csv", ".md", ".tex"),
        multiext(f"results/tables/{dataset}_summary", ".csv", ".md", ".tex"),
        multiext(f"results/tables/{dataset}_drivers", ".csv", ".md", ".tex"),
        multiext(f"results/tables/{dataset}_comparisons", ".csv", ".md", ".tex"),
        [multiext(f"results/figures/{dataset}/{name}", ".png", ".pdf") for name in figures],
        multiext(f"results/runtimes/{dataset}", ".csv", ".md", ".tex"),
        "results/config.resolved.yaml",
    ]


# A job array asks for what its first member asks, so that methods that can use a GPU need
# rules of their own.
METHOD_KINDS = {
    "hypotheses": [n for n in plan.fitted if "device" not in plan.entries[n]["parameters"]],
    "network_hypotheses": [n for n in plan.fitted if "device" in plan.entries[n]["parameters"]],
}


def neighbors_file(dataset):
    def files(wildcards):
        if not plan.entries[wildcards.method]["uses_neighbors"]:
            return []
        return f"results/{dataset}/seed{wildcards.seed}/neighbors.npz"

    return files


def prediction_files(dataset):
    return lambda wildcards: [
        os.path.relpath(path)
        for path in plan.prediction_files(dataset, wildcards.seed, wildcards.method).values()
    ]


def method_spec(stage, dataset):
    return lambda wildcards: plan.spec_json(
        stage, dataset=dataset, seed=wildcards.seed, method=wildcards.method
    )


# `toy` is the full size, `toy_demo` the reduced one.
TOYS = ["toy", "toy_demo"]


def toy_tables(wildcards):
    folder = f"results/{wildcards.toy}/{wildcards.experiment}/methods"
    return [
        f"{folder}/{name}.csv" for name in plan.toy_methods(wildcards.toy, wildcards.experiment)
    ]


def toy_results(toy):
    """Everything that the target of the toy experiments makes."""
    return [
        multiext(f"results/{toy}/{experiment}/{experiment}", ".csv", ".png", ".pdf")
        for experiment in config[toy]
    ]
