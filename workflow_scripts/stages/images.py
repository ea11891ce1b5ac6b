"""Read a data set: its inputs, images or features, into one file, its labels into another."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset):
    from epistemic_calibration.data import raw_inventory

    # What only the scores depend on must not fit anything again.
    source = {**plan.config.datasets[dataset].source, "label_counts": None}
    settings = {"source": source, "inventory": plan.of_source(raw_inventory, dataset)}
    # What a job loads by name.
    loaded = [source["source"], *(["_several_labels"] if source["annotations"] else [])]
    return Needs(
        settings, sources=[module_path("epistemic_calibration.data", name) for name in loaded]
    )


def step(job):
    import numpy as np

    from epistemic_calibration.data import DataError, load_dataset, raw_inventory
    from epistemic_calibration.files import write_npz

    source, folder = job.settings.source, job.inputs.data_dir
    # Before and after, so that what is replaced while it is read is seen.
    before = raw_inventory(source, folder)
    data = load_dataset(source, folder)
    if not before == raw_inventory(source, folder) == job.settings.inventory:
        raise DataError("the raw data have changed since the run began. Run snakemake again")
    write_npz(job.outputs.images, {"x_train": data.x_train, "x_test": data.x_test})
    labels = {"y_train": data.y_train, "y_test": data.y_test}
    names = {"class_names": np.array(data.class_names), "test_rows": np.asarray(data.test_rows)}
    write_npz(job.outputs.labels, {**labels, **names})


# Where the raw data lie is no property of the result, so nothing is asked of `data_dir`.
STAGE = Stage(needs, step, outputs=("images", "labels"), unchecked=("data_dir",))
