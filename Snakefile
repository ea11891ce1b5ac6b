# Epistemic calibration benchmark: images -> latents -> hypotheses -> scores -> tables and figures.
from snakemake.utils import min_version

min_version("9.19")


include: "rules/common.smk"
include: "rules/paths.smk"
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
    sensitivity,


rule all:
    default_target: True
    input:
        [dataset_results(dataset) for dataset in CONFIG.benchmark],
        "results/benchmark/report.html",
        multiext("results/tables/paper_comparison", ".csv", ".md"),
        toy_results(),
        multiext("results/tables/claims", ".csv", ".md"),
    message:
        "The benchmark is complete"


rule demo:
    input:
        dataset_results("digits"),
    message:
        "The demo is complete"


rule toy:
    input:
        toy_results(),


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
        message:
            f"{_dataset} is complete"


onsuccess:
    print(closing_text(plan))


onerror:
    print(
        "\nWhat is finished stays. Why a job failed stands at the end of its log, shown above; when it "
        "is mended, the same command goes on. Tables without a method that fails:\n"
        "  snakemake TARGET --config 'methods={NAME: null}'",
        file=sys.stderr,
    )
