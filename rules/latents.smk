rule encoder:
    input:
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
        mem_mb=growing(4000),
        runtime=growing(120),
    params:
        spec=spec("encoder"),
    message:
        "Training the encoder of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("encoder.py")
        + " --images {input.images:q} --weights {output.weights:q} --loss {output.loss:q}"


rule encoder_figures:
    input:
        images="results/{dataset}/images.npz",
        labels="results/{dataset}/labels.npz",
        weights="results/{dataset}/seed{seed}/encoder.safetensors",
        loss="results/{dataset}/seed{seed}/encoder_loss.csv",
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
        "results/logs/{dataset}/seed{seed}/encoder_figures.log",
    benchmark:
        "results/benchmarks/{dataset}/seed{seed}/encoder_figures.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        spec=spec("encoder_figures"),
    message:
        "Drawing the encoder of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("encoder_figures.py")
        + " --images {input.images:q} --labels {input.labels:q} --weights {input.weights:q}"
        " --loss {input.loss:q} --figures {output:q}"


rule latents:
    input:
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
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        spec=spec("latents"),
    message:
        "Encoding the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("latents.py")
        + " --images {input.images:q} --labels {input.labels:q} --weights {input.weights:q}"
        " --latents {output:q}"


rule neighbors:
    input:
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        spec=spec("neighbors"),
    message:
        "Finding the neighbours of the latents of {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        python("neighbors.py") + " --latents {input.latents:q} --neighbors {output:q}"
