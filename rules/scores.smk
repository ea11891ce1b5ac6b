rule scores:
    input:
        hypotheses=lambda wildcards: task_files(wildcards.dataset),
        sources=sources("scores"),
    output:
        scores="results/{dataset}/seed{seed}/scores/{method}.csv",
        predictions="results/{dataset}/seed{seed}/scores/{method}.npz",
    log:
        "results/logs/{dataset}/seed{seed}/scores/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/scores/{method}.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        spec=spec("scores"),
    message:
        "Scoring {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --hypotheses results/{wildcards.dataset}/seed{wildcards.seed}/hypotheses/{wildcards.method}"
        " --output {output.scores:q}"


rule sensitivity_data:
    input:
        hypotheses=lambda wildcards: task_files(wildcards.dataset),
        sources=sources("sensitivity"),
    output:
        "results/{dataset}/seed{seed}/sensitivity/{method}.csv",
    log:
        "results/logs/{dataset}/seed{seed}/sensitivity/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/sensitivity/{method}.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        spec=spec("sensitivity"),
    message:
        "Measuring the sensitivity of {wildcards.method} on {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --hypotheses results/{wildcards.dataset}/seed{wildcards.seed}/hypotheses/{wildcards.method}"
        " --output {output:q}"
