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
        "Reading the images of {wildcards.dataset}"
    shell:
        python("images.py")
        + " --data-dir {resources.data_dir:q} --images {output.images:q} --labels {output.labels:q}"
