rule tables:
    input:
        scores=lambda wildcards: table_inputs(wildcards.dataset),
        comparisons="results/tables/{dataset}_comparisons.csv",
    output:
        table_files("results/tables", captions=True),
    log:
        "results/logs/{dataset}/tables.log",
    benchmark:
        "results/benchmarks/{dataset}/tables.tsv"
    conda:
        "../envs/report.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("tables"),
    message:
        "Making the tables of {wildcards.dataset}"
    shell:
        python("tables.py") + " --scores {input.scores:q} --comparisons {input.comparisons:q}"
        " --tables {output:q}"


# Here, where it is known which scores there are.
rule partial_tables:
    input:
        scores=lambda wildcards: list(plan.finished_scores(wildcards.dataset).values()),
    output:
        table_files("results/partial"),
    log:
        "results/logs/{dataset}/partial_tables.log",
    benchmark:
        "results/benchmarks/{dataset}/partial_tables.tsv"
    localrule: True
    conda:
        "../envs/report.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("partial_tables"),
    message:
        "Making tables of {wildcards.dataset} from the scores that there are"
    shell:
        python("partial_tables.py") + " --scores {input.scores:q} --tables {output:q}"


rule comparisons:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
        compared=lambda wildcards: score_files(wildcards.dataset, ".npz"),
        labels="results/{dataset}/labels.npz",
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        spec=spec("comparisons"),
    message:
        "Comparing the methods on {wildcards.dataset}"
    shell:
        python("comparisons.py")
        + " --scores {input.scores:q} --compared {input.compared:q} --labels {input.labels:q}"
        " --tables {output:q}"


# Benchmark files are no inputs: losing one, or fitting other chunks of tasks, must not fit anew.
rule runtimes:
    input:
        scores=lambda wildcards: score_files(wildcards.dataset),
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("runtimes"),
    message:
        "Making the table of run times of {wildcards.dataset}"
    shell:
        python("runtimes.py")
        + " --scores {input.scores:q} --benchmarks results/benchmarks/{wildcards.dataset}"
        " --tables {output:q}"


rule figures:
    input:
        scores=lambda wildcards: table_inputs(wildcards.dataset),
    output:
        figure_files(),
    log:
        "results/logs/{dataset}/figures.log",
    benchmark:
        "results/benchmarks/{dataset}/figures.tsv"
    conda:
        "../envs/report.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("figures"),
    message:
        "Drawing the figures of {wildcards.dataset}"
    shell:
        python("figures.py") + " --scores {input.scores:q} --figures {output:q}"


rule sensitivity_figure:
    input:
        tables=lambda wildcards: sensitivity_files(wildcards.dataset),
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("sensitivity_figure"),
    message:
        "Drawing the sensitivity of {wildcards.dataset}"
    shell:
        python("sensitivity_figure.py") + " --tables {input.tables:q} --figures {output:q}"


rule paper_comparison:
    input:
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("paper_comparison"),
    message:
        "Comparing the benchmark with the published tables"
    shell:
        python("paper_comparison.py")
        + " --scores {input.scores:q} --table {output.table:q} --comparison {output.comparison:q}"
        " --comparison-text {output.comparison_text:q} --means {output.means:q}"


rule claims:
    input:
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("claims"),
    message:
        "Checking the paper's statements"
    shell:
        python("claims.py") + " --scores {input.scores:q} --toy {input.toy:q}"
        " --table {output.table:q} --text {output.text:q}"


rule resolved_config:
    output:
        "results/config.resolved.yaml",
    log:
        "results/logs/resolved_config.log",
    benchmark:
        "results/benchmarks/resolved_config.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(500),
        runtime=growing(10),
    params:
        spec=spec("resolved_config"),
    message:
        "Writing the resolved configuration"
    shell:
        python("resolved_config.py") + " --config {output:q}"


rule diagnostics:
    input:
        compared=lambda wildcards: expand(
            "results/{{dataset}}/seed{{seed}}/scores/{method}.npz",
            method=plan.methods(wildcards.dataset),
        ),
        labels="results/{dataset}/labels.npz",
        images="results/{dataset}/images.npz",
    output:
        "results/{dataset}/seed{seed}/diagnostics.json",
    log:
        "results/logs/{dataset}/seed{seed}/diagnostics.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/diagnostics.tsv"
    conda:
        "../envs/page.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        spec=spec("diagnostics"),
    message:
        "Looking where the methods err on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("diagnostics.py") + " --compared {input.compared:q} --labels {input.labels:q}"
        " --images {input.images:q} --diagnostics {output:q}"


# What a page is made of is known from its name alone, so each is a rule of its own. The manifest
# is no input: each run begins with a line there.
for _page in PAGES:

    rule:
        name:
            f"page_{_page}"
        input:
            **page_inputs(_page),
            config="results/config.resolved.yaml",
        output:
            page_file(_page),
        log:
            f"results/logs/page_{_page}.log",
        benchmark:
            f"results/benchmarks/page_{_page}.tsv"
        conda:
            "../envs/page.yaml"
        threads: CONFIG.threads
        resources:
            mem_mb=growing(2000),
            runtime=growing(10),
        params:
            spec=spec("page", page=_page),
        message:
            f"Making the page {page_file(_page)}"
        shell:
            python("page.py") + " --scores {input.scores:q} --diagnostics {input.diagnostics:q}"
            " --tables {input.tables:q} --paper {input.paper:q} --figures {input.figures:q}"
            " --toy {input.toy:q} --config {input.config:q} --manifest results/manifest.jsonl"
            " --page {output:q}"
