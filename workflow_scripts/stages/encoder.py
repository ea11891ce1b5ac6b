"""Train the encoder of a data set on its training inputs."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset, seed):
    encoding = plan.encoding(dataset)
    return Needs(
        {"encoder": encoding.encoder, "parameters": encoding.encoder_parameters},
        {"images": plan.made_by("images", dataset=dataset)},
        sources=[module_path("epistemic_calibration.latents", encoding.encoder)],
    )


def step(job):
    from epistemic_calibration.files import atomic_path, read_npz
    from epistemic_calibration.latents import load_encoder
    from epistemic_calibration.seeds import derive_seed

    name = job.settings.encoder
    images, _ = read_npz(job.inputs.images, ["x_train"])
    random_state = derive_seed(int(job.where["seed"]), job.where["dataset"], name)
    encoder = load_encoder(name)(**job.settings.parameters, random_state=random_state)
    encoder.fit(images["x_train"])
    with atomic_path(job.outputs.loss) as path:
        encoder.history().to_csv(path, index=False)
    with atomic_path(job.outputs.weights) as path:
        encoder.save(path)


STAGE = Stage(needs, step, inputs=("images",), outputs=("weights", "loss"), threads=True)
