"""Several labels per image: published sets, files, arrays inside .npz files, annotations."""

import numpy as np
import pytest
import torch

from epistemic_calibration._label_order import is_majority
from epistemic_calibration.data import (
    DataError,
    label_counts_inventory,
    load_dataset,
    load_label_counts,
    make_source,
    raw_inventory,
)
from epistemic_calibration.data._several_labels import PUBLISHED, Published, content_sha256

N_TEST, CLASSES = 120, ("cat", "dog", "T-shirt/top")
NPZ = {"source": "npz", "path": "raw.npz"}


def write_raw(folder, **more):
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (60, 6, 6)).astype(np.uint8),
        "y_train": np.arange(60) % 3,
        "x_test": rng.integers(0, 256, (N_TEST, 6, 6)).astype(np.uint8),
        "y_test": np.arange(N_TEST) % 3,
        "class_names": np.array(CLASSES),
    }
    np.savez(folder / "raw.npz", **{**arrays, **more})


#: Counts of five people, most of whom give the label.
P = np.where(np.eye(3)[np.arange(N_TEST) % 3] == 1, 0.8, 0.1)
COUNTS = np.random.default_rng(0).multinomial(5, P)


def load(config, folder):
    data = load_dataset(config, folder)
    return data, load_label_counts(
        config,
        folder,
        y_test=data.y_test,
        test_rows=data.test_rows,
        class_names=data.class_names,
    )


def test_a_data_set_has_none_unless_it_says_so(tmp_path):
    write_raw(tmp_path)
    assert not make_source(NPZ).has_label_counts(tmp_path)
    write_raw(tmp_path, label_counts=COUNTS)
    assert make_source(NPZ).has_label_counts(tmp_path)
    np.testing.assert_array_equal(load(NPZ, tmp_path)[1], COUNTS)


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv"])
def test_a_file_beside_the_data(tmp_path, suffix):
    write_raw(tmp_path)
    path = tmp_path / f"counts.{suffix}"
    if suffix == "npy":
        np.save(path, COUNTS.astype(np.uint8))
    elif suffix == "npz":
        np.savez(path, anything=COUNTS.astype(float))
    else:
        np.savetxt(path, COUNTS, fmt="%d", delimiter=",")
    config = {**NPZ, "label_counts": path.name}
    _, counts = load(config, tmp_path)
    np.testing.assert_array_equal(counts, COUNTS)
    assert counts.dtype == np.int64
    # What the images are made of does not depend on them; what the counts are made of does.
    assert raw_inventory(config, tmp_path) == raw_inventory(NPZ, tmp_path)
    before = label_counts_inventory(config, tmp_path)
    path.write_bytes(path.read_bytes() + b"\n")
    assert label_counts_inventory(config, tmp_path) != before


@pytest.mark.parametrize("names", [CLASSES, ("0", "1", "2")])
def test_a_header_names_the_classes_in_any_order(tmp_path, names):
    write_raw(tmp_path, class_names=np.array(names))
    order = [2, 0, 1]
    rows = [",".join(map(str, row)) for row in ([names[k] for k in order], *COUNTS[:, order])]
    (tmp_path / "counts.csv").write_text("\n".join(rows) + "\n")
    _, counts = load({**NPZ, "label_counts": "counts.csv"}, tmp_path)
    np.testing.assert_array_equal(counts, COUNTS)
    (tmp_path / "counts.csv").write_text("\n".join(["cat,dog,bird", *rows[1:]]) + "\n")
    with pytest.raises(DataError, match="the header names cat, dog, bird, the classes are"):
        load({**NPZ, "label_counts": "counts.csv"}, tmp_path)


def test_a_part_of_the_test_set_keeps_its_own_counts(tmp_path):
    write_raw(tmp_path, label_counts=COUNTS)
    data, counts = load({**NPZ, "max_test": 12}, tmp_path)
    assert len(counts) == 12
    np.testing.assert_array_equal(counts, COUNTS[data.test_rows])
    whole = load_dataset(NPZ, tmp_path)
    np.testing.assert_array_equal(data.x_test, whole.x_test[data.test_rows])


@pytest.mark.fault
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (COUNTS[:, :2], r"one column for each of the 3 classes"),
        (COUNTS[:-1], "counts of 119 inputs; there must be one row for each input of the whole"),
        (-COUNTS, "from -5 up"),
        (COUNTS / 2 + 0.25, "it must hold integers"),
        (COUNTS[:, [1, 2, 0]], "less than in another order"),
        (COUNTS[np.argsort(np.arange(N_TEST) % 3, kind="stable")], "no more than by chance"),
        (0 * COUNTS, "no test input has a label"),
    ],
)
def test_counts_that_cannot_be_those_of_the_images_are_refused(tmp_path, counts, message):
    write_raw(tmp_path)
    np.save(tmp_path / "counts.npy", counts)
    with pytest.raises(DataError, match=message):
        load({**NPZ, "label_counts": "counts.npy"}, tmp_path)


@pytest.mark.fault
def test_a_missing_file_is_told_with_the_published_sets(tmp_path):
    write_raw(tmp_path)
    with pytest.raises(DataError, match=r"no such file: .*nothing\.npy .*cifar10h, fashion"):
        label_counts_inventory({**NPZ, "label_counts": "nothing.npy"}, tmp_path)
    with pytest.raises(DataError, match="cifar10n is given as `annotations`"):
        label_counts_inventory({**NPZ, "label_counts": "cifar10n"}, tmp_path)


def annotations(seed=0):
    rng = np.random.default_rng(seed)
    people = np.repeat((np.arange(60) % 3)[:, None], 3, axis=1)
    wrong = rng.random(people.shape) < 0.2
    people[wrong] = rng.integers(0, 3, wrong.sum())
    people[5, 2] = -1
    return people


def test_annotations_hold_out_training_images(tmp_path):
    write_raw(tmp_path)
    people = annotations()
    np.save(tmp_path / "people.npy", people)
    config = {**NPZ, "annotations": "people.npy", "held_out_fraction": 0.3}
    assert make_source(config).has_label_counts(tmp_path)
    data, counts = load(config, tmp_path)
    assert (len(data.y_train), len(data.y_test)) == (42, 18)
    whole = load_dataset(NPZ, tmp_path)
    rows = data.test_rows
    np.testing.assert_array_equal(data.x_test, whole.x_train[rows])
    np.testing.assert_array_equal(data.y_test, people[rows, 0])
    rest = np.setdiff1d(np.arange(60), rows)
    np.testing.assert_array_equal(data.x_train, whole.x_train[rest])
    np.testing.assert_array_equal(data.y_train, people[rest, 0])
    for k in range(3):
        np.testing.assert_array_equal(counts[:, k], (people[rows] == k).sum(axis=1))
    # Other annotations are another data set, and the same ones the same.
    inventory = raw_inventory(config, tmp_path)
    assert inventory == raw_inventory(config, tmp_path) != raw_inventory(NPZ, tmp_path)
    part, some = load({**config, "max_test": 9, "max_train": 20}, tmp_path)
    assert (len(part.y_train), len(part.y_test)) == (20, 9)
    np.testing.assert_array_equal(some, counts[np.isin(rows, part.test_rows)])


@pytest.mark.fault
@pytest.mark.parametrize(
    ("people", "message"),
    [
        (annotations()[:-1], "has 59 rows, but there are 60 training inputs"),
        (annotations() + 1, "labels from 0 to 3; they must lie in 0 ... 2"),
    ],
)
def test_annotations_that_cannot_be_those_of_the_images_are_refused(tmp_path, people, message):
    write_raw(tmp_path)
    np.save(tmp_path / "people.npy", people)
    with pytest.raises(DataError, match=message):
        load_dataset({**NPZ, "annotations": "people.npy"}, tmp_path)


# --- Published sets


@pytest.fixture
def published(served, monkeypatch):
    """A published set of this module's counts, on a server of this machine."""
    folder, address = served
    np.save(folder / "mine.npy", COUNTS)
    made = Published(
        kind="label_counts",
        file="mine.npy",
        url=f"{address}mine.npy",
        shape=COUNTS.shape,
        read=np.load,
        about="these images",
        sha256=content_sha256(COUNTS),
    )
    monkeypatch.setitem(PUBLISHED, "mine", made)
    return made


def test_published_counts_are_downloaded_once(tmp_path, published):
    data = tmp_path / "data"
    data.mkdir()
    write_raw(data)
    config = {**NPZ, "label_counts": "mine"}
    _, counts = load(config, data)
    np.testing.assert_array_equal(counts, COUNTS)
    assert sorted(path.name for path in data.iterdir()) == ["mine.npy", "raw.npz"]
    (tmp_path / "server" / "mine.npy").unlink()
    load(config, data)


@pytest.mark.fault
def test_published_counts_that_are_others_are_refused(tmp_path, published):
    np.save(tmp_path / "mine.npy", COUNTS[::-1])
    with pytest.raises(DataError, match=r"mine\.npy does not hold the labels published at http"):
        published.load(tmp_path)
    (tmp_path / "mine.npy").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"mine\.npy cannot be read .* Delete it and run again"):
        published.load(tmp_path)


@pytest.mark.fault
def test_a_download_that_fails_says_where_to_put_the_file(tmp_path, published):
    (tmp_path / "server" / "mine.npy").unlink()
    with pytest.raises(DataError, match=rf"could not be downloaded .* Put the file to {tmp_path}"):
        published.load(tmp_path)
    assert not (tmp_path / "mine.npy").exists()


def test_the_file_of_cifar10n_is_read_and_nothing_in_it_is_run(tmp_path):
    people = np.random.default_rng(0).integers(0, 10, (50_000, 3))
    labels = {f"random_label{k + 1}": people[:, k].copy() for k in range(3)}
    path = tmp_path / "CIFAR-10_human.pt"
    labels["clean_label"] = people[:, 0].copy()
    # Not zipped, so that the bytes can be changed to those of an older numpy.
    torch.save(labels, path, _use_new_zipfile_serialization=False)
    path.write_bytes(path.read_bytes().replace(b"numpy._core.multi", b"numpy.core.multi"))
    np.testing.assert_array_equal(PUBLISHED["cifar10n"].read(path), people)
    # The content is not that published.
    with pytest.raises(DataError, match="does not hold the labels published"):
        PUBLISHED["cifar10n"].load(tmp_path)

    class Bomb:
        def __reduce__(self):
            return (print, ("run",))

    torch.save({"random_label1": Bomb()}, path)
    with pytest.raises(DataError, match="cannot be read"):
        PUBLISHED["cifar10n"].load(tmp_path)


@pytest.mark.parametrize("n_raters", [3, 5])
def test_a_label_that_most_raters_gave_is_told_from_that_of_one(n_raters):
    rng = np.random.default_rng(0)
    raters = (rng.random((400, n_raters)) < rng.random((400, 1))).astype(int)
    counts = np.stack([(raters == c).sum(axis=1) for c in (0, 1)], axis=1)
    assert is_majority(counts, counts.argmax(axis=1))
    assert not is_majority(counts, raters[:, 0])
