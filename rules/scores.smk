rule scores:
    input:
        spec=spec("scores"),
        hypotheses="results/{dataset}/seed{seed}/hypotheses/{method}",
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
    message:
        "Scoring {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "scores.py",
            "--hypotheses {input.hypotheses:q} --labels {input.labels:q}"
            " --label-counts {input.label_counts:q} --scores {output.scores:q}"
            " --compared {output.compared:q}",
        )


rule bounds:
    input:
        spec=spec("bounds"),
        compared=of_methods("results/{dataset}/seed{seed}/scores/{method}.npz"),
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/seed{seed}/bounds.csv",
    log:
        "results/logs/{dataset}/seed{seed}/bounds.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/bounds.tsv"
    conda:
        "../envs/statistics.yaml"
    message:
        "Bounding the errors of the methods on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "bounds.py",
            "--compared {input.compared:q} --labels {input.labels:q} --bounds {output:q}",
        )


rule sensitivity_tables:
    input:
        spec=spec("sensitivity"),
        hypotheses="results/{dataset}/seed{seed}/hypotheses/{method}",
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/seed{seed}/sensitivity/{method}.csv",
    log:
        "results/logs/{dataset}/seed{seed}/sensitivity/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/sensitivity/{method}.tsv"
    conda:
        "../envs/statistics.yaml"
    message:
        "Measuring the sensitivity of {wildcards.method} on {wildcards.dataset}"
    shell:
        command(
            "sensitivity.py",
            "--hypotheses {input.hypotheses:q} --labels {input.labels:q}" " --table {output:q}",
        )
