"""Find the nearest training latents of every test latent."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings:
    n_neighbors: int


def needs(plan, dataset, seed):
    settings = Settings(n_neighbors=plan.config.datasets[dataset].n_neighbors)
    return Needs(settings, {"latents": plan.made_by("latents", dataset=dataset, seed=seed)})


def step(job):
    from epistemic_calibration.files import read_npz, write_npz
    from epistemic_calibration.latents._neighbors import nearest_neighbors

    latents, _ = read_npz(job.inputs.latents, ["x_train", "x_test"])
    neighbors = nearest_neighbors(latents["x_train"], latents["x_test"], job.settings.n_neighbors)
    write_npz(job.outputs.neighbors, neighbors._asdict())


STAGE = Stage(Settings, needs, step, inputs=("latents",), outputs=("neighbors",))

if __name__ == "__main__":
    STAGE.run()
