"""Features in the columns of a table, and what is said where one is none."""

import hashlib
import os

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.data import (
    DataError,
    class_names_of,
    load_dataset,
    make_source,
    raw_inventory,
)

N = 200
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, N)
COLOUR = RNG.choice(["red", "green", "blue"], N)
LABEL = np.where(RNG.random(N) < 0.3, "yes", "no")


def people(**changes):
    columns = {"age": AGE, "colour": COLOUR, "smokes": AGE % 3 == 0, "bought": LABEL, **changes}
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


def load(folder, frame=None, file="people.csv", **keys):
    if frame is not None:
        frame.to_csv(folder / file, index=False)
    return load_dataset(source(file, **keys), folder)


def source(file="people.csv", **keys):
    return {"source": "table", "path": file, "label": "bought", **keys}


def test_columns_become_features(tmp_path):
    halves = np.repeat(["train", "test"], N // 2)
    loaded = load(tmp_path, people(part=halves), split="part")
    assert make_source(source()).has_features(tmp_path)
    assert loaded.class_names == ("no", "yes") == class_names_of(source(), tmp_path)
    x = np.concatenate([loaded.x_train, loaded.x_test])
    assert x.dtype == np.float64
    # In the order of the columns, categories in that of the alphabet.
    assert np.array_equal(x, np.c_[AGE, pd.get_dummies(COLOUR), AGE % 3 == 0])
    y = np.concatenate([loaded.y_train, loaded.y_test])
    assert np.array_equal(y, LABEL == "yes")
    assert loaded.test_rows.tolist() == list(range(N // 2))


def test_the_test_set_is_drawn_by_class(tmp_path):
    loaded = load(tmp_path, people(), test_fraction=0.25)
    assert (len(loaded.x_train), len(loaded.x_test)) == (150, 50)
    assert abs(loaded.y_test.mean() - loaded.y_train.mean()) < 0.02
    other = load(tmp_path, test_fraction=0.25, split_seed=1)
    assert not np.array_equal(other.x_test, loaded.x_test)
    assert np.array_equal(load(tmp_path, test_fraction=0.25).x_test, loaded.x_test)
    assert len(load(tmp_path).x_test) == N // 2
    kept = load(tmp_path, max_train=20, max_test=10)
    assert (len(kept.x_train), len(kept.x_test)) == (20, 10)
    whole = load(tmp_path)
    # Rows of the whole test set, for labels of several people in its order.
    assert np.array_equal(kept.x_test[:, 0], whole.x_test[kept.test_rows, 0])


def test_a_split_column_and_a_second_table_say_the_same(tmp_path):
    part = np.resize(["train", "Test ", "train", "validation"], N)
    marked = load(tmp_path, people(part=part), split="part")
    assert (len(marked.x_train), len(marked.x_test)) == (100, 50)
    people()[part == "train"].to_csv(tmp_path / "train.csv", index=False)
    # Further columns, and another order, do no harm.
    test = people(further=AGE)[part == "Test "][["bought", "smokes", "further", "colour", "age"]]
    test.to_csv(tmp_path / "test.csv", index=False)
    apart = load(tmp_path, file="train.csv", test_path="test.csv")
    for name in ("x_train", "y_train", "x_test", "y_test"):
        assert np.array_equal(getattr(marked, name), getattr(apart, name))


def test_what_is_learnt_is_learnt_from_the_training_rows(tmp_path, caplog):
    age = AGE.astype(float)
    age[::10] = np.nan
    colour, smokes = COLOUR.astype(object), (AGE % 3 == 0).astype(object)
    colour[5::10] = smokes[::7] = None
    part = np.repeat(["train", "test"], N // 2)
    # Extremes and a new category in the test rows alone.
    age[N // 2 + 1], colour[N // 2 + 1] = 1e6, "violet"
    frame = people(age=age, colour=colour, smokes=smokes, part=part)
    with caplog.at_level("INFO"):
        loaded = load(tmp_path, frame, split="part", missing="median")
    train = frame[: N // 2]
    filled = np.isnan(age)
    x = np.concatenate([loaded.x_train, loaded.x_test])
    assert np.array_equal(x[~filled, 0], age[~filled])
    assert set(x[filled, 0]) == {train["age"].median()}
    most = train["colour"].mode()[0]
    one_hot = x[:, 1:4]
    assert np.all(one_hot[frame["colour"].isna()] == [most == c for c in ("blue", "green", "red")])
    assert np.all(one_hot[N // 2 + 1] == 0)
    assert one_hot.sum() == N - 1
    # Of true and false, false is more frequent.
    assert np.array_equal(x[:, 4], np.where(frame["smokes"].isna(), False, AGE % 3 == 0))
    assert "missing values filled in (median): age (20), colour (20), smokes (29)" in caplog.text
    assert "0 in all of its features: in 1 of 100 test rows (violet)" in caplog.text
    fillings = load(tmp_path, missing="most_frequent", split="part").x_train[filled[: N // 2], 0]
    assert set(fillings) == {train["age"].mode()[0]}


def test_numbers_may_be_categories_and_text_labels_numbers(tmp_path):
    code = np.resize([10, 9, 8], N)
    loaded = load(tmp_path, people(code=code, age=None, colour=None), categorical=["code"])
    assert loaded.x_train.shape[1] == 1 + 3
    numbered = load(tmp_path, people(bought=code))
    # Ordered as numbers.
    assert numbered.class_names == ("8", "9", "10") == class_names_of(source(), tmp_path)
    empty = load(tmp_path, people(bought=np.where(LABEL == "yes", "None", "NA")))
    assert empty.class_names == ("NA", "None") == class_names_of(source(), tmp_path)


def test_files_of_every_kind_are_read_alike(tmp_path):
    expected = load(tmp_path, people(age=AGE / 4))
    frame = people(age=AGE / 4)
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame.to_csv(tmp_path / "a.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "german.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig")
    for file, keys in (
        ("a.csv.gz", {}),
        ("a.tsv", {}),
        ("german.csv", {"separator": ";", "decimal": ","}),
    ):
        loaded = load(tmp_path, file=file, **keys)
        assert np.array_equal(loaded.x_test, expected.x_test)
        assert loaded.class_names == expected.class_names


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = people(colour=pd.Categorical(COLOUR), bought=(LABEL == "yes").astype(int))
    frame.to_parquet(tmp_path / "a.parquet")
    loaded = load(tmp_path, file="a.parquet")
    assert loaded.class_names == ("0", "1") == class_names_of(source("a.parquet"), tmp_path)
    assert np.array_equal(loaded.x_test, load(tmp_path, people()).x_test)
    frame.assign(when=pd.date_range("2020", periods=N)).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="column 'when' holds dates or times, such as 2020"):
        load(tmp_path, file="a.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as a table"):
        load(tmp_path, file="a.parquet")


UNIQUE = [f"person {k}" for k in range(N)]


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "keys", "message"),
    [
        ({"id": range(N)}, {}, r"column 'id' numbers the rows .*\.drop: \['id'\]"),
        ({"person_id": np.arange(N) ** 2}, {}, "column 'person_id' numbers the rows or"),
        ({"name": UNIQUE}, {}, r"'name' has 200 different texts in 200 rows, such as 'person \d+'"),
        ({"day": ["3/14/2020"] * N}, {}, "'day' holds dates or times, such as 3/14/2020"),
        ({"cost": [f"{k},5" for k in range(N)]}, {}, r"'cost' holds numbers with decimal commas"),
        (
            {"cost": ["?", "none", *range(N - 2)]},
            {},
            r"column 'cost' holds numbers, but for 2 values such as '.*missing_values",
        ),
        ({"cost": np.r_[np.inf, np.zeros(N - 1)]}, {}, "'cost' has 1 infinite values"),
        ({"void": [None] * N}, {}, "column 'void' is empty"),
        ({"age": np.where(AGE < 20, np.nan, AGE)}, {}, r"missing values in age \(\d+\): set data"),
        ({}, {"drop": ["bought"]}, r"no column 'bought' besides label .*<name>\.drop\)"),
        ({}, {"drop": ["age", "colour", "smokes"]}, "has no columns left"),
        ({"bought": AGE + RNG.random(N)}, {}, "'bought' has 200 different labels in 200 rows"),
        (
            {"bought": ["", *LABEL[1:]]},
            {},
            "no label in column 'bought' in 1 of 200 rows, .* row 1",
        ),
        ({}, {"label": "sold"}, r"no column 'sold' .*\.label\); it has age, colour, smokes, bo"),
        ({}, {"split": "part"}, r"no column 'part' \(config key datasets\.<name>\.split\)"),
        ({}, {"split": "colour"}, "column 'colour' says '.*'.* it must say train or test"),
        ({"part": ["train"] * N}, {"split": "part"}, "no row is of the test set"),
        ({}, {"separator": ";"}, "it has age,colour,smokes,bought; is .*separator right"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(tmp_path, changes, keys, message):
    with pytest.raises((DataError, ValueError), match=message):
        load(tmp_path, people(**changes), **keys)


@pytest.mark.fault
def test_all_faults_of_a_table_are_told_at_once(tmp_path):
    age = np.where(AGE < 30, np.nan, AGE)
    frame = people(id=range(N), name=UNIQUE, age=age)
    with pytest.raises(DataError) as error:
        load(tmp_path, frame)
    first, *faults = str(error.value).splitlines()
    assert first == f"{tmp_path / 'people.csv'} has 3 faults:"
    for fault, start in zip(faults, ("'id'", "'name'"), strict=False):
        assert fault.strip().startswith(f"column {start}")
    assert faults[2].strip().startswith("missing values in age")
    loaded = load(tmp_path, drop=["id", "name"], missing="median")
    assert loaded.x_train.shape[1] == 5


def test_what_a_key_names_is_taken_as_it_is(tmp_path):
    frame = people(rank=range(N), cost=["?", "?", *range(N - 2)])
    load(tmp_path, frame, columns=["rank"])
    missing = load(tmp_path, drop=["rank"], missing_values=["?"], missing="median")
    assert missing.x_train.shape[1] == 6


@pytest.mark.fault
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"people\.csv is empty"),
        (b"a,bought\n", r"people\.csv has a header and no rows"),
        (b"a,bought\n1,2,3\n", r"cannot be read as a table: Expected 2 fields in line 2, saw 3"),
        (b"a,a,bought\n1,2,3\n", r"has a column twice: 'a'"),
        (b"\xff\xfea,bought\n", r"people\.csv is no text in UTF-8"),
    ],
)
def test_broken_tables_are_named(tmp_path, content, message):
    (tmp_path / "people.csv").write_bytes(content)
    for function in (load_dataset, class_names_of):
        with pytest.raises(DataError, match=message):
            function(source(), tmp_path)


@pytest.mark.fault
def test_missing_and_unknown_files_are_named(tmp_path):
    for function in (load_dataset, class_names_of, raw_inventory):
        with pytest.raises(DataError, match=r"no such file: .*people\.csv \(config key .*\.path\)"):
            function(source(), tmp_path)
    people().to_csv(tmp_path / "people.csv")
    with pytest.raises(DataError, match=r"no such file: .*t\.csv \(config key .*\.test_path\)"):
        load(tmp_path, test_path="t.csv")
    people().drop(columns="age").to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"t\.csv lacks columns of .*people\.csv: , age"):
        load(tmp_path, test_path="t.csv")
    people(bought=["maybe"] * N).to_csv(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"the test set has the label 'maybe' in column 'bought'"):
        load(tmp_path, test_path="t.csv")


@pytest.mark.fault
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"split": "a", "test_path": "b"}, r"split: the test set is given by test_path already"),
        ({"split": "a", "test_fraction": 0.5}, r"test_fraction: the test set is given by split"),
        ({"columns": ["a"], "drop": ["b"]}, r"drop: give the features by columns or drop"),
        ({"missing": "mean"}, r"missing: 'mean' is none of refuse, median, most_frequent"),
        ({"annotations": "a.npy"}, r"annotations: a table takes none"),
    ],
)
def test_wrong_keys_of_a_table_are_named(tmp_path, keys, message):
    with pytest.raises(ValueError, match=rf"datasets\.<name>\.{message}"):
        class_names_of(source(**keys), tmp_path)


def test_the_inventory_of_a_table_is_its_content(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    digest = hashlib.sha256((tmp_path / "people.csv").read_bytes()).hexdigest()
    os.utime(tmp_path / "people.csv", (0, 0))
    found = raw_inventory(source(), tmp_path)
    assert found == {"source": "table", "path_sha256": digest}
    people()[:50].to_csv(tmp_path / "test.csv", index=False)
    apart = raw_inventory(source(test_path="test.csv"), tmp_path)
    assert set(apart) == {*found, "test_path_sha256"}
