"""Make the page of a data set, or of the whole benchmark, from their results."""

from epistemic_calibration.registry import load, registered_files
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, page):
    of_benchmark = page == "benchmark"
    datasets = plan.config.benchmark if of_benchmark else [page]
    inputs = {name: {} for name in ("scores", "diagnostics", "tables", "paper")}
    for d in datasets:
        inputs["scores"] |= plan.table_inputs_of(d)
        inputs["diagnostics"] |= plan.made_by("diagnostics", dataset=d, seed=plan.seeds(d)[0])
        inputs["tables"] |= plan.made_by("tables", dataset=d)
        inputs["tables"] |= plan.made_by("comparisons", dataset=d)
    for stage in ("paper_comparison", "claims") if of_benchmark else ():
        inputs["paper"] |= plan.made_by(stage)
    inputs["config"] = plan.made_by("resolved_config")
    settings = {
        "datasets": {
            d: {
                "methods": plan.methods_shown(plan.methods(d)),
                "tasks": list(plan.tasks(d)),
                "seeds": {name: plan.seeds(d, name) for name in plan.methods(d)},
                "confidence_level": plan.config.datasets[d].scores.confidence_level,
                "n_resamples": plan.score_settings(d)["n_resamples"],
            }
            for d in datasets
        }
    }
    sources = registered_files(
        "epistemic_calibration.report.figures",
        "epistemic_calibration.report.tables",
        "epistemic_calibration.scores",
    )
    return Needs(settings, inputs, sources=sources)


def step(job):
    """Write the page; of the tables it shows those that the summary does not hold."""
    import json
    from pathlib import Path

    from epistemic_calibration.files import write_text
    from epistemic_calibration.report.comparisons import comparisons_table
    from epistemic_calibration.report.page.run import RunResults, run_page
    from epistemic_calibration.report.results import DatasetResults
    from epistemic_calibration.report.tables._table import PARTIAL, WARNING
    from epistemic_calibration.result_files import read_tables

    scores = read_tables(job.inputs.scores)
    read = [json.loads(Path(path).read_text("utf-8")) for path in job.inputs.diagnostics]
    diagnostics = {found["dataset"]: found["methods"] for found in read}
    files = {Path(path).name: path for path in job.inputs.tables}
    datasets, tables = [], {}
    for name, settings in job.settings.datasets.items():
        summary = Path(files[f"{name}_summary.md"]).read_text("utf-8").splitlines()
        differences = read_tables([files[f"{name}_comparisons.csv"]])
        results = DatasetResults(
            scores,
            name,
            differences=differences,
            diagnostics=diagnostics[name],
            warnings=[line for line in summary if line.startswith((PARTIAL, WARNING))],
            **settings,
        )
        datasets.append(results)
        tables[name] = [comparisons_table(results)]
        for table in ("drivers", "size"):
            tables[name].append(load("epistemic_calibration.report.tables", table).make(results))
    texts = {
        f"Beside the paper: {Path(path).stem.replace('_', ' ')}": Path(path).read_text("utf-8")
        for path in sorted(job.inputs.paper)
    }
    texts["Configuration, every default filled in"] = Path(job.inputs.config).read_text("utf-8")
    made_with = (f"{name} {', '.join(values)}" for name, values in job.made_with.items())
    facts = {"Results made with": "; ".join(made_with)}
    write_text(job.outputs.page, run_page(RunResults(datasets, tables, texts, facts)))


STAGE = Stage(
    needs,
    step,
    inputs=("scores*", "diagnostics*", "tables*", "paper*", "config"),
    outputs=("page",),
)
