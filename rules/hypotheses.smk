# A job fits one method on all tasks of a data set, and writes a file for each into its folder.
rule hypotheses:
    input:
        spec=spec("hypotheses"),
        latents=latents_file,
        neighbors=neighbors_file,
    output:
        directory("results/{dataset}/seed{seed}/hypotheses/{method}"),
    log:
        "results/logs/{dataset}/seed{seed}/hypotheses/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/hypotheses/{method}.tsv"
    wildcard_constraints:
        method=any_of(plan.fitted),
    # The longest jobs start first, so that no core waits for the last of them.
    priority: 50
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        gpu=gpus_of_fit if GPU else 0,
        runtime=lambda wildcards, attempt: 480 * attempt,
    message:
        "Fitting {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "hypotheses.py",
            "--latents {input.latents:q} --neighbors {input.neighbors:q}"
            " --hypotheses {output:q}",
        )


rule predictions:
    input:
        spec=spec("predictions"),
        labels="results/{dataset}/labels.npz",
        predictions=prediction_files,
    output:
        directory("results/{dataset}/seed{seed}/hypotheses/{method}"),
    log:
        "results/logs/{dataset}/seed{seed}/hypotheses/{method}.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/hypotheses/{method}.tsv"
    wildcard_constraints:
        method=any_of(plan.imported),
    conda:
        "../envs/torch.yaml"
    message:
        "Importing the predictions of {wildcards.method} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "predictions.py",
            "--labels {input.labels:q} --predictions {input.predictions:q}"
            " --hypotheses {output:q}",
        )
