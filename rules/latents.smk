rule encoder:
    input:
        spec=spec("encoder"),
        images="results/{dataset}/images.npz",
    output:
        weights="results/{dataset}/seed{seed}/encoder.safetensors",
        loss="results/{dataset}/seed{seed}/encoder_loss.csv",
    log:
        "results/logs/{dataset}/seed{seed}/encoder.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/encoder.tsv"
    priority: 100
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
        runtime=lambda wildcards, attempt: 120 * attempt,
    message:
        "Training the encoder of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "encoder.py",
            "--images {input.images:q} --weights {output.weights:q}" " --loss {output.loss:q}",
        )


rule encoder_figures:
    input:
        spec=spec("encoder_figures"),
        images="results/{dataset}/images.npz",
        labels="results/{dataset}/labels.npz",
        weights="results/{dataset}/seed{seed}/encoder.safetensors",
        loss="results/{dataset}/seed{seed}/encoder_loss.csv",
    output:
        captioned(
            "results/figures/{dataset}/autoencoder_loss_seed{seed}.png",
            "figure",
            "autoencoder_loss",
        ),
        "results/figures/{dataset}/autoencoder_loss_seed{seed}.pdf",
        captioned(
            "results/figures/{dataset}/reconstructions_seed{seed}.png",
            "figure",
            "reconstructions",
        ),
        "results/figures/{dataset}/reconstructions_seed{seed}.pdf",
    log:
        "results/logs/{dataset}/seed{seed}/encoder_figures.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/encoder_figures.tsv"
    conda:
        "../envs/torch.yaml"
    message:
        "Drawing the encoder of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "encoder_figures.py",
            "--images {input.images:q} --labels {input.labels:q}"
            " --weights {input.weights:q} --loss {input.loss:q} --figures {output:q}",
        )


rule latents:
    input:
        spec=spec("latents"),
        images="results/{dataset}/images.npz",
        labels="results/{dataset}/labels.npz",
        weights="results/{dataset}/seed{seed}/encoder.safetensors",
    output:
        "results/{dataset}/seed{seed}/latents.npz",
    log:
        "results/logs/{dataset}/seed{seed}/latents.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/latents.tsv"
    priority: 100
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    message:
        "Encoding the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command(
            "latents.py",
            "--images {input.images:q} --labels {input.labels:q}"
            " --weights {input.weights:q} --latents {output:q}",
        )


rule neighbors:
    input:
        spec=spec("neighbors"),
        latents="results/{dataset}/seed{seed}/latents.npz",
    output:
        "results/{dataset}/seed{seed}/neighbors.npz",
    log:
        "results/logs/{dataset}/seed{seed}/neighbors.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/neighbors.tsv"
    priority: 100
    conda:
        "../envs/statistics.yaml"
    message:
        "Finding the neighbours of the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        command("neighbors.py", "--latents {input.latents:q} --neighbors {output:q}")
