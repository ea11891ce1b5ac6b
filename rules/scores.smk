rule scores:
    input:
        hypotheses=lambda wildcards: task_files(wildcards.dataset),
        labels="results/{dataset}/labels.npz",
        label_counts=label_counts_file,
    output:
        scores="results/{dataset}/seed{seed}/scores/{method}.csv",
        compared="results/{dataset}/seed{seed}/scores/{method}.npz",
    log:
        "results/logs/{dataset}/seed{seed}/scores/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/scores/{method}.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        spec=spec("scores"),
    message:
        "Scoring {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("scores.py") + " --hypotheses {input.hypotheses:q} --labels {input.labels:q}"
        " --label-counts {input.label_counts:q} --scores {output.scores:q} --compared {output.compared:q}"


rule bounds:
    input:
        compared=lambda wildcards: expand(
            "results/{{dataset}}/seed{{seed}}/scores/{method}.npz",
            method=plan.methods(wildcards.dataset),
        ),
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/seed{seed}/bounds.csv",
    log:
        "results/logs/{dataset}/seed{seed}/bounds.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/bounds.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        spec=spec("bounds"),
    message:
        "Bounding the errors of the methods on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("bounds.py")
        + " --compared {input.compared:q} --labels {input.labels:q} --bounds {output:q}"


rule sensitivity_tables:
    input:
        hypotheses=lambda wildcards: task_files(wildcards.dataset),
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/seed{seed}/sensitivity/{method}.csv",
    log:
        "results/logs/{dataset}/seed{seed}/sensitivity/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/sensitivity/{method}.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        spec=spec("sensitivity"),
    message:
        "Measuring the sensitivity of {wildcards.method} on {wildcards.dataset}"
    shell:
        python("sensitivity.py")
        + " --hypotheses {input.hypotheses:q} --labels {input.labels:q} --table {output:q}"
