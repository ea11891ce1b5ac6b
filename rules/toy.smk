# Toy experiments, where P(Y = 1 | x) is known.
rule toy_data:
    output:
        "results/{toy}/{experiment}/methods/{method}.csv",
    log:
        "results/logs/{toy}/{experiment}/{method}.log",
    benchmark:
        "results/benchmarks/{toy}/{experiment}/{method}.tsv"
    wildcard_constraints:
        toy=any_of(TOYS),
        experiment=any_of(CONFIG.toy),
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        spec=spec("toy_data"),
    message:
        "Running {wildcards.experiment} with {wildcards.method} ({wildcards.toy})"
    shell:
        python("toy_data.py") + " --table {output:q}"


rule toy_figures:
    input:
        tables=toy_tables,
    output:
        table="results/{toy}/{experiment}/{experiment}.csv",
        figures=[
            report(
                "results/{toy}/{experiment}/{experiment}.png",
                category="{toy}",
                caption="../report/toy.rst",
                labels={"experiment": "{experiment}"},
            ),
            "results/{toy}/{experiment}/{experiment}.pdf",
        ],
    log:
        "results/logs/{toy}/{experiment}/figure.log",
    benchmark:
        "results/benchmarks/{toy}/{experiment}/figure.tsv"
    wildcard_constraints:
        toy=any_of(TOYS),
        experiment=any_of(CONFIG.toy),
    conda:
        "../envs/report.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        spec=spec("toy_figures"),
    message:
        "Drawing {wildcards.experiment} ({wildcards.toy})"
    shell:
        python("toy_figures.py")
        + " --tables {input.tables:q} --table {output.table:q} --figures {output.figures:q}"
