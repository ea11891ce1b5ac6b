"""Draw how the estimates of a data set move with the numbers of bins and hypotheses."""

from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset):
    methods, seed = plan.methods(dataset), plan.seeds(dataset)[0]
    tables = {}
    for name in methods:
        tables |= plan.made_by("sensitivity", dataset=dataset, seed=seed, method=name)
    return Needs(
        {"methods": plan.methods_shown(methods)},
        {"tables": tables},
        # Their labels.
        sources=registered_files("epistemic_calibration.scores"),
    )


def step(job):
    from epistemic_calibration.report._saving import save_figure
    from epistemic_calibration.report.sensitivity import sensitivity
    from epistemic_calibration.result_files import read_tables

    table = read_tables(job.inputs.tables)
    figure = sensitivity(table, job.where["dataset"], job.settings.methods)
    save_figure(figure, job.outputs.figures[0].removesuffix(".png"))


STAGE = Stage(needs, step, inputs=("tables*",), outputs=("figures*",))
