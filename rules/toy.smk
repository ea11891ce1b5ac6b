# Toy experiments, where P(Y = 1 | x) is known.
rule toy_data:
    input:
        spec=spec("toy_data"),
    output:
        "results/toy/{experiment}/methods/{method}.csv",
    log:
        "results/logs/toy/{experiment}/{method}.log",
    benchmark:
        "results/benchmarks/toy/{experiment}/{method}.tsv"
    wildcard_constraints:
        method="[A-Za-z][A-Za-z0-9_]*",
    conda:
        "../envs/torch.yaml"
    message:
        "Running {wildcards.experiment} with {wildcards.method}"
    shell:
        command("toy_data.py", "--table {output:q}")


rule toy_figures:
    input:
        spec=spec("toy_figures"),
        tables=lambda w: expand(
            "results/toy/{experiment}/methods/{method}.csv",
            method=plan.toy_runs(w.experiment),
            allow_missing=True,
        ),
    output:
        png=report(
            "results/toy/{experiment}/{experiment}.png",
            category="Toy experiments",
            caption="../report/toy.rst",
            labels={"experiment": "{experiment}"},
        ),
        pdf="results/toy/{experiment}/{experiment}.pdf",
        table="results/toy/{experiment}/{experiment}.csv",
    log:
        "results/logs/toy/{experiment}/figure.log",
    benchmark:
        "results/benchmarks/toy/{experiment}/figure.tsv"
    conda:
        "../envs/report.yaml"
    message:
        "Drawing {wildcards.experiment}"
    shell:
        command(
            "toy_figures.py",
            "--tables {input.tables:q} --table {output.table:q}"
            " --figures {output.png:q} {output.pdf:q}",
        )
