"""Join the tables of one toy experiment and draw its figure."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, experiment):
    methods = plan.toy_runs(experiment)
    labels = {name: plan.entries[name].label for name in methods if name in plan.entries}
    tables = {}
    for name in methods:
        tables |= plan.made_by("toy_data", experiment=experiment, method=name)
    return Needs(
        {"labels": labels},
        {"tables": tables},
        sources=[module_path("epistemic_calibration.paper.toy", experiment)],
    )


def step(job):
    from epistemic_calibration.files import atomic_path
    from epistemic_calibration.paper.toy import load_experiment
    from epistemic_calibration.paper.toy._drawing import draw
    from epistemic_calibration.report._saving import save_figure
    from epistemic_calibration.result_files import read_tables

    table = read_tables(job.inputs.tables)
    with atomic_path(job.outputs.table) as path:
        table.to_csv(path, index=False)
    figure = draw(load_experiment(job.where["experiment"]), table, job.settings.labels)
    save_figure(figure, job.outputs.figures[0].removesuffix(".png"))


STAGE = Stage(needs, step, inputs=("tables*",), outputs=("table", "figures*"))
