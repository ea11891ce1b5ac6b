# What the rules share: the resolved configuration, the plan, and helpers for paths.
import os
import re
import shlex
import sys
from pathlib import Path

from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import update_config

if set("{}") & set(str(workflow.basedir)):
    raise WorkflowError(f"{workflow.basedir}: the project's path must not have braces in it")
sys.path.insert(0, str(Path(workflow.basedir) / "workflow_scripts"))

from epistemic_calibration.latents import load_encoder
from epistemic_calibration.registry import available, load
from epistemic_calibration.workflow.closing import closing_text
from epistemic_calibration.workflow.config import check_yaml, resolve_config, retyped
from epistemic_calibration.workflow.plan import Plan, stages
from epistemic_calibration.workflow.provenance import job_name, spec_path

try:
    # Of keys that are given twice Snakemake takes the last without a word.
    for _path in {"config.yaml", *workflow.configfiles}:
        check_yaml(_path)
except (OSError, ValueError) as error:
    raise WorkflowError(str(error)) from None


configfile: "config.yaml"


#: Targets and folders, whose names a data set must not take.
RESERVED = (
    *("all", "demo", "toy", "sensitivity", "sensitivity_tables", "benchmark", "benchmarks"),
    *("figures", "logs", "receipts", "specs", "tables", "work"),
)

try:
    # The order of methods in tables: those of config.yaml first, the added ones after them.
    _merged = load_configfile("config.yaml")
    update_config(_merged, config)
    update_config(_merged, retyped(workflow.config_settings.config))
    CONFIG = resolve_config(
        _merged,
        reserved=[*stages(), *RESERVED],
        # Jobs in environments of their own need nothing here.
        check_packages=not workflow.deployment_settings.deployment_method,
    )
    plan = Plan(CONFIG)
    DATASETS = [name for name in CONFIG.datasets if name not in plan.unavailable]
except OSError as error:
    raise WorkflowError(f"{error.filename}: {error.strerror}") from None
except (ValueError, RuntimeError) as error:
    # The message says it all; a traceback through the workflow would bury it.
    raise WorkflowError(str(error)) from None

for _entry in plan.entries.values() if workflow.is_main_process else ():
    if _entry.missing:
        logger.warning(f"{_entry.missing}. The other methods run without it")

# Jobs run the Python that runs Snakemake, whatever the PATH says; with conda environments, each job
# runs the Python of its own.
PYTHON = "python" if workflow.deployment_settings.deployment_method else shlex.quote(sys.executable)


def command(stage, options):
    """The command that runs a stage on the spec of its job; what it prints is the job's log."""
    scripts = shlex.quote(os.path.relpath(Path(workflow.basedir) / "workflow_scripts"))
    # Only the package can be imported from here (-P), so that no stage stands in for a user's module.
    return (
        f"PYTHONPATH={scripts} {PYTHON} -P {scripts}/stages/{stage}"
        f" --spec {{input.spec:q}} {options} > {{log:q}} 2>&1"
    )


def check_profile():
    """Refuse settings of Snakemake with which the times of specs would not tell what is current."""
    settings = workflow.dag_settings
    needed = {
        "rerun-triggers: [mtime]": "mtime" in map(str, workflow.rerun_triggers),
        "max-checksum-file-size: 0": settings.max_checksum_file_size == 0,
        "max-inventory-time: 0": settings.max_inventory_wait_time == 0,
    }
    if not all(needed.values()):
        raise WorkflowError(
            f"this workflow needs {', '.join(name for name, given in needed.items() if not given)}: "
            f"run it with profiles/default or profiles/slurm, or put that into your own profile"
        )


def spec(stage):
    """An input of a rule: the spec of its job, in the time of which stands whether it must run."""
    if stage not in stages():
        raise WorkflowError(f"spec({stage!r}): there is no workflow_scripts/stages/{stage}.py")

    def path(wildcards):
        where = dict(wildcards.items())
        # What a run has planned, its jobs on other machines find.
        if not workflow.is_main_process:
            return spec_path(job_name(stage, where))
        check_profile()
        try:
            return plan.write_spec(stage, **where)
        except (OSError, ValueError) as error:
            raise WorkflowError(str(error)) from None

    return path


def any_of(names):
    """A wildcard constraint that admits these names alone."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    dataset=any_of(CONFIG.datasets),
    method=any_of(plan.entries),
    seed="[0-9]+",
    experiment=any_of(CONFIG.toy),


# GPUs that a job asks for where its work can use one.
GPU = int(CONFIG.device == "cuda")


def gpus_of_fit(wildcards):
    """How many GPUs a fit asks for."""
    return GPU if "device" in plan.entries[wildcards.method].parameters else 0


# Paths


def of_methods(pattern):
    """An input function: a path for each method of a data set and seed, the first by default."""

    def paths(wildcards):
        seed = int(wildcards.get("seed", plan.seeds(wildcards.dataset)[0]))
        trained = [m for s, m in plan.trainings(wildcards.dataset) if s == seed]
        return expand(pattern, method=trained, seed=seed, allow_missing=True)

    return paths


def score_files(dataset, suffix=".csv"):
    """Score files of a data set: every seed and method."""
    folder = f"results/{dataset}/seed{{}}/scores/{{}}{suffix}"
    return [folder.format(seed, method) for seed, method in plan.trainings(dataset)]


def table_inputs(dataset):
    """What tables and figures of a data set are made of: its scores, and bounds beside them."""
    bounds = expand(f"results/{dataset}/seed{{seed}}/bounds.csv", seed=plan.seeds(dataset))
    return [*score_files(dataset), *bounds]


def label_counts_file(wildcards):
    """The label counts of a data set, where there are several labels of each test input."""
    if not plan.has_label_counts(wildcards.dataset):
        return []
    return f"results/{wildcards.dataset}/label_counts.npz"


def encoded(wildcards, name):
    """A file of the encoder that a training uses."""
    seed = plan.encoder_seed(wildcards.dataset, wildcards.seed)
    return f"results/{wildcards.dataset}/seed{seed}/{name}"


def latents_file(wildcards):
    return encoded(wildcards, "latents.npz")


def neighbors_file(wildcards):
    """The neighbours of the latents, for the methods that use them."""
    if not plan.entries[wildcards.method].uses_neighbors:
        return []
    return encoded(wildcards, "neighbors.npz")


def prediction_files(wildcards):
    """The files of predictions made elsewhere, one for each task."""
    files = plan.prediction_files(**dict(wildcards.items()))
    return [os.path.relpath(path) for path in files.values()]


# What each table and figure of a data set is called comes from the folder that it lies in.
TABLES = {
    name: load("epistemic_calibration.report.tables", name).SUFFIX
    for name in available("epistemic_calibration.report.tables")
}
FIGURES = available("epistemic_calibration.report.figures")


def captioned(path, kind, name):
    """An output that Snakemake's report shows, with the caption report/NAME.rst."""
    return report(
        path,
        category="{dataset}",
        subcategory=f"{kind.capitalize()}s",
        caption=f"../report/{name}.rst",
        labels={kind: name.replace("_", " ")},
    )


def table_files(folder):
    """The tables of a data set, each in three formats, and what else stands beside them."""
    stem = f"{folder}/{{dataset}}"
    files = [f"{stem}_summary.txt", f"{stem}_scores.csv", f"{stem}_warnings.csv"]
    for name, suffix in TABLES.items():
        files.append(captioned(f"{stem}{suffix}.csv", "table", name))
        files += [f"{stem}{suffix}.md", f"{stem}{suffix}.tex"]
    return files


def figure_files():
    """The figures of a data set in two widths and formats, and their captions."""
    stem = "results/figures/{dataset}"
    png = [captioned(f"{stem}/{name}.png", "figure", name) for name in FIGURES]
    ends = (".pdf", "_narrow.png", "_narrow.pdf", ".txt")
    return [*png, *(f"{stem}/{name}{end}" for name in FIGURES for end in ends)]


def encoder_figures(dataset):
    """The figures of a data set's encoders, where they have something to show."""
    if not load_encoder(plan.encoding(dataset).encoder).reconstructs:
        return []
    names = ("autoencoder_loss", "reconstructions")
    stem = f"results/figures/{dataset}/{{name}}_seed{{seed}}.{{suffix}}"
    return expand(stem, name=names, seed=plan.encoder_seeds(dataset), suffix=("png", "pdf"))


def toy_results():
    """Everything that the target of the toy experiments makes."""
    return [multiext(f"results/toy/{e}/{e}", ".csv", ".png", ".pdf") for e in CONFIG.toy]


def dataset_results(dataset):
    """Everything that a target named after a data set makes, the page first."""
    if dataset not in DATASETS:

        def refused(wildcards):
            raise WorkflowError(plan.unavailable.get(dataset, f"datasets has no {dataset}"))

        return refused
    return [
        f"results/{dataset}/report.html",
        expand(map(str, table_files("results/tables")), dataset=dataset),
        multiext(f"results/tables/{dataset}_comparisons", ".csv", ".md", ".tex"),
        expand(map(str, figure_files()), dataset=dataset),
        encoder_figures(dataset),
        "results/config.resolved.yaml",
    ]


def diagnostics_file(wildcards):
    """What figures and pages show of single inputs: of the first seed."""
    first = plan.seeds(wildcards.dataset)[0]
    return f"results/{wildcards.dataset}/seed{first}/diagnostics.json"


def page_inputs(wildcards):
    """What a page is made of, by the names that its stage has for them."""
    of_benchmark = wildcards.page == "benchmark"
    datasets = CONFIG.benchmark if of_benchmark else [wildcards.page]
    stems = [f"results/tables/{d}_{name}" for d in datasets for name in ("summary", "comparisons")]
    paper = ("paper_comparison.csv", "paper_comparison.md", "claims.csv", "claims.md")
    return {
        "scores": [path for d in datasets for path in table_inputs(d)],
        "diagnostics": [f"results/{d}/seed{plan.seeds(d)[0]}/diagnostics.json" for d in datasets],
        "tables": [f"{stem}{suffix}" for stem in stems for suffix in (".csv", ".md")],
        "paper": [f"results/tables/{name}" for name in paper if of_benchmark],
    }
