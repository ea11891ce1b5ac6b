rule tables:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        sources=sources("tables"),
    output:
        report(
            "results/tables/{dataset}.csv",
            category="{dataset}",
            subcategory="Tables",
            caption="../report/scores.rst",
            labels={"table": "scores"},
        ),
        multiext("results/tables/{dataset}", ".md", ".tex"),
        report(
            "results/tables/{dataset}_summary.csv",
            category="{dataset}",
            subcategory="Tables",
            caption="../report/summary.rst",
            labels={"table": "summary"},
        ),
        multiext("results/tables/{dataset}_summary", ".md", ".tex"),
        report(
            "results/tables/{dataset}_drivers.csv",
            category="{dataset}",
            subcategory="Tables",
            caption="../report/drivers.rst",
            labels={"table": "drivers"},
        ),
        multiext("results/tables/{dataset}_drivers", ".md", ".tex"),
    log:
        "results/logs/{dataset}/tables.log",
    benchmark:
        "results/benchmarks/{dataset}/tables.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("tables"),
    message:
        "Making the tables of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --output results/tables"


rule partial_tables:
    input:
        scores=lambda wildcards: list(plan.finished_scores(wildcards.dataset).values()),
        sources=sources("partial_tables"),
    output:
        multiext("results/partial/{dataset}", ".csv", ".md", ".tex"),
        multiext("results/partial/{dataset}_summary", ".csv", ".md", ".tex"),
        multiext("results/partial/{dataset}_drivers", ".csv", ".md", ".tex"),
    log:
        "results/logs/{dataset}/partial_tables.log",
    benchmark:
        "results/benchmarks/{dataset}/partial_tables.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("partial_tables"),
    message:
        "Making tables of {wildcards.dataset} from the scores that there are"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --output results/partial"


rule comparisons:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        predictions=lambda wildcards: score_files(wildcards.dataset, ".npz"),
        sources=sources("comparisons"),
    output:
        report(
            "results/tables/{dataset}_comparisons.csv",
            category="{dataset}",
            subcategory="Tables",
            caption="../report/comparisons.rst",
            labels={"table": "comparisons"},
        ),
        multiext("results/tables/{dataset}_comparisons", ".md", ".tex"),
    log:
        "results/logs/{dataset}/comparisons.log",
    benchmark:
        "results/benchmarks/{dataset}/comparisons.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        spec=spec("comparisons"),
    message:
        "Comparing the methods on {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --predictions {input.predictions:q} --output results/tables/{wildcards.dataset}_comparisons"


# Benchmark files are no inputs: losing one, or fitting other chunks of tasks, must not fit anew.
rule runtimes:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        sources=sources("runtimes"),
    output:
        report(
            "results/runtimes/{dataset}.csv",
            category="{dataset}",
            subcategory="Tables",
            caption="../report/runtimes.rst",
            labels={"table": "run times"},
        ),
        multiext("results/runtimes/{dataset}", ".md", ".tex"),
    log:
        "results/logs/{dataset}/runtimes.log",
    benchmark:
        "results/benchmarks/{dataset}/runtimes.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("runtimes"),
    message:
        "Making the table of run times of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --benchmarks results/benchmarks/{wildcards.dataset}"
        " --output results/runtimes/{wildcards.dataset}"


rule figures:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        sources=sources("figures"),
    output:
        report(
            "results/figures/{dataset}/calibration_bars.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/calibration_bars.rst",
            labels={"figure": "calibration bars"},
        ),
        "results/figures/{dataset}/calibration_bars.pdf",
        report(
            "results/figures/{dataset}/calibration_map.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/calibration_map.rst",
            labels={"figure": "calibration map"},
        ),
        "results/figures/{dataset}/calibration_map.pdf",
        report(
            "results/figures/{dataset}/calibration_maps.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/calibration_maps.rst",
            labels={"figure": "calibration maps"},
        ),
        "results/figures/{dataset}/calibration_maps.pdf",
        report(
            "results/figures/{dataset}/eece_parts.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/eece_parts.rst",
            labels={"figure": "eece parts"},
        ),
        "results/figures/{dataset}/eece_parts.pdf",
    log:
        "results/logs/{dataset}/figures.log",
    benchmark:
        "results/benchmarks/{dataset}/figures.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("figures"),
    message:
        "Drawing the figures of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --output results/figures/{wildcards.dataset}"


rule sensitivity_figure:
    input:
        tables=lambda wildcards: sensitivity_files(wildcards.dataset),
        sources=sources("sensitivity_figure"),
    output:
        figure=report(
            "results/figures/{dataset}/sensitivity.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/sensitivity.rst",
            labels={"figure": "sensitivity"},
        ),
        pdf="results/figures/{dataset}/sensitivity.pdf",
    log:
        "results/logs/{dataset}/sensitivity_figure.log",
    benchmark:
        "results/benchmarks/{dataset}/sensitivity_figure.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("sensitivity_figure"),
    message:
        "Drawing the sensitivity of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --tables {input.tables:q} --figure {output.figure:q}"


rule paper_comparison:
    input:
        scores=[score_files(dataset) for dataset in config["benchmark"]],
        published=RESOURCES / "published_tables.csv",
        sources=sources("paper_comparison"),
    output:
        table="results/tables/scores.csv",
        comparison=report(
            "results/tables/paper_comparison.csv",
            category="Paper",
            caption="../report/paper_comparison.rst",
            labels={"table": "paper against ours"},
        ),
        comparison_text="results/tables/paper_comparison.md",
        means="results/tables/paper_comparison_means.csv",
    log:
        "results/logs/paper_comparison.log",
    benchmark:
        "results/benchmarks/paper_comparison.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("paper_comparison"),
    message:
        "Comparing the benchmark with the published tables"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --published {input.published:q} --output results/tables"


rule claims:
    input:
        scores=[score_files(dataset) for dataset in config["benchmark"]],
        toy=[f"results/toy/{experiment}/{experiment}.csv" for experiment in config["toy"]],
        sources=sources("claims"),
    output:
        table=report(
            "results/tables/claims.csv",
            category="Paper",
            caption="../report/claims.rst",
            labels={"table": "claims"},
        ),
        text="results/tables/claims.md",
    log:
        "results/logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("claims"),
    message:
        "Checking the paper's statements"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --toy {input.toy:q} --output {output.table:q}"


rule resolved_config:
    input:
        sources=sources("resolved_config"),
    output:
        "results/config.resolved.yaml",
    log:
        "results/logs/resolved_config.log",
    benchmark:
        "results/benchmarks/resolved_config.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(500),
        runtime=growing(10),
    params:
        spec=spec("resolved_config"),
    message:
        "Writing the resolved configuration"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}" " --output {output:q}"
