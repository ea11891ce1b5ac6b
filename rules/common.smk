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

from epistemic_calibration.data import has_label_counts
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
    # Nothing in the working folder (-P) stands in for a module of the package or of a library.
    return (
        f"PYTHONPATH={scripts} {PYTHON} -P -m epistemic_calibration.workflow.run"
        f" {scripts}/stages/{stage}"
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
