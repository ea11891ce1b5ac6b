"""Encode all inputs of a data set with its trained encoder."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, dataset, seed):
    encoding = plan.encoding(dataset)
    images = plan.made_by("images", dataset=dataset)
    trained = plan.made_by("encoder", dataset=dataset, seed=seed)
    return Needs(
        {"encoder": encoding.encoder, "scaling": encoding.scaling, "device": plan.config.device},
        {"images": images, "labels": images, "weights": trained},
        sources=[module_path("epistemic_calibration.latents", encoding.encoder)],
    )


def step(job):
    from epistemic_calibration.files import read_npz, write_npz
    from epistemic_calibration.latents import load_encoder
    from epistemic_calibration.latents._scaling import n_dead_units, scale_latents

    images, _ = read_npz(job.inputs.images)
    labels, _ = read_npz(job.inputs.labels)
    encoder = load_encoder(job.settings.encoder).load(job.inputs.weights)
    if hasattr(encoder, "device"):
        encoder.device = job.settings.device
    train, test = (encoder.encode(images[part]) for part in ("x_train", "x_test"))
    dead = n_dead_units(train)
    logger.info("%d of %d latent units are dead", dead, train.shape[1])
    train, test = scale_latents(train, test, job.settings.scaling)
    # Labels beside the latents, for those who open this file alone.
    arrays = {"x_train": train, "x_test": test, **labels}
    write_npz(job.outputs.latents, arrays, n_dead_units=dead)


STAGE = Stage(
    needs, step, inputs=("images", "labels", "weights"), outputs=("latents",), threads=True
)
