"""Join the scores of the benchmark and set them beside the published tables."""

from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow.sources import SCRIPTS
from epistemic_calibration.workflow.stage import Needs, Stage

PUBLISHED = SCRIPTS.parent / "resources" / "published_tables.csv"


def needs(plan):
    scores = {}
    for dataset in plan.config.benchmark:
        scores |= plan.scores_of(dataset)
    return Needs(
        {"methods": plan.methods_shown(list(plan.entries))},
        {"scores": scores},
        sources=[PUBLISHED, *registered_files("epistemic_calibration.scores")],
    )


def step(job):
    from epistemic_calibration.files import atomic_path, write_text
    from epistemic_calibration.paper import published
    from epistemic_calibration.report.warning_text import warning_notes
    from epistemic_calibration.result_files import read_tables

    scores = read_tables(job.inputs.scores)
    comparison = published.paper_comparison(scores, published.read_published(PUBLISHED))
    means = published.paper_comparison_means(comparison)
    for table, output in (
        (scores, job.outputs.table),
        (comparison, job.outputs.comparison),
        (means, job.outputs.means),
    ):
        with atomic_path(output) as path:
            table.to_csv(path, index=False)
    text = published.comparison_markdown(comparison, means, job.settings.methods)
    labels = {name: method["label"] for name, method in job.settings.methods.items()}
    text = "\n\n".join([text.rstrip("\n"), *warning_notes(job.warnings, labels)])
    write_text(job.outputs.comparison_text, f"{text}\n")


STAGE = Stage(
    needs, step, inputs=("scores*",), outputs=("table", "comparison", "comparison_text", "means")
)
