"""Find the nearest training latents of every test latent."""

from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset, seed):
    settings = {"n_neighbors": plan.config.datasets[dataset].n_neighbors}
    return Needs(settings, {"latents": plan.made_by("latents", dataset=dataset, seed=seed)})


def step(job):
    from epistemic_calibration.files import read_npz, write_npz
    from epistemic_calibration.latents._neighbors import nearest_neighbors

    latents, _ = read_npz(job.inputs.latents, ["x_train", "x_test"])
    neighbors = nearest_neighbors(latents["x_train"], latents["x_test"], job.settings.n_neighbors)
    write_npz(job.outputs.neighbors, neighbors._asdict())


STAGE = Stage(needs, step, inputs=("latents",), outputs=("neighbors",))
