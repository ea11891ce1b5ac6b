# What the rules share: the resolved configuration, the plan, and helpers for paths.
import gc
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import snakemake.dag
from snakemake.common.configfile import load_configfile
from snakemake.dag import DAG
from snakemake.exceptions import WorkflowError
from snakemake.jobs import Job
from snakemake.logging import logger
from snakemake.scheduling.job_scheduler import JobScheduler

if Path(workflow.current_basedir).parent != Path(workflow.basedir):
    raise WorkflowError(
        f"{workflow.main_snakefile}: this workflow cannot be a module or a part of another, whose "
        f"settings, results and hooks it would take for its own; run it in its own folder, and take "
        f"files of its results/ as inputs of the other"
    )
if set("{}") & set(str(workflow.basedir)):
    raise WorkflowError(f"{workflow.basedir}: the project's path must not have braces in it")
sys.path.insert(0, str(Path(workflow.basedir) / "workflow_scripts"))

from epistemic_calibration.files import remove_temporary_files
from epistemic_calibration.latents import load_encoder
from epistemic_calibration.registry import available, load
from epistemic_calibration.workflow.code_digests import keep_answers
from epistemic_calibration.workflow.config import (
    check_yaml,
    order_keys,
    resolve_config,
    retype_overrides,
)
from epistemic_calibration.workflow.job_log import read_outcome
from epistemic_calibration.workflow.ledger import Ledger
from epistemic_calibration.workflow.manifest import append_manifest
from epistemic_calibration.workflow.other_runs import jobs_still_at_work, note_run_in_queue
from epistemic_calibration.workflow.plan import Plan, stages
from epistemic_calibration.workflow.planning import (
    any_in_another,
    know_parameters_of_resources,
    known_parameters,
)
from epistemic_calibration.workflow.provenance import is_finished, receipt_path, write_spec
from epistemic_calibration.workflow.rule_index import RuleIndex
from epistemic_calibration.workflow.scheduling import look_again
from epistemic_calibration.workflow.screen import Screen, closing_text, warnings_of
from epistemic_calibration.workflow.slurm import patient

_excepthook = sys.excepthook


def told_without_traceback(kind, error, trace):
    """Tell of Ctrl-C before or after the jobs in a word; while they run, Snakemake does."""
    if issubclass(kind, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
    else:
        _excepthook(kind, error, trace)


if workflow.is_main_process:
    sys.excepthook = told_without_traceback

try:
    # Snakemake says neither the line of a fault, nor which keys are given twice.
    for _path in {"config.yaml", *workflow.configfiles}:
        if Path(_path).exists():
            check_yaml(_path)
except ValueError as error:
    raise WorkflowError(str(error)) from None


configfile: "config.yaml"


#: Targets and folders, whose names a data set must not take.
TARGETS = ("all", "demo", "toy", "collect", "sensitivity", "sensitivity_tables")
FOLDERS = (
    "bench",
    "benchmarks",
    "figures",
    "logs",
    "partial",
    "receipts",
    "report",
    "specs",
    "toy_demo",
)
RUN_ID = uuid.uuid4().hex


def first_of(paths, n=5):
    """A list of paths for a message, cut where it is long."""
    return ", ".join([*map(str, paths[:n]), *(["..."] if len(paths) > n else [])])


try:
    # The last one is the Snakefile's own.
    _merged = order_keys(config, like=load_configfile(workflow.configfiles[-1]))
    CONFIG = resolve_config(
        retype_overrides(_merged, workflow.config_settings.config),
        reserved=[*stages(), *TARGETS, *FOLDERS],
        # Jobs in environments of their own need nothing here.
        check_packages=not workflow.deployment_settings.deployment_method,
    )
    plan = Plan(CONFIG)
    DATASETS = [name for name in CONFIG.datasets if name not in plan.unavailable]
    for _entry in plan.entries.values():
        if _entry.missing:
            logger.warning(f"{_entry.missing}. The other methods run without it")
    # Removing a lock needs no predictions.
    _missing = [] if "--unlock" in sys.argv else plan.missing_predictions()
    if _missing:
        raise ValueError(
            f"{len(_missing)} files of predictions are missing or cannot be read: "
            f"{first_of(_missing)}. Where a method has none for a data set, leave that out of its "
            f"`datasets`"
        )
except OSError as error:
    raise WorkflowError(f"{error.filename}: {error.strerror}") from None
except (ValueError, RuntimeError) as error:
    # The message says it all; a traceback through the workflow would bury it.
    raise WorkflowError(str(error)) from None


def asked_of(job):
    """The stage and the wildcards of a job whose outputs have receipts, else None."""
    return plan.asked.get(job.params.spec) if "spec" in job.params.keys() else None


def jobs_of_stages(dag):
    """The jobs of a DAG whose outputs have receipts, each with its stage and wildcards."""
    return [(job, *asked) for job in dag.jobs if (asked := asked_of(job))]


def expected_outputs(dag):
    """The outputs of a DAG, each with the fingerprint that the plan expects it to have."""
    for job, stage, where in jobs_of_stages(dag):
        fingerprint = plan.fingerprint(stage, **where)
        yield from ((str(path), fingerprint) for path in job.output)


# Which results have to be made again is for the ledger to say: Snakemake's own records and
# modification times can be lost, or speak of other files than those that are there. So the
# outputs that are not the ones that the plan expects are forced, as by --forcerun.
_update_needrun = DAG.update_needrun
LEFT_STALE = set()


async def update_needrun(dag, *args, **kwargs):
    if dag.workflow is not workflow or not workflow.is_main_process:
        return await _update_needrun(dag, *args, **kwargs)
    states = look_at_results(dag)
    if states["damaged"]:
        raise WorkflowError(
            f"{first_of(states['damaged'])} cannot be read as what was written: truncated, or "
            f"changed since. Delete it; it is made again, as it was, when a job needs it"
        )
    stale = states["stale"]
    if stale and workflow.touch:
        raise WorkflowError(
            f"{len(stale)} results were made from other settings, sources or inputs than those "
            f"asked for, and --touch would not change that: {first_of(stale)}. Run without --touch"
        )
    forced = jobs_forced_by_user(dag)
    dag.forcefiles.update(stale)
    await _update_needrun(dag, *args, **kwargs)
    runs = workflow.executor_plugin is not None
    needed = {*dag.needrun_jobs()} if runs else set()
    made = {str(path) for job in needed for path in job.output}
    if made and not workflow.dryrun:
        refuse_two_makers(made)
    # As with --until, or where only a report is made.
    LEFT_STALE.update(path for path in stale if path not in made)
    if LEFT_STALE:
        logger.warning(
            f"{len(LEFT_STALE)} results are not those that the configuration and the sources ask "
            f"for: {first_of(sorted(LEFT_STALE))}. Run snakemake for them first"
        )
    if workflow.dryrun:
        return
    for path in (path for job in forced if job in needed for path in job.output):
        # What is finished would be left as it is.
        receipt_path(path).unlink(missing_ok=True)
    # The jobs of one method have one spec.
    specs = {job.params.spec: asked for job, *asked in jobs_of_stages(dag) if job in needed}
    unwritten = {}
    for path, (stage, where) in specs.items():
        try:
            write_spec(plan.spec(stage, **where))
        except OSError as error:
            unwritten[path] = error.strerror
    if unwritten:
        path, reason = next(iter(unwritten.items()))
        more = f", nor can {len(unwritten) - 1} more" if len(unwritten) > 1 else ""
        logger.warning(f"{path} cannot be written: {reason}{more}")


def uses_slurm():
    return workflow.executor_plugin is not None and workflow.executor_plugin.name == "slurm"


def refuse_two_makers(outputs):
    """Refuse a run while jobs of another, which may have been killed, make the same results."""
    try:
        found = jobs_still_at_work(outputs, uses_slurm())
    except RuntimeError as error:
        if uses_slurm():
            raise WorkflowError(str(error)) from None
        logger.warning(f"{error}")
        return
    if found:
        raise WorkflowError(found)


def jobs_forced_by_user(dag):
    """The jobs of stages that --force, --forcerun or --forceall asks for."""
    settings = workflow.dag_settings
    files = {*settings.forcerun, *(settings.targets if settings.forcetargets else ())}
    return [
        job
        for job, _, _ in jobs_of_stages(dag)
        if job.rule in dag.forcerules or not files.isdisjoint(map(str, job.output))
    ]


def finished_outputs(job):
    """The outputs that a job leaves as they are, since they are finished: tasks that are fitted."""
    asked = asked_of(job)
    if asked is None or not stages()[asked[0]].one_by_one:
        return set()
    stage, where = asked
    expected = plan.fingerprint(stage, **where)
    return {path for path in job.output if is_finished(path, expected)}


# Snakemake removes all outputs of a job before it runs and when it fails. What other tasks need of
# a fit that is done must not go with a task that fails, or that is new in the same job.
_cleanup, _remove_existing_output = Job.cleanup, Job.remove_existing_output


async def cleanup(job, skip_outputs):
    await _cleanup(job, {*skip_outputs, *finished_outputs(job)})


async def remove_existing_output(job):
    finished = finished_outputs(job)
    if not finished:
        return await _remove_existing_output(job)
    for path in {*job.output, *job.log} - finished:
        if await path.exists_local():
            await path.remove()


_init = DAG.init


async def init(dag, *args, **kwargs):
    """Refuse targets whose data are not there, as far as their names tell; else an input does."""
    targets = {*(rule.name for rule in dag.targetrules), *map(str, dag.targetfiles)}
    for name, reason in plan.unavailable.items() if dag.workflow is workflow else ():
        needed = name in CONFIG.benchmark and targets & {"all", "sensitivity"}
        parts = {part for target in targets for part in re.split("[/.]", target)}
        if (needed or name in parts) and "--unlock" not in sys.argv:
            raise WorkflowError(reason)
    if dag.workflow is workflow:
        # Snakemake copies all names of the workflow for each text that it shows of a job, five
        # times. The commands and messages of the rules name only what is of the job.
        workflow.modifier.globals = {"config": workflow.config}
        know_parameters_of_resources(workflow.rules)
    return await _init(dag, *args, **kwargs)


async def no_time(job):
    return None


async def no_check(dag, job, outputs):
    return None


_check_directory_outputs = DAG.check_directory_outputs


def check_directory_outputs(dag):
    """Have Snakemake look for an output in another, pair by pair, only where there is one."""
    if any_in_another(path for job in dag.jobs for path in job.output):
        _check_directory_outputs(dag)


DAG.init, DAG.update_needrun = init, update_needrun
snakemake.dag.OutputIndex = RuleIndex
Job.cleanup, Job.remove_existing_output = cleanup, remove_existing_output
# Snakemake compares times of inputs and outputs whatever rerun-triggers says, and removes what a
# job has made of a file that is dated in the future.
Job.output_mintime = property(no_time)
DAG.check_output_mtime = no_check
DAG.check_directory_outputs = check_directory_outputs
JobScheduler._schedule_reevalutation = look_again
# What a plan is made of stays: to look through it for what is left over, again and again, would
# take a tenth of the time.
gc.set_threshold(100_000)


def look_at_results(dag):
    """What the ledger says of the outputs of a DAG, in lists of paths by their state."""
    ledger = Ledger()
    try:
        states = ledger.states(expected_outputs(dag))
    except OSError as error:
        raise WorkflowError(f"{error.filename} cannot be read: {error.strerror}") from None
    ledger.save()
    keep_answers()
    return states


def check_results():
    """Check that a run that ends well leaves what the plan asks for; enter it in the ledger."""
    states = look_at_results(workflow.dag)
    wrong = [*states["stale"], *states["damaged"]]
    wrong = [path for path in wrong if path not in LEFT_STALE]
    if wrong:
        raise WorkflowError(f"these results are not those asked for: {first_of(wrong)}")


def datasets_shown():
    """The data sets of the run whose tables are made, in the order of the configuration."""
    wanted = {
        where["dataset"] for _, stage, where in jobs_of_stages(workflow.dag) if stage == "tables"
    }
    return [dataset for dataset in CONFIG.datasets if dataset in wanted]


def start():
    """Enter the start of a run in the manifest; remove what one that was killed has left."""
    note_run("start", threads=CONFIG.threads)
    if uses_slurm():
        plugin = sys.modules[workflow.executor_plugin.executor.__module__]
        plugin.query_job_status = patient(plugin.query_job_status, logger.warning)
    if run := getattr(workflow.scheduler._executor, "run_uuid", None):
        # The executor's name for the run, and for each of its jobs in the queue.
        note_run_in_queue(run, {str(p) for job in workflow.dag.needrun_jobs() for p in job.output})
    if n := remove_temporary_files("results"):
        logger.info(f"{n} temporary files of a run that was killed are removed")


def note_run(event, **extra):
    """Append a line to the manifest, which is the first file that a run writes."""
    try:
        append_manifest("results/manifest.jsonl", event, RUN_ID, **extra)
    except OSError as error:
        raise WorkflowError(
            f"{error.filename} cannot be written: {error.strerror}. Whoever runs the workflow must "
            f"be allowed to write to results/ and what is in it"
        ) from None


def places():
    """What a run has made for people to read, and where it is."""
    found = {}
    for _, stage, where in jobs_of_stages(workflow.dag):
        if stage in ("figures", "sensitivity_figure"):
            found.setdefault("Figures", []).append(f"results/figures/{where['dataset']}/")
        elif stage == "tables":
            found.setdefault("Tables", []).append(
                f"results/tables/{where['dataset']}_*.{{md,csv,tex}}"
            )
        elif stage == "partial_tables":
            found.setdefault("Partial tables", []).append(
                f"results/partial/{where['dataset']}_*.md"
            )
        elif stage == "toy_figures":
            found.setdefault("Toy experiments", []).append(f"results/{where['toy']}/")
        elif stage in ("claims", "paper_comparison"):
            found.setdefault("The paper beside", []).append(f"results/tables/{stage}.md")
    return {what: ", ".join(sorted({*found[what]})) for what in sorted(found, reverse=True)}


def closing(summaries, where, further=()):
    """What a run ends with: tables, where everything is, and what its jobs have warned of."""
    labels = {name: entry.label for name, entry in plan.entries.items()}
    warned = warnings_of([*expected_outputs(workflow.dag), *further])
    return closing_text(summaries, where, warned, labels)


def closing_of_success():
    summaries = [
        Path(f"results/tables/{dataset}_summary.txt").read_text(encoding="utf-8")
        for dataset in datasets_shown()
    ]
    return closing(summaries, places())


def closing_of_failure():
    """The tables of the methods that are finished, which are made here, and what failed."""
    # What is finished now, not when the run began.
    now, summaries, where, partial = Plan(CONFIG), [], {}, {}
    for dataset in datasets_shown():
        summary = f"results/tables/{dataset}_summary.txt"
        expected = now.fingerprint("tables", dataset=dataset)
        if Ledger().state(summary, expected) == "current":
            summaries.append(Path(summary).read_text(encoding="utf-8"))
            where[f"Tables of {dataset}"] = f"results/tables/{dataset}_*.{{md,csv,tex}}"
            continue
        if not now.finished_scores(dataset):
            where[f"No tables of {dataset}"] = "no method is finished"
            continue
        log = f"results/logs/{dataset}/partial_tables.log"
        if make_partial_tables(now, dataset, log):
            summary = f"results/partial/{dataset}_summary.txt"
            partial[summary] = now.fingerprint("partial_tables", dataset=dataset)
            summaries.append(f"PARTIAL: {Path(summary).read_text(encoding='utf-8')}")
            where[f"Partial tables of {dataset}"] = f"results/partial/{dataset}_*.{{md,csv,tex}}"
        else:
            outcome = read_outcome(log)
            where[f"No tables of {dataset}"] = f"{outcome.reason if outcome else ''} (log: {log})"
    n = len(SCREEN.failed)
    where["Failed"] = f"{n} job{'s' if n > 1 else ''}, named above. When it is mended, run again"
    return closing(summaries, where, partial.items())


def make_partial_tables(plan, dataset, log):
    """Run the stage of partial tables as its rule does, and return whether it ended well."""
    where = {"dataset": dataset}
    write_spec(plan.spec("partial_tables", **where))
    done = subprocess.run(
        [
            sys.executable,
            str(Path(workflow.basedir) / "workflow_scripts" / "partial_tables.py"),
            *("--spec", plan.spec_path("partial_tables", **where), "--log", log),
            *("--scores", *plan.finished_scores(dataset).values()),
            *("--tables", *expand(table_files("results/partial"), dataset=dataset)),
        ]
    )
    return done.returncode == 0


SCREEN = Screen(
    lambda: workflow.dag.needrun_jobs(),
    workflow.resource_settings.cores,
    closing_of_success,
    lambda: workflow.dryrun,
)
if workflow.is_main_process and not workflow.output_settings.verbose:
    SCREEN.install(logger)


def hung_up(*_):
    """End a run whose terminal is closed as Ctrl-C does, so that it leaves no lock."""
    raise KeyboardInterrupt


# As long as nohup has not chosen otherwise, and where signals can be handled.
if (
    workflow.is_main_process
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
):
    signal.signal(signal.SIGHUP, hung_up)

# GPUs that a job asks for where its work can use one.
GPU = int(CONFIG.device == "cuda")


def gpus_of_fit(wildcards):
    """How many GPUs a fit asks for."""
    return GPU if "device" in plan.entries[wildcards.method].parameters else 0


# Jobs run the Python that runs Snakemake, whatever the shell's PATH says; with conda
# environments, each job runs the Python of its own.
if os.pathsep in str(Path(sys.executable).parent):
    raise WorkflowError(
        f"{sys.executable}: a colon in the folder of Python divides it in two on the PATH that "
        f"jobs get, and they would run another Python; put the environment elsewhere"
    )
if not workflow.deployment_settings.deployment_method:
    shell.prefix(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; ")


def python(script):
    """The start of the command that runs a stage's script on the spec of the job."""
    path = os.path.relpath(Path(workflow.basedir) / "workflow_scripts" / script)
    # Braces would be wildcards.
    quoted = shlex.quote(path).replace("{", "{{").replace("}", "}}")
    return f"python {quoted} --spec {{params.spec:q}} --log {{log:q}}"


def any_of(names):
    """A wildcard constraint that admits these names alone."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    dataset=any_of(CONFIG.datasets),
    method="[A-Za-z][A-Za-z0-9_]*",
    seed="[0-9]+",


def spec(stage, **where):
    """The one parameter of a job: the file of its spec, everything that determines its outputs."""

    @known_parameters
    def path(wildcards):
        # The tasks of a method have one spec, whichever of them a job fits.
        given = {name: value for name, value in wildcards.items() if name != "task"}
        return plan.spec_path(stage, **{**given, **where})

    return path


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
        seed=CONFIG.seeds,
        method=plan.methods(dataset),
    )


def table_inputs(dataset):
    """What tables and figures of a data set are made of: its scores, and bounds beside them."""
    bounds = expand(f"results/{dataset}/seed{{seed}}/bounds.csv", seed=CONFIG.seeds)
    return [*score_files(dataset), *bounds]


def label_counts_file(wildcards):
    """The label counts of a data set, where there are several labels of each test image."""
    if not plan.has_label_counts(wildcards.dataset):
        return []
    return f"results/{wildcards.dataset}/label_counts.npz"


def sensitivity_files(dataset):
    """Tables of how the estimates move, of the first seed."""
    folder = f"results/{dataset}/seed{CONFIG.seeds[0]}/sensitivity"
    return [f"{folder}/{name}.csv" for name in plan.methods(dataset)]


# What each table and figure of a data set is called comes from the folder that it lies in.
TABLE_SUFFIXES = {
    name: load("epistemic_calibration.report.tables", name).SUFFIX
    for name in available("epistemic_calibration.report.tables")
}
FIGURES = available("epistemic_calibration.report.figures")
CAPTIONS = Path(workflow.basedir) / "report"


def captioned(path, kind, name):
    """An output that Snakemake's report shows, with the caption report/NAME.rst."""
    return report(
        path,
        category="{dataset}",
        subcategory=f"{kind.capitalize()}s",
        caption=str(CAPTIONS / f"{name}.rst"),
        labels={kind: name.replace("_", " ")},
    )


def table_files(folder, captions=False):
    """The tables of a data set, each in three formats, and what else stands beside them."""
    stem = f"{folder}/{{dataset}}"
    # The summary for a terminal, all scores in tidy form, and what the jobs warn of.
    files = [f"{stem}_summary.txt", f"{stem}_scores.csv", f"{stem}_warnings.csv"]
    for name, suffix in TABLE_SUFFIXES.items():
        stem = f"{folder}/{{dataset}}{suffix}"
        table = captioned(f"{stem}.csv", "table", name) if captions else f"{stem}.csv"
        files += [table, f"{stem}.md", f"{stem}.tex"]
    return files


def figure_files():
    """The figures of a data set, each in two formats."""
    files = []
    for name in FIGURES:
        stem = f"results/figures/{{dataset}}/{name}"
        files += [captioned(f"{stem}.png", "figure", name), f"{stem}.pdf"]
    return files


def encoder_figures(dataset):
    """The figures of a data set's encoders, where they have something to show."""
    # The demo's data set need not be in the configuration.
    if (
        dataset not in CONFIG.datasets
        or not load_encoder(plan.encoding(dataset).encoder).reconstructs
    ):
        return []
    folder = f"results/figures/{dataset}"
    return [
        multiext(f"{folder}/{name}_seed{seed}", ".png", ".pdf")
        for name in ("autoencoder_loss", "reconstructions")
        for seed in CONFIG.seeds
    ]


def page_file(page):
    """The page of a data set, of the demo, or of the benchmark (``all``)."""
    return "results/report.html" if page == "all" else f"results/{page}/report.html"


#: What there is a page of.
PAGES = [
    *DATASETS,
    *(["demo"] if "digits" in DATASETS else []),
    *(["all"] if set(CONFIG.benchmark) <= {*DATASETS} else []),
]


def page_inputs(page):
    """What a page is made of, by the names that its stage has for them."""
    datasets, toy = plan.page_contents(page)
    seed = CONFIG.seeds[0]
    paper = ["paper_comparison.csv", "paper_comparison.md", "claims.csv", "claims.md"]
    figures = [path for d in datasets for path in flatten(encoder_figures(d))]
    return {
        "scores": [path for d in datasets for path in table_inputs(d)],
        "diagnostics": [f"results/{d}/seed{seed}/diagnostics.json" for d in datasets],
        "tables": [
            path
            for d in datasets
            for path in [
                *expand(table_files("results/tables"), dataset=d),
                *multiext(f"results/tables/{d}_comparisons", ".csv", ".md"),
                *multiext(f"results/runtimes/{d}", ".csv", ".md"),
            ]
            if path.endswith((".csv", ".md"))
        ],
        "paper": [f"results/tables/{name}" for name in paper] if page == "all" else [],
        "figures": [path for path in figures if path.endswith(".png")],
        "toy": [path for path in flatten(toy_results(toy)) if path.endswith(".png")] if toy else [],
    }


def refused(dataset):
    """An input of what needs a data set that is not available."""

    def no_files(wildcards):
        raise WorkflowError(plan.unavailable[dataset])

    return no_files


def dataset_results(dataset):
    """Everything that a target named after a data set makes."""
    if dataset in plan.unavailable:
        return refused(dataset)
    return [
        expand(table_files("results/tables"), dataset=dataset),
        multiext(f"results/tables/{dataset}_comparisons", ".csv", ".md", ".tex"),
        [multiext(f"results/figures/{dataset}/{name}", ".png", ".pdf") for name in FIGURES],
        encoder_figures(dataset),
        multiext(f"results/runtimes/{dataset}", ".csv", ".md", ".tex"),
        "results/config.resolved.yaml",
        page_file(dataset),
    ]


def fits(dataset):
    """The rules that fit the tasks of a data set.

    Which tasks a job fits is known only from the configuration, so each chunk is a rule of its
    own. Where each is of one task, a wildcard does: thousands of rules would take longer than their
    jobs.

    Yields
    ------
    name, part : str
        Of the rule, and what the names of its logs have, as `plan.fits` returns it.
    tasks : list of str
        Of a job, as the names of its outputs have them.
    shown : str
        The tasks, as its message has them.
    """
    if plan.fits_one_by_one(dataset):
        # The constraint stands here alone, since Snakemake reads patterns anew for every job.
        task = f"{{task,{any_of(plan.tasks(dataset))}}}"
        yield f"hypotheses_{dataset}", "{task}", [task], "{wildcards.task}"
    else:
        for part, chunk in plan.fits(dataset).items():
            yield f"hypotheses_{dataset}_{part}", part, chunk, ", ".join(chunk)


def neighbors_file(dataset):
    @known_parameters
    def files(wildcards):
        if not plan.entries[wildcards.method].uses_neighbors:
            return []
        return f"results/{dataset}/seed{wildcards.seed}/neighbors.npz"

    return files


def prediction_files(dataset):
    return lambda wildcards: [
        os.path.relpath(path)
        for path in plan.prediction_files(dataset, wildcards.seed, wildcards.method).values()
    ]


# `toy` is the full size, `toy_demo` the reduced one.
TOYS = ["toy", "toy_demo"]


def toy_tables(wildcards):
    folder = f"results/{wildcards.toy}/{wildcards.experiment}/methods"
    return [f"{folder}/{n}.csv" for n in plan.toy_runs(wildcards.toy, wildcards.experiment)]


def toy_results(toy):
    """Everything that the target of the toy experiments makes."""
    return [
        multiext(f"results/{toy}/{experiment}/{experiment}", ".csv", ".png", ".pdf")
        for experiment in getattr(CONFIG, toy)
    ]
