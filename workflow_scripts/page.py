"""Make the page of a data set, of the demo, or of the whole benchmark, from their results."""

from dataclasses import dataclass
from typing import Any

from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings:
    datasets: dict[str, dict[str, Any]]


def needs(plan, page):
    from epistemic_calibration.latents import load_encoder
    from epistemic_calibration.registry import available, load, registered_files

    package = "epistemic_calibration.report.tables"
    suffixes = [load(package, name).SUFFIX for name in available(package)]
    of_benchmark = page == "benchmark"
    datasets = plan.config.benchmark if of_benchmark else [page]
    names = ("scores", "diagnostics", "tables", "paper", "figures", "toy")
    inputs = {name: {} for name in names}
    for d in datasets:
        inputs["scores"] |= plan.table_inputs_of(d)
        inputs["diagnostics"] |= plan.made_by("diagnostics", dataset=d, seed=plan.seeds(d)[0])
        inputs["tables"] |= plan.made_by("tables", dataset=d)
        inputs["tables"] |= plan.made_by("comparisons", dataset=d)
        if load_encoder(plan.encoding(d).encoder).reconstructs:
            for seed in plan.encoder_seeds(d):
                inputs["figures"] |= plan.made_by("encoder_figures", dataset=d, seed=seed)
    if of_benchmark:
        for stage in ("paper_comparison", "claims"):
            inputs["paper"] |= plan.made_by(stage)
        for experiment in plan.config.toy:
            inputs["toy"] |= plan.made_by("toy_figures", experiment=experiment)
    inputs["config"] = plan.made_by("resolved_config")
    settings = Settings(
        datasets={
            d: {
                "methods": plan.methods_shown(plan.methods(d)),
                "tasks": list(plan.tasks(d)),
                "seeds": plan.seeds(d),
                # The name of another data set may begin in the same way.
                "tables": [d, *(f"{d}{suffix}" for suffix in (*suffixes, "_comparisons"))],
                "confidence_level": plan.config.datasets[d].scores.confidence_level,
            }
            for d in datasets
        }
    )
    return Needs(settings, inputs, sources=registered_files("epistemic_calibration.scoring"))


def step(job):
    import json
    from copy import deepcopy
    from pathlib import Path

    from epistemic_calibration.files import write_text
    from epistemic_calibration.report.page._html import Picture
    from epistemic_calibration.report.page.run import DatasetResults, RunResults, run_page
    from epistemic_calibration.result_files import read_tables

    scores = read_tables(job.inputs.scores)
    read = [json.loads(Path(path).read_text("utf-8")) for path in job.inputs.diagnostics]
    diagnostics = {found["dataset"]: found["methods"] for found in read}
    datasets = []
    for name, settings in deepcopy(job.settings.datasets).items():
        stems = settings.pop("tables")
        tables = texts_of(path for path in job.inputs.tables if Path(path).stem in stems)
        figures = [Path(path) for path in job.inputs.figures if Path(path).parent.name == name]
        (pairs,) = (path for path in job.inputs.tables if path.endswith(f"/{name}_comparisons.csv"))
        datasets.append(
            DatasetResults(
                name=name,
                scores=scores[scores["dataset"] == name],
                diagnostics=diagnostics[name],
                tables=tables,
                differences=read_tables([pairs]),
                pictures=[
                    Picture.read(path, *described(path.stem, name)) for path in sorted(figures)
                ],
                **settings,
            )
        )
    toy = [Path(path) for path in sorted(job.inputs.toy)]
    page = run_page(
        RunResults(
            datasets,
            tables=texts_of(job.inputs.paper),
            pictures=[Picture.read(path, *described_toy(path.stem)) for path in toy],
            config=Path(job.inputs.config).read_text("utf-8"),
            manifest="",
        )
    )
    write_text(job.outputs.page, page)


def texts_of(paths):
    """Return the content of tables by a name that says which they are."""
    from pathlib import Path

    found = {}
    for path in map(Path, sorted(paths)):
        folder = f"{path.parent.name}/" if path.parent.name != "tables" else ""
        found[f"{folder}{path.name}"] = path.read_text("utf-8")
    return found


def described(stem, dataset):
    kind, _, seed = stem.rpartition("_seed")
    what = {
        "autoencoder_loss": "training loss of the autoencoder by epoch",
        "reconstructions": "one test image of each class, above its reconstruction",
    }[kind]
    text = f"{dataset}, seed {seed}: {what}"
    return text, text


def described_toy(experiment):
    text = f"Toy experiment {experiment.replace('_', ' ')}, for which P(Y = 1 | x) is known"
    return text, text


STAGE = Stage(
    Settings,
    needs,
    step,
    inputs=("scores*", "diagnostics*", "tables*", "paper*", "figures*", "toy*", "config"),
    outputs=("page",),
)

if __name__ == "__main__":
    STAGE.run()
