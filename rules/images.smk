rule images:
    input:
        spec=spec("images"),
    output:
        images="results/{dataset}/images.npz",
        labels="results/{dataset}/labels.npz",
    log:
        "results/logs/{dataset}/images.log",
    benchmark:
        "results/benchmarks/{dataset}/images.tsv"
    priority: 100
    conda:
        "../envs/torch.yaml"
    params:
        # Where the data lie is no property of the result.
        data_dir=plan.data_dir,
    message:
        "Reading the inputs of {wildcards.dataset}"
    shell:
        command(
            "images.py",
            "--data-dir {params.data_dir:q} --images {output.images:q}"
            " --labels {output.labels:q}",
        )


rule label_counts:
    input:
        spec=spec("label_counts"),
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/label_counts.npz",
    log:
        "results/logs/{dataset}/label_counts.log",
    benchmark:
        "results/benchmarks/{dataset}/label_counts.tsv"
    conda:
        "../envs/torch.yaml"
    params:
        data_dir=plan.data_dir,
    message:
        "Reading the several labels of each test input of {wildcards.dataset}"
    shell:
        command(
            "label_counts.py",
            "--labels {input.labels:q} --data-dir {params.data_dir:q}"
            " --label-counts {output:q}",
        )
