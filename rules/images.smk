rule images:
    input:
        sources=sources("images"),
    output:
        "results/{dataset}/images.npz",
    log:
        "results/logs/{dataset}/images.log",
    benchmark:
        "results/benchmarks/{dataset}/images.tsv"
    priority: 100
    conda:
        "../envs/torch.yaml"
    threads: config["threads"]
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
        # Where the data lie is no property of the result, so it is not in the spec.
        data_dir=config["data_dir"],
    params:
        spec=spec("images"),
    message:
        "Reading the images of {wildcards.dataset}"
    shell:
        "python {input.sources[0]:q} --spec {params.spec:q} --log {log:q}"
        " --data-dir {resources.data_dir:q} --output {output:q}"
