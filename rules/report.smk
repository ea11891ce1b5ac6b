rule tables:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        sources=sources("tables"),
    output:
        multiext("results/tables/{dataset}", ".csv", ".md", ".tex"),
        multiext("results/tables/{dataset}_summary", ".csv", ".md", ".tex"),
        multiext("results/tables/{dataset}_drivers", ".csv", ".md", ".tex"),
    log:
        "results/logs/{dataset}/tables.log",
    benchmark:
        "results/benchmarks/{dataset}/tables.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        spec=spec("tables"),
    message:
        "Making the tables of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --output results/tables"


rule figures:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        sources=sources("figures"),
    output:
        multiext("results/figures/{dataset}/calibration_bars", ".png", ".pdf"),
        multiext("results/figures/{dataset}/calibration_map", ".png", ".pdf"),
        multiext("results/figures/{dataset}/calibration_maps", ".png", ".pdf"),
        multiext("results/figures/{dataset}/eece_parts", ".png", ".pdf"),
    log:
        "results/logs/{dataset}/figures.log",
    benchmark:
        "results/benchmarks/{dataset}/figures.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        spec=spec("figures"),
    message:
        "Drawing the figures of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --output results/figures/{wildcards.dataset}"


rule paper_comparison:
    input:
        scores=[score_files(dataset) for dataset in config["benchmark"]],
        published=RESOURCES / "published_tables.csv",
        sources=sources("paper_comparison"),
    output:
        table="results/tables/scores.csv",
        comparison=multiext("results/tables/paper_comparison", ".csv", ".md"),
        means="results/tables/paper_comparison_means.csv",
    log:
        "results/logs/paper_comparison.log",
    benchmark:
        "results/benchmarks/paper_comparison.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=1000,
        runtime=10,
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
        multiext("results/tables/claims", ".csv", ".md"),
    log:
        "results/logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    conda:
        "../envs/report.yaml"
    threads: config["threads"]
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        spec=spec("claims"),
    message:
        "Checking the paper's statements"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --scores {input.scores:q} --toy {input.toy:q} --output {output[0]:q}"


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
        mem_mb=500,
        runtime=10,
    params:
        spec=spec("resolved_config"),
    message:
        "Writing the resolved configuration"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}" " --output {output:q}"
