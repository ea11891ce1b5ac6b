# Epistemic calibration benchmark: images -> latents -> hypotheses -> scores -> tables and figures.
from snakemake.utils import min_version

min_version("9.19")


include: "rules/common.smk"
include: "rules/images.smk"
include: "rules/latents.smk"
include: "rules/hypotheses.smk"
include: "rules/scores.smk"
include: "rules/report.smk"
include: "rules/toy.smk"


localrules:
    all,
    demo,
    toy,
    collect,
    sensitivity,


rule all:
    default_target: True
    input:
        [dataset_results(dataset) for dataset in CONFIG.benchmark],
        multiext("results/tables/paper_comparison", ".csv", ".md"),
        toy_results("toy"),
        multiext("results/tables/claims", ".csv", ".md"),
        page_file("all"),


rule demo:
    input:
        dataset_results("digits"),
        toy_results("toy_demo"),
        page_file("demo"),


rule toy:
    input:
        toy_results("toy"),


# Tables from what is finished, with the missing cells named, also while a method fails.
rule collect:
    input:
        lambda wildcards: [
            f"results/partial/{dataset}_summary.md"
            for dataset in DATASETS
            if plan.finished_scores(dataset)
        ],


rule sensitivity:
    input:
        [
            multiext(f"results/figures/{dataset}/sensitivity", ".png", ".pdf")
            for dataset in CONFIG.benchmark
        ],


for _dataset in CONFIG.datasets:

    rule:
        name:
            _dataset
        input:
            dataset_results(_dataset),
        localrule: True


onstart:
    if getattr(workflow.executor_settings, "array_jobs", None):
        # Issue 447 of the plugin: a member waits for the outputs of the first, not for its own.
        raise WorkflowError(
            "--slurm-array-jobs: leave it out; the plugin takes members of an array that end "
            "before the first one for failed"
        )
    start()


onsuccess:
    check_results()
    note_run("success")
    print(f"\n{closing_of_success()}", flush=True)


onerror:
    note_run("error")
    # A run that a user ends has not failed.
    if SCREEN.failed:
        print(f"\n{closing_of_failure()}", flush=True)
