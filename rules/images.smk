rule images:
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
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
        # Where the data lie is no property of the result, so it is not in the spec.
        data_dir=str(plan.data_dir),
    params:
        spec=spec("images"),
    message:
        "Reading the inputs of {wildcards.dataset}"
    shell:
        python("images.py")
        + " --data-dir {resources.data_dir:q} --images {output.images:q} --labels {output.labels:q}"


rule label_counts:
    input:
        labels="results/{dataset}/labels.npz",
    output:
        "results/{dataset}/label_counts.npz",
    log:
        "results/logs/{dataset}/label_counts.log",
    benchmark:
        "results/benchmarks/{dataset}/label_counts.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
        data_dir=str(plan.data_dir),
    params:
        spec=spec("label_counts"),
    message:
        "Reading the several labels of each test input of {wildcards.dataset}"
    shell:
        python("label_counts.py") + " --labels {input.labels:q} --data-dir {resources.data_dir:q}"
        " --label-counts {output:q}"
