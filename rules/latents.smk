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
    priority: 100
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=growing(4000),
        runtime=growing(120),
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
        report(
            "results/figures/{dataset}/autoencoder_loss_seed{seed}.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/autoencoder_loss.rst",
            labels={"figure": "autoencoder loss"},
        ),
        "results/figures/{dataset}/autoencoder_loss_seed{seed}.pdf",
        report(
            "results/figures/{dataset}/reconstructions_seed{seed}.png",
            category="{dataset}",
            subcategory="Figures",
            caption="../report/reconstructions.rst",
            labels={"figure": "reconstructions"},
        ),
        "results/figures/{dataset}/reconstructions_seed{seed}.pdf",
    log:
        "results/logs/{dataset}/seed{seed}/autoencoder_figures.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/autoencoder_figures.tsv"
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
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
    priority: 100
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=growing(4000),
        runtime=growing(30),
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
    priority: 100
    conda:
        "../envs/statistics.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        spec=spec("neighbors"),
    message:
        "Finding the neighbours of the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --latents {input.latents:q} --output {output:q}"
