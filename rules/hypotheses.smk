# A job fits one method on a chunk of a data set's tasks and writes a file for each.
for _dataset in DATASETS:
    for _name, _part, _tasks, _shown in fits(_dataset):

        rule:
            name:
                _name
            input:
                latents=f"results/{_dataset}/seed{{seed}}/latents.npz",
                neighbors=neighbors_file(_dataset),
            output:
                task_files(_dataset, _tasks),
            log:
                f"results/logs/{_dataset}/seed{{seed}}/hypotheses/{{method}}.{_part}.log",
            benchmark:
                f"results/benchmarks/{_dataset}/seed{{seed}}/hypotheses/{{method}}.{_part}.tsv"
            wildcard_constraints:
                method=any_of(plan.fitted),
            # The longest jobs start first, so that no core waits for the last of them.
            priority: 50
            conda:
                "../envs/torch.yaml"
            threads: CONFIG.threads
            resources:
                gpu=gpus_of_fit if GPU else 0,
                mem_mb=growing(4000),
                runtime=growing(240),
            params:
                spec=spec("hypotheses", dataset=_dataset),
            message:
                f"Fitting {{wildcards.method}} on {_dataset}, seed {{wildcards.seed}}: {_shown}"
            shell:
                python("hypotheses.py")
                + " --latents {input.latents:q} --neighbors {input.neighbors:q} --hypotheses {output:q}"


# Only where there are any: each file of hypotheses would be looked for among its outputs.
for _dataset in DATASETS if plan.imported else []:

    rule:
        name:
            f"predictions_{_dataset}"
        input:
            labels=f"results/{_dataset}/labels.npz",
            predictions=prediction_files(_dataset),
        output:
            task_files(_dataset),
        log:
            f"results/logs/{_dataset}/seed{{seed}}/hypotheses/{{method}}.log",
        benchmark:
            f"results/benchmarks/{_dataset}/seed{{seed}}/hypotheses/{{method}}.tsv"
        wildcard_constraints:
            method=any_of(plan.imported),
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads
        resources:
            mem_mb=growing(2000),
            runtime=growing(10),
        params:
            spec=spec("predictions", dataset=_dataset),
        message:
            f"Importing the predictions of {{wildcards.method}} on {_dataset}, seed {{wildcards.seed}}"
        shell:
            python("predictions.py")
            + " --labels {input.labels:q} --predictions {input.predictions:q} --hypotheses {output:q}"
