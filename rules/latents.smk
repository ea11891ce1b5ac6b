rule autoencoder:
    input:
        images="results/{dataset}/images.npz",
        sources=sources("autoencoder"),
    output:
        weights="results/{dataset}/seed{seed}/autoencoder.safetensors",
        loss="results/{dataset}/seed{seed}/autoencoder_loss.csv",
    log:
        "results/logs/{dataset}/seed{seed}/autoencoder.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/autoencoder.tsv"
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        spec=spec("autoencoder"),
    message:
        "Training the autoencoder of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --images {input.images:q} --weights {output.weights:q} --loss {output.loss:q}"


rule autoencoder_figures:
    input:
        images="results/{dataset}/images.npz",
        weights="results/{dataset}/seed{seed}/autoencoder.safetensors",
        loss="results/{dataset}/seed{seed}/autoencoder_loss.csv",
        sources=sources("autoencoder_figures"),
    output:
        multiext("results/figures/{dataset}/autoencoder_loss_seed{seed}", ".png", ".pdf"),
        multiext("results/figures/{dataset}/reconstructions_seed{seed}", ".png", ".pdf"),
    log:
        "results/logs/{dataset}/seed{seed}/autoencoder_figures.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/autoencoder_figures.tsv"
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        spec=spec("autoencoder_figures"),
    message:
        "Drawing the autoencoder of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --images {input.images:q} --weights {input.weights:q} --loss {input.loss:q}"
        " --figures {output:q}"


rule latents:
    input:
        images="results/{dataset}/images.npz",
        weights="results/{dataset}/seed{seed}/autoencoder.safetensors",
        sources=sources("latents"),
    output:
        "results/{dataset}/seed{seed}/latents.npz",
    log:
        "results/logs/{dataset}/seed{seed}/latents.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/latents.tsv"
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        spec=spec("latents"),
    message:
        "Encoding the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --images {input.images:q} --weights {input.weights:q} --output {output:q}"


rule neighbors:
    input:
        latents="results/{dataset}/seed{seed}/latents.npz",
        sources=sources("neighbors"),
    output:
        "results/{dataset}/seed{seed}/neighbors.npz",
    log:
        "results/logs/{dataset}/seed{seed}/neighbors.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/neighbors.tsv"
    conda:
        "../envs/statistics.yaml"
    threads: config["threads"]
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        spec=spec("neighbors"),
    message:
        "Finding the neighbours of the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --latents {input.latents:q} --output {output:q}"
