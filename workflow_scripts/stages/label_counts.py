"""Read how many people gave each class to each test image of a data set."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset):
    from epistemic_calibration.data import label_counts_inventory

    source = plan.config.datasets[dataset].source
    inventory = plan.of_source(label_counts_inventory, dataset)
    settings = {"source": source, "inventory": inventory}
    return Needs(
        settings,
        {"labels": plan.made_by("images", dataset=dataset)},
        sources=[
            module_path("epistemic_calibration.data", name)
            for name in (source["source"], "_several_labels")
        ],
    )


def step(job):
    from epistemic_calibration.data import DataError, label_counts_inventory, load_label_counts
    from epistemic_calibration.files import read_npz, write_npz

    source, folder = job.settings.source, job.inputs.data_dir
    labels, _ = read_npz(job.inputs.labels)
    counts = load_label_counts(
        source,
        folder,
        y_test=labels["y_test"],
        test_rows=labels["test_rows"],
        class_names=tuple(map(str, labels["class_names"])),
    )
    if label_counts_inventory(source, folder) != job.settings.inventory:
        raise DataError("the label counts have changed since the run began. Run snakemake again")
    same = {name: labels[name] for name in ("class_names", "y_test")}
    write_npz(job.outputs.label_counts, {"label_counts": counts, **same})


STAGE = Stage(needs, step, inputs=("labels",), outputs=("label_counts",), unchecked=("data_dir",))
