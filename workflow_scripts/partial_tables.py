"""Make the tables of a data set from those scores that there are."""

from dataclasses import dataclass

import tables
from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings(tables.Settings):
    #: Why methods have no scores, by name.
    failed: dict[str, str]


def needs(plan, dataset):
    import dataclasses

    finished = [
        plan.fingerprint("scores", dataset=dataset, seed=seed, method=method)
        for seed, method in plan.finished_scores(dataset)
    ]
    complete = dataclasses.asdict(tables.settings_of(plan, dataset))
    settings = Settings(**complete, failed=plan.failures(dataset))
    return Needs(settings, {"scores": finished}, sources=tables.sources())


STAGE = Stage(Settings, needs, tables.step, inputs=("scores*",), outputs=("tables*",))

if __name__ == "__main__":
    STAGE.run()
