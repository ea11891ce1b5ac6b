rule tables:
    input:
        spec=spec("tables"),
        scores=lambda w: table_inputs(w.dataset),
        comparisons="results/tables/{dataset}_comparisons.csv",
    output:
        table_files("results/tables"),
    log:
        "results/logs/{dataset}/tables.log",
    benchmark:
        "results/benchmarks/{dataset}/tables.tsv"
    conda:
        "../envs/report.yaml"
    message:
        "Making the tables of {wildcards.dataset}"
    shell:
        command(
            "tables.py",
            "--scores {input.scores:q} --comparisons {input.comparisons:q}" " --tables {output:q}",
        )


rule comparisons:
    input:
        spec=spec("comparisons"),
        scores=lambda w: score_files(w.dataset),
        compared=lambda w: score_files(w.dataset, ".npz"),
        labels="results/{dataset}/labels.npz",
    output:
        captioned("results/tables/{dataset}_comparisons.csv", "table", "comparisons"),
        multiext("results/tables/{dataset}_comparisons", ".md", ".tex"),
    log:
        "results/logs/{dataset}/comparisons.log",
    benchmark:
        "results/benchmarks/{dataset}/comparisons.tsv"
    conda:
        "../envs/report.yaml"
    message:
        "Comparing the methods on {wildcards.dataset}"
    shell:
        command(
            "comparisons.py",
            "--scores {input.scores:q} --compared {input.compared:q}"
            " --labels {input.labels:q} --tables {output:q}",
        )


rule figures:
    input:
        spec=spec("figures"),
        scores=lambda w: table_inputs(w.dataset),
        comparisons="results/tables/{dataset}_comparisons.csv",
        diagnostics=lambda w: diagnostics_file(w.dataset),
    output:
        figure_files(),
    log:
        "results/logs/{dataset}/figures.log",
    benchmark:
        "results/benchmarks/{dataset}/figures.tsv"
    conda:
        "../envs/report.yaml"
    message:
        "Drawing the figures of {wildcards.dataset}"
    shell:
        command(
            "figures.py",
            "--scores {input.scores:q} --comparisons {input.comparisons:q}"
            " --diagnostics {input.diagnostics:q} --figures {output:q}",
        )


rule sensitivity_figure:
    input:
        spec=spec("sensitivity_figure"),
        tables=of_methods("results/{dataset}/seed{seed}/sensitivity/{method}.csv"),
    output:
        captioned("results/figures/{dataset}/sensitivity.png", "figure", "sensitivity"),
        "results/figures/{dataset}/sensitivity.pdf",
    log:
        "results/logs/{dataset}/sensitivity_figure.log",
    benchmark:
        "results/benchmarks/{dataset}/sensitivity_figure.tsv"
    conda:
        "../envs/report.yaml"
    message:
        "Drawing the sensitivity of {wildcards.dataset}"
    shell:
        command("sensitivity_figure.py", "--tables {input.tables:q} --figures {output:q}")


rule paper_comparison:
    input:
        spec=spec("paper_comparison"),
        scores=[score_files(dataset) for dataset in CONFIG.benchmark],
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
    message:
        "Comparing the benchmark with the published tables"
    shell:
        command(
            "paper_comparison.py",
            "--scores {input.scores:q} --table {output.table:q}"
            " --comparison {output.comparison:q}"
            " --comparison-text {output.comparison_text:q} --means {output.means:q}",
        )


rule claims:
    input:
        spec=spec("claims"),
        scores=[score_files(dataset) for dataset in CONFIG.benchmark],
        toy=[f"results/toy/{experiment}/{experiment}.csv" for experiment in CONFIG.toy],
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
    message:
        "Checking the paper's statements"
    shell:
        command(
            "claims.py",
            "--scores {input.scores:q} --toy {input.toy:q} --table {output.table:q}"
            " --text {output.text:q}",
        )


rule resolved_config:
    input:
        spec=spec("resolved_config"),
    output:
        "results/config.resolved.yaml",
    log:
        "results/logs/resolved_config.log",
    benchmark:
        "results/benchmarks/resolved_config.tsv"
    conda:
        "../envs/statistics.yaml"
    message:
        "Writing the resolved configuration"
    shell:
        command("resolved_config.py", "--config {output:q}")


rule diagnostics:
    input:
        spec=spec("diagnostics"),
        compared=of_methods("results/{dataset}/seed{seed}/scores/{method}.npz"),
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/seed{seed}/diagnostics.json",
    log:
        "results/logs/{dataset}/seed{seed}/diagnostics.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/diagnostics.tsv"
    conda:
        "../envs/page.yaml"
    message:
        "Measuring reliability and risk on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "diagnostics.py",
            "--compared {input.compared:q} --labels {input.labels:q} --diagnostics {output:q}",
        )


# The page of a data set, or of all data sets of the benchmark beside the paper (`benchmark`).
rule page:
    input:
        unpack(page_inputs),
        spec=spec("page"),
        config="results/config.resolved.yaml",
    output:
        "results/{page}/report.html",
    log:
        "results/logs/page_{page}.log",
    benchmark:
        "results/benchmarks/page_{page}.tsv"
    wildcard_constraints:
        page=any_of([*CONFIG.datasets, "benchmark"]),
    conda:
        "../envs/page.yaml"
    message:
        "Making the page results/{wildcards.page}/report.html"
    shell:
        command(
            "page.py",
            "--scores {input.scores:q} --diagnostics {input.diagnostics:q}"
            " --tables {input.tables:q} --paper {input.paper:q} --config {input.config:q}"
            " --page {output:q}",
        )
