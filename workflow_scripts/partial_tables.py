"""Make the tables of a data set from those scores that there are."""

from epistemic_calibration.workflow.stage import Needs, Stage
from tables import Settings, settings_of, sources, step


def needs(plan, dataset):
    finished = [
        plan.fingerprint("scores", dataset=dataset, seed=seed, method=method)
        for seed, method in plan.finished_scores(dataset)
    ]
    return Needs(settings_of(plan, dataset), {"scores": finished}, sources=sources())


STAGE = Stage(Settings, needs, step, inputs=("scores*",), outputs=("tables*",))

if __name__ == "__main__":
    STAGE.run()
