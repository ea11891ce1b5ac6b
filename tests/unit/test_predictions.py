"""Predictions made elsewhere are read as what they are, or refused in words that help."""

import contextlib
import gzip
import io
import logging
import pickle
import re
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import entropy
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration import cli, evaluate
from epistemic_calibration.predictions import (
    PredictionsError,
    as_predictions,
    read_predictions,
)
from epistemic_calibration.workflow.sources import SCRIPTS

RNG = np.random.default_rng(0)
Y_TRUE = RNG.integers(0, 2, 200)
HYPOTHESES = RNG.random((200, 7))
VOTES = RNG.integers(0, 2, 200)
MEMBERS = {f"h{j}": HYPOTHESES[:, j] for j in range(7)}
P = HYPOTHESES[:, 0]
N_LABELS = RNG.integers(0, 6, 200)
N_POSITIVE = RNG.binomial(N_LABELS, 0.4)


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, hypotheses=HYPOTHESES, y_true=Y_TRUE)
    return path


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "mine.csv"
    columns = {f"member {j}": HYPOTHESES[:, j] for j in range(7)}
    pd.DataFrame({"y_true": Y_TRUE, **columns}).to_csv(path, index=False)
    return path


@pytest.fixture
def table(tmp_path):
    """Write a table of columns and return its path."""

    def write(columns, name="mine.csv", index=False, **options):
        path = tmp_path / name
        pd.DataFrame(columns).to_csv(path, index=index, **options)
        return path

    return write


def accepted(arrays, hypotheses=HYPOTHESES):
    np.testing.assert_allclose(arrays["hypotheses"], hypotheses, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(arrays["y_true"], Y_TRUE)
    assert arrays["y_true"].dtype == np.uint8


# One intake: what one door takes or refuses, every other does in the same words.


def by_file(tmp_path, given):
    path = tmp_path / "mine.npz"
    np.savez(path, **given)
    return read_predictions(path)


def by_command(tmp_path, given):
    path = tmp_path / "mine.npz"
    np.savez(path, **given)
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(["score", str(path)])
    if code:
        raise ValueError(printed.getvalue())


def by_torchmetrics(tmp_path, given):
    from epistemic_calibration.torchmetrics import EpistemicCalibrationError

    metric = EpistemicCalibrationError()
    metric.update(torch.tensor(given["hypotheses"]), torch.tensor(given["y_true"]))
    metric.compute()


DOORS = {
    "evaluate": lambda tmp_path, given: evaluate(**given),
    "as_predictions": lambda tmp_path, given: as_predictions(**given),
    "file": by_file,
    "command": by_command,
    "torchmetrics": by_torchmetrics,
}
ULP = HYPOTHESES.astype(np.float32)
ULP[0, 0] = np.float32(1.0000001)
SURE = HYPOTHESES[:, :1] > 0.5
COUNTS = RNG.binomial(9, HYPOTHESES[:, 0])
OF_COUNTS = (RNG.random(200) < HYPOTHESES[:, 0]).astype(int)
# Arguments, and words of the refusal.
CASES = {
    "probabilities": ({}, ""),
    "one unit above 1": ({"hypotheses": ULP}, ""),
    "half precision": ({"hypotheses": HYPOTHESES.astype(np.float16)}, ""),
    "labels in a column": ({"y_true": Y_TRUE[:, None]}, ""),
    "labels in words": ({"y_true": np.where(Y_TRUE, "True", "False")}, ""),
    "names of classes": (
        {"y_true": np.where(Y_TRUE, "yes", "no"), "class_names": ["no", "yes"]},
        "",
    ),
    "names without their order": ({"y_true": np.where(Y_TRUE, "yes", "no")}, "give class_names"),
    "predict_proba": ({"hypotheses": np.hstack([1 - SURE * 0.8, SURE * 0.8])}, "by one model"),
    "softmax": ({"hypotheses": RNG.dirichlet([1, 1, 1], 200)}, "of 3 classes by one model"),
    "leak": ({"hypotheses": np.column_stack([HYPOTHESES, Y_TRUE])}, "column 7 is y_true itself"),
    "members first": ({"hypotheses": HYPOTHESES.T}, "It looks transposed"),
    "one vector": ({"hypotheses": HYPOTHESES[:, 0]}, "For a single hypothesis"),
    "stacked passes": ({"hypotheses": HYPOTHESES.T.ravel()}, "Of passes one after another"),
    "logits": ({"hypotheses": 9 * HYPOTHESES - 4}, "If these are logits"),
    "per cent": ({"hypotheses": 100 * HYPOTHESES}, "divide by 100"),
    "NaN": ({"hypotheses": np.where(HYPOTHESES > 0.9, np.nan, 0.4)}, "that are NaN or infinite"),
    "labels of -1": ({"y_true": 2 * Y_TRUE - 1}, "[-1, 1]: if these are names of classes"),
    "indicators": ({"y_true": np.eye(2)[Y_TRUE]}, "y_true.argmax(axis=1)"),
    "images": (
        {
            "y_true": Y_TRUE.reshape(2, 10, 10),
            "hypotheses": HYPOTHESES.reshape(2, 10, 10, 7).transpose(0, 3, 1, 2),
        },
        "numpy.moveaxis(hypotheses, 1, -1).reshape(-1, 7)[keep], and groups=numpy.repeat(numpy."
        "arange(2), 100)",
    ),
    "standard deviation": (
        {"epistemic_uncertainty": HYPOTHESES.std(axis=1)},
        "It looks like a standard deviation",
    ),
    "entropy": (
        {"epistemic_uncertainty": entropy([HYPOTHESES.mean(1), 1 - HYPOTHESES.mean(1)])},
        "It looks like the entropy",
    ),
    "variance": ({"epistemic_uncertainty": HYPOTHESES.var(axis=1)}, ""),
    "classes as prediction": ({"prediction": SURE[:, 0] * 1.0}, "prediction holds only 0 and 1"),
    "float32 counts": (
        {
            "y_true": OF_COUNTS,
            "n_positive": np.float32(COUNTS / 9).astype(float) * 9,
            "n_labels": np.full(200, 9),
        },
        "",
    ),
    "fractions": (
        {"y_true": OF_COUNTS, "n_positive": COUNTS / 9, "n_labels": np.full(200, 9)},
        "give numpy.rint(fraction * n_labels)",
    ),
    "fractions as labels": ({"y_true": COUNTS / 9}, "give n_positive = numpy.rint(fraction"),
    "counts in another order": (
        {"y_true": OF_COUNTS, "label_counts": np.stack([COUNTS, 9 - COUNTS], axis=1)},
        "less than in another order",
    ),
    "counts of other inputs": (
        {"y_true": OF_COUNTS, "n_positive": RNG.permutation(COUNTS), "n_labels": np.full(200, 9)},
        "no more than by chance",
    ),
    "weights": ({"sample_weight": COUNTS}, "weights are not taken"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_door_takes_the_same_and_refuses_it_in_the_same_words(tmp_path, name):
    changes, words = CASES[name]
    given = {"y_true": Y_TRUE, "hypotheses": HYPOTHESES, **changes}
    doors = set(DOORS)
    if len(given) > 2 or np.asarray(given["y_true"]).dtype.kind == "U":
        doors -= {"torchmetrics"}
    if name == "weights":
        doors -= {"as_predictions"}
    for door in sorted(doors):
        if not words:
            DOORS[door](tmp_path, given)
            continue
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            DOORS[door](tmp_path, given)
        assert "\n" not in str(caught.value).strip(), door


# Which columns of a table are hypotheses.


@pytest.mark.parametrize(
    "prefix",
    ["h", "h_", "H", "hypothesis_", "member ", "sample_", "draw", "tree", "pass", "net.", "V", ""],
)
def test_numbered_columns_are_hypotheses(table, caplog, prefix):
    caplog.set_level(logging.INFO)
    path = table({"y_true": Y_TRUE} | {f"{prefix}{j}": HYPOTHESES[:, j] for j in range(7)})
    accepted(read_predictions(path))
    assert f"columns of hypotheses: ['{prefix}0', '{prefix}1'" in caplog.text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"id": np.arange(200) * 3}, "column(s) 'id' are neither hypotheses nor known"),
        ({"id": "a"}, "column(s) 'id' are neither"),
        ({"fold": VOTES}, "column(s) 'fold' are neither"),
        ({"sample_weight": P}, "'sample_weight': weights are not taken. Draw inputs"),
        ({"epistemic_uncertanty": P / 4}, "(did you mean 'epistemic_uncertainty'?)"),
        ({"Y_True": Y_TRUE}, "'Y_True' (did you mean 'y_true'?)"),
        ({"y_true.1": Y_TRUE}, "column(s) 'y_true.1'"),
        ({"tree0": P, "tree1": P}, "several kinds, 'h6', 'tree1'"),
        ({"h": P}, "column(s) 'h' are neither"),
        ({"Unnamed: 0": P}, "column(s) 'Unnamed: 0' are neither"),
        ({"h7": Y_TRUE}, "column 'h7' is y_true itself or its complement, a leak"),
        ({"h7": 1 - Y_TRUE}, "column 'h7' is y_true itself or its complement, a leak"),
        ({"h7": VOTES}, "column 'h7' holds only 0 and 1, the others hold probabilities"),
        ({"h7": 1}, "column 'h7' holds only 0 and 1, the others hold probabilities"),
        ({"h7": 100 * P}, "column 'h7' (counted from 0)"),
        ({"h7": ["oops", *P[1:]]}, "column 'h7' holds 'oops' for sample 0, which is no number"),
        ({"h7": np.where(P > 0.9, np.nan, P)}, "column 'h7' (counted from 0): leave these"),
    ],
)
def test_further_columns_are_no_hypotheses(table, more, words):
    path = table({"y_true": Y_TRUE, **MEMBERS, **more})
    with pytest.raises(PredictionsError, match=rf"mine\.csv: .*{re.escape(words)}"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"label": Y_TRUE, **MEMBERS}, "lacks the column y_true; it has 'label', 'h0'"),
        ({"y_true": Y_TRUE}, "has no column of a hypothesis"),
        ({"y_true": Y_TRUE, "bayes_0": P, "bayes_1": P}, "select the hypotheses with hypotheses="),
        ({"y_true": Y_TRUE, "p0": 1 - P, "p1": P}, "(columns 'p0' to 'p1')"),
    ],
)
def test_tables_without_hypotheses_or_labels(table, columns, words):
    with pytest.raises(PredictionsError, match=rf"mine\.csv: .*{re.escape(words)}"):
        read_predictions(table(columns))


def test_a_single_hypothesis_needs_no_number(table):
    accepted(read_predictions(table({"y_true": Y_TRUE, "h": P})), P[:, None])


@pytest.mark.parametrize("selection", ["bayes_", "bayes", ["bayes_0", "bayes_1"]])
def test_hypotheses_are_selected_by_name(table, selection):
    columns = {"y_true": Y_TRUE, "bayes_0": P, "fold": VOTES, "bayes_1": P / 2, "bayesian": P}
    arrays = read_predictions(table(columns), hypotheses=selection)
    accepted(arrays, np.stack([P, P / 2], axis=1))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ("net", "hypotheses='net' must name columns"),
        (["h0", "h22"], "each once"),
        (["h0", "y_true"], "there are 'h0'"),
        (["h0", "h0"], "each once"),
        ([], "must name columns"),
    ],
)
def test_faults_of_a_selection(table, selection, words):
    path = table({"y_true": Y_TRUE, **MEMBERS, "predicton": P})
    with pytest.raises(PredictionsError, match=re.escape(words)):
        read_predictions(path, hypotheses=selection)


def test_a_message_names_at_most_ten_columns(table):
    path = table({"y_true": Y_TRUE, **{f"feature {j} {'x' * 60}": P for j in range(400)}})
    with pytest.raises(PredictionsError, match="and 390 more are neither") as caught:
        read_predictions(path)
    assert len(str(caught.value)) < 1200


# Forms of tables.


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mine.csv.gz", {}),
        ("mine.csv.bz2", {}),
        ("mine.csv.xz", {}),
        ("mine.tsv", {"sep": "\t"}),
        ("mine.txt", {"sep": " "}),
        ("mine.csv", {"sep": ";"}),
        ("mine.csv", {"sep": ";", "decimal": ","}),
        ("mine.csv", {"sep": "\t", "decimal": ","}),
        ("mine.csv", {"encoding": "utf-8-sig"}),
        ("mine.csv", {"index": True}),
        ("mine.tsv", {"index": True, "sep": "\t"}),
        ("mine.csv", {"index_label": "Unnamed: 0", "index": True}),
    ],
)
def test_forms_of_tables(table, name, options):
    accepted(read_predictions(table({"y_true": Y_TRUE, **MEMBERS}, name, **options)))


def test_a_column_of_row_names_is_dropped(table, tmp_path):
    columns = {"y_true": Y_TRUE} | {str(j): HYPOTHESES[:, j] for j in range(7)}
    accepted(read_predictions(table(columns, index=True)))
    # R writes them without a name in the header.
    path = tmp_path / "mine.csv"
    lines = [
        f'"{n + 1}",{y},{p!r}' for n, (y, p) in enumerate(zip(Y_TRUE, P.tolist(), strict=True))
    ]
    path.write_text("\n".join(['"y_true","V1"', *lines]))
    accepted(read_predictions(path), P[:, None])


@pytest.mark.fault
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("\n\n", "cannot be read: No columns"),
        ("y_true,h0\n", "has a header and no samples"),
        ("y_true,h0,h0\n1,.2,.3\n", "'h0.1' are neither"),
        ("y_true,h0,y_true\n1,.2,1\n", "'y_true.1'"),
        ("y_true,h0,h1\n0,.3,.5\n1,.2,.1,.4\n", "Expected 3 fields in line 3, saw 4"),
        ("y_true,h0,h1\n0,0,3,0,5\n", "more columns than the header"),
        ("y_true,h0\n0,0,3\n0,0,5\n", "more columns than the header"),
        ("y_true,h0\n0,.3\n,.2\n", "y_true has 1 missing values"),
        ("y_true,h0\nTrue,.3\n,.2\n", "y_true has 1 missing values"),
        ("y_true,h0\ncat,.3\ndog,.2\n", r"class_names=\['cat', 'dog'\]"),
        (b"y_true,h\xe9\n0,.3\n", "no text in UTF-8"),
        (gzip.compress(b"y_true,h0\n0,.3\n", mtime=0), "no text in UTF-8"),
    ],
)
def test_faults_of_tables(tmp_path, text, words):
    path = tmp_path / "mine.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PredictionsError, match=rf"mine\.csv: .*{words}"):
        read_predictions(path)


def test_labels_in_words_in_a_table(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("y_true,h0\nFalse,0.3\nTrue,0.7\n")
    np.testing.assert_array_equal(read_predictions(path)["y_true"], [0, 1])


def test_parquet(tmp_path):
    path = tmp_path / "mine.parquet"
    try:
        pd.DataFrame({"y_true": Y_TRUE, **MEMBERS}).to_parquet(path)
    except ImportError:
        path.write_bytes(b"PAR1")
        with pytest.raises(PredictionsError, match=r"mine\.parquet: .*pyarrow or fastparquet"):
            read_predictions(path)
    else:
        accepted(read_predictions(path))


# Forms of arrays.


def test_npz_and_csv_hold_the_same(npz, csv):
    from_npz, from_csv = read_predictions(npz), read_predictions(csv)
    assert set(from_npz) == set(from_csv) == {"hypotheses", "y_true"}
    np.testing.assert_array_equal(from_npz["y_true"], Y_TRUE)
    np.testing.assert_allclose(from_csv["hypotheses"], HYPOTHESES, rtol=1e-15)
    np.testing.assert_array_equal(from_npz["hypotheses"], HYPOTHESES)


def test_reported_values_are_kept(tmp_path):
    path = tmp_path / "mine.npz"
    eu, prediction = RNG.random(200) / 4, HYPOTHESES.mean(axis=1) + 0.05
    given = {"epistemic_uncertainty": eu, "prediction": prediction}
    np.savez(path, hypotheses=HYPOTHESES, y_true=Y_TRUE, **given)
    arrays = read_predictions(path)
    np.testing.assert_allclose(arrays["epistemic_uncertainty"], eu, rtol=1e-6)
    np.testing.assert_allclose(arrays["prediction"], prediction, rtol=1e-6)


@pytest.mark.parametrize(
    "y_true",
    [
        Y_TRUE.tolist(),
        Y_TRUE == 1,
        Y_TRUE.astype(float),
        Y_TRUE[:, None],
        Y_TRUE.astype(str),
        Y_TRUE.astype(str).astype(object),
        Y_TRUE.astype("S1"),
        np.where(Y_TRUE, "True", "False"),
        (Y_TRUE == 1).astype(object),
        pd.Series(Y_TRUE == 1, dtype="boolean"),
        pd.Series(Y_TRUE, dtype="Int64"),
        pd.Series(Y_TRUE).astype("category"),
        np.ma.masked_array(Y_TRUE, mask=False),
        torch.tensor(Y_TRUE == 1),
    ],
)
def test_forms_of_labels(y_true):
    accepted(as_predictions(y_true, HYPOTHESES))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("y_true", "words"),
    [
        (2 * Y_TRUE - 1, "[-1, 1]: if these are names of classes, give class_names"),
        (Y_TRUE + 1, "[1, 2]: if these are names of classes, give class_names"),
        (np.where(Y_TRUE, "dog", "cat"), "such as class_names=['cat', 'dog']"),
        (np.where(P > 0.9, 255, Y_TRUE), "if 255 marks what to ignore, leave it out"),
        (np.zeros((200, 2, 2)), "Of pixels give y_true.ravel()"),
        (np.arange(200) % 10, "10 different value(s), among them [0, 1, 2, 3, 4]: score one class"),
        (P, "of a fraction of raters give n_positive"),
        (np.where(Y_TRUE, np.nan, 0), "missing values (NaN), the first for sample"),
        (np.where(Y_TRUE, np.inf, 0), "[0.0, inf]"),
        (np.stack([1 - Y_TRUE, Y_TRUE], axis=1), "give y_true.argmax(axis=1)"),
        ([], "y_true has no samples"),
        ([None] * 200, "y_true has missing values"),
        (None, "y_true is None"),
        (pd.Series([None, *Y_TRUE[1:].tolist()], dtype="Int64"), "1 masked or missing values"),
        (np.ma.masked_array(Y_TRUE, Y_TRUE == 0), "masked or missing values: leave out"),
        (np.zeros(200, "M8[s]"), "y_true has dtype datetime64[s]"),
        (np.zeros(199), "hypotheses has shape (200, 7), expected (199, n_hypotheses)"),
    ],
)
def test_faults_of_labels(y_true, words):
    with pytest.raises(PredictionsError, match=re.escape(words)):
        as_predictions(y_true, HYPOTHESES)


TENSOR = torch.tensor(HYPOTHESES, requires_grad=True)


@pytest.mark.parametrize(
    ("hypotheses", "tolerance"),
    [
        (HYPOTHESES.tolist(), 1e-7),
        (HYPOTHESES.astype(object), 1e-7),
        (np.ma.masked_array(HYPOTHESES, mask=False), 1e-7),
        (pd.DataFrame(MEMBERS), 1e-7),
        (pd.DataFrame(HYPOTHESES).astype("Float64"), 1e-7),
        (TENSOR, 1e-7),
        (list(TENSOR), 1e-7),
        (TENSOR.half(), 2**-11),
        (TENSOR.bfloat16(), 2**-8),
    ],
)
def test_forms_of_hypotheses(hypotheses, tolerance):
    arrays = as_predictions(Y_TRUE, hypotheses)
    np.testing.assert_allclose(arrays["hypotheses"], HYPOTHESES, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("beyond", "clipped"), [(1e-7, True), (9e-7, True), (2e-6, False)])
def test_rounding_beyond_the_range_is_clipped(beyond, clipped):
    hypotheses = HYPOTHESES.copy()
    hypotheses[3, 2], hypotheses[4, 1] = 1 + beyond, -beyond
    if clipped:
        arrays = as_predictions(Y_TRUE, hypotheses)
        assert arrays["hypotheses"][3, 2] == 1
        assert arrays["hypotheses"][4, 1] == 0
    else:
        words = r"for sample 3, hypothesis 2 .*\. If this is rounding, give numpy\.clip"
        with pytest.raises(PredictionsError, match=words):
            as_predictions(Y_TRUE, hypotheses)


def probabilities(n_classes, n_members=None):
    shape = 200 if n_members is None else (200, n_members)
    return RNG.dirichlet(np.ones(n_classes), shape)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("hypotheses", "words"),
    [
        (None, "hypotheses is None"),
        (np.stack([1 - P, P], axis=1), "seem to be the probabilities of 2 classes by one model"),
        (np.stack([1 - P, P], axis=1).round(2), "of 2 classes by one model"),
        (probabilities(10), "of 10 classes by one model"),
        (probabilities(10).round(2), "of 10 classes by one model"),
        (np.tile([0.9, 0.1], (200, 1)), "of 2 classes by one model"),
        (RNG.random((200, 7, 3)), "whose probabilities must add up to 1; along axis 2 sums lie"),
        (RNG.normal(size=(200, 7, 3)), "If these are logits, give scipy.special.softmax"),
        (probabilities(3, 7)[:199], "its axis 0 is the samples: it has 199, y_true has 200"),
        (probabilities(3, 200), "may be 'nhc' or 'hnc'. Say which axis is which with axes="),
        (np.full((200, 3, 3), 1 / 3), "may be 'nhc' or 'nch'"),
        (probabilities(200, 7)[:7], "as 'hcn' its axis 1 is the classes"),
        (np.where(RNG.random((200, 7, 3)) < 0.1, np.nan, 0.3), "values that are NaN or infinite"),
        (HYPOTHESES.T, "It looks transposed: give numpy.transpose(hypotheses)"),
        (list(TENSOR.T), "It looks transposed"),
        (P, "shape (200,), expected (200, n_hypotheses). For a single hypothesis"),
        (HYPOTHESES[:, :0], "shape (200, 0), expected"),
        (Y_TRUE[:, None], "column 0 is y_true itself"),
        (np.ma.masked_array(HYPOTHESES, HYPOTHESES > 0.98), "masked or missing values"),
        (list(np.ma.masked_array(HYPOTHESES, HYPOTHESES > 0.98)), "masked or missing values"),
        (pd.DataFrame(HYPOTHESES).astype("Float64").mask(HYPOTHESES > 0.9), "missing values"),
        (pd.DataFrame({"h0": P, "mean": P}), "'mean' are neither hypotheses nor known"),
        (HYPOTHESES.astype(str), "hypotheses holds text, such as '0."),
        (HYPOTHESES + 0j, "dtype complex128"),
        ([[0.1, 0.2], [0.3]], "give a NumPy array with rows of equal length"),
        ({"a": 1}, "Python objects of the type(s) 'dict'"),
        (np.zeros(200, [("a", float)]), "hypotheses has dtype [('a', '<f8')]"),
        (torch.empty((200, 2), device="meta"), "a torch.Tensor that NumPy cannot read"),
        (100 * HYPOTHESES, "If these are percentages, divide by 100"),
        (np.log(HYPOTHESES), "If these are logarithms"),
        (np.where(HYPOTHESES > 0.9, -np.inf, np.log(HYPOTHESES)), "If these are logarithms"),
        (3.5 * HYPOTHESES, "If these are likelihoods of answers, divide by their sum"),
        (np.log(HYPOTHESES / (1 - HYPOTHESES)), "If these are logits"),
        (np.where(HYPOTHESES > 0.9, np.nan, 0.1), "values that are NaN or infinite, of 1400"),
    ],
)
def test_faults_of_hypotheses(hypotheses, words):
    with pytest.raises(PredictionsError, match=re.escape(words)):
        as_predictions(Y_TRUE, hypotheses)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "hypotheses",
    [
        np.stack([P, 1 - P, P], axis=1),
        0.5 + 0.001 * HYPOTHESES[:, :2],  # a network that has learnt nothing
    ],
)
def test_hypotheses_that_only_look_odd_are_taken(hypotheses):
    accepted(as_predictions(Y_TRUE, hypotheses), hypotheses)


@pytest.mark.parametrize(
    ("hypotheses", "words"),
    [
        (np.full((200, 10), 0.1), "All hypotheses of each input are equal"),  # rows sum to 1
        (np.full((200, 2), 0.5), "All hypotheses of each input are equal"),
        (np.where(HYPOTHESES > 0.2, 1, 0), "All hypotheses are votes of 0 or 1"),
        (np.stack([Y_TRUE, Y_TRUE, VOTES], axis=1), "column 0 is y_true itself"),
        (VOTES[:, None], "All hypotheses are votes of 0 or 1"),
        # Each input is predicted by the share of the others.
        ((Y_TRUE.sum() - Y_TRUE[:, None]) / 199 * np.ones(3), "If the predictions are cross-val"),
    ],
)
def test_hypotheses_that_say_little_are_taken_and_told(hypotheses, words):
    with pytest.warns(UserWarning) as told:
        accepted(as_predictions(Y_TRUE, hypotheses), hypotheses)
    assert any(words in str(each.message) for each in told)


# Several classes.

CLASSES = RNG.integers(0, 3, 200)
OF_CLASSES = probabilities(3, 7)
NAMES = ["cat", "dog", "eel"]
TURNED = {
    "nhc": OF_CLASSES,
    "hnc": OF_CLASSES.transpose(1, 0, 2),
    "nch": OF_CLASSES.transpose(0, 2, 1),
    "chn": OF_CLASSES.transpose(2, 1, 0),
    "hcn": OF_CLASSES.transpose(1, 2, 0),
    "cnh": OF_CLASSES.transpose(2, 0, 1),
}


def accepted_classes(arrays, names=("0", "1", "2")):
    np.testing.assert_allclose(arrays["hypotheses"], OF_CLASSES, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(arrays["y_true"], CLASSES)
    assert arrays["class_names"].tolist() == list(names)


@pytest.mark.parametrize("order", TURNED)
@pytest.mark.parametrize("declared", [True, False])
def test_axes_are_told_apart_or_declared(tmp_path, order, declared):
    given = {"y_true": CLASSES, "hypotheses": TURNED[order]}
    accepted_classes(as_predictions(**given, axes=order.upper() if declared else None))
    accepted_classes(as_predictions(CLASSES, list(torch.tensor(TURNED[order]))))
    path = tmp_path / "mine.npz"
    np.savez(path, **given, **({"axes": order} if declared else {}))
    accepted_classes(read_predictions(path))
    np.savez(path, **given, axes="nch" if order != "nch" else "nhc")
    accepted_classes(read_predictions(path, axes=order))


def test_axes_that_could_be_either_are_declared():
    square = probabilities(3, 200)
    for order, expected in (("nhc", square), ("hnc", square.transpose(1, 0, 2))):
        arrays = as_predictions(CLASSES, square, axes=order)
        np.testing.assert_allclose(arrays["hypotheses"], expected, atol=1e-7)
    # Of two axes of the same length only one adds up to 1 for each of five names.
    named = as_predictions(CLASSES, np.full((200, 3, 5), 0.2), class_names=list("abcde"))
    assert named["hypotheses"].shape == (200, 3, 5)


@pytest.mark.parametrize(
    ("y_true", "class_names"),
    [
        (CLASSES, None),
        (CLASSES.astype(float)[:, None], None),
        (CLASSES, NAMES),
        (np.array(NAMES)[CLASSES], NAMES),
        (pd.Series(np.array(NAMES)[CLASSES], dtype="category"), np.array(NAMES)),
        (CLASSES + 1, [1, 2, 3]),
        (np.array([7, -1, 3])[CLASSES], [7, -1, 3]),
        (CLASSES.astype(str), ["0", "1", "2"]),
    ],
)
def test_forms_of_class_labels(y_true, class_names):
    arrays = as_predictions(y_true, OF_CLASSES, class_names=class_names)
    accepted_classes(arrays, ["0", "1", "2"] if class_names is None else map(str, class_names))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_true": CLASSES + 1}, "y_true must hold the classes 0 to 2, but has 3 different"),
        ({"y_true": CLASSES + 1}, "if classes are counted from 1, subtract 1"),
        ({"y_true": CLASSES - 1}, "if -1 marks what to ignore"),
        ({"y_true": CLASSES + 0.5}, "labels are no probabilities"),
        ({"y_true": 10 * CLASSES}, "if these are names of classes, give class_names"),
        ({"y_true": np.where(CLASSES, CLASSES, np.nan)}, "missing values (NaN), the first for"),
        ({"y_true": np.eye(3)[CLASSES]}, "give y_true.argmax(axis=1)"),
        ({"y_true": np.array(NAMES)[CLASSES]}, "give class_names, all names in the order of"),
        (
            {"y_true": np.array(["cat", "cow", "eel"])[CLASSES], "class_names": NAMES},
            "y_true has 'cow', which class_names lacks: 'cat', 'dog', 'eel'",
        ),
        ({"class_names": ["a", "b"]}, "it has 3 classes; class_names has 2"),
        ({"class_names": ["a", "a", "b"]}, "a vector of different names, got 'a', 'a', 'b'"),
        ({"axes": "nhx"}, "axes must be the letters n (samples), h (hypotheses) and c"),
        ({"axes": "hnc"}, "axes='hnc' says that its axis 1 is the samples: it has 7, y_true has"),
        ({"axes": "nch"}, "axes='nch' says that its axis 1 is the classes"),
        ({"hypotheses": 1.005 * OF_CLASSES / 1.0}, "add up to 1; got sums in [1.005"),
        (
            {
                "hypotheses": np.where(
                    np.arange(7)[:, None] == 2, np.eye(3)[CLASSES][:, None], OF_CLASSES
                )
            },
            "hypotheses: column 2 is y_true itself",
        ),
        ({"prediction": P}, "prediction is not taken with several classes"),
        ({"n_positive": CLASSES, "n_labels": CLASSES}, "give label_counts (n_samples, n_classes)"),
        ({"label_counts": np.ones((200, 2))}, "label_counts has shape (200, 2); it must be (200,"),
        ({"label_counts": np.full((200, 3), 0.5)}, "must be integers >= 0, got 0.5 for sample 0"),
        ({"hypotheses": HYPOTHESES, "y_true": Y_TRUE, "axes": "nhc"}, "axes is for hypotheses of"),
        ({"hypotheses": HYPOTHESES, "y_true": Y_TRUE, "class_names": NAMES}, "must be two"),
        ({"groups": np.arange(199)}, "groups has shape (199,), expected (200,)"),
        ({"groups": np.zeros(200)}, "groups are all 0.0"),
        ({"groups": np.where(CLASSES, 1, np.nan)}, "groups has "),
    ],
)
def test_faults_of_several_classes(changes, words):
    with pytest.raises(PredictionsError, match=re.escape(words)):
        as_predictions(**{"y_true": CLASSES, "hypotheses": OF_CLASSES, **changes})


def test_a_file_of_several_classes(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "mine.npz"
    counts = RNG.integers(0, 4, (200, 3))
    np.savez(
        path,
        y_true=np.array(NAMES)[CLASSES],
        hypotheses=OF_CLASSES,
        class_names=NAMES,
        label_counts=counts,
        groups=np.repeat(["b", "a"], 100),
        exchangeable=False,
    )
    arrays = read_predictions(path)
    accepted_classes(arrays, NAMES)
    np.testing.assert_array_equal(arrays["label_counts"], counts)
    np.testing.assert_array_equal(arrays["groups"], np.repeat([0, 1], 100))
    assert not arrays["exchangeable"]
    assert "200 samples, 7 hypotheses, 3 classes" in caplog.text
    np.savez(path, y_true=np.array(NAMES)[CLASSES].astype(object), hypotheses=OF_CLASSES)
    with pytest.raises(PredictionsError, match=r"y_true holds Python objects, .*astype\(str\)"):
        read_predictions(path)


def test_two_classes_are_a_binary_task():
    two = np.stack([1 - HYPOTHESES, HYPOTHESES], axis=2)
    counts = np.stack([N_LABELS - N_POSITIVE, N_POSITIVE], axis=1)
    labels = np.array(["cat", "dog"])[Y_TRUE]
    arrays = as_predictions(
        labels, two.transpose(1, 0, 2), class_names=["cat", "dog"], label_counts=counts
    )
    accepted(arrays)
    assert arrays["class_names"].tolist() == ["cat", "dog"]
    np.testing.assert_array_equal(arrays["n_positive"], N_POSITIVE)


def test_repeated_samples_of_several_classes_are_counted_unless_groups_are_given():
    rows = np.array([*range(200), *range(20)])
    with pytest.warns(UserWarning, match=r"20 of 220 samples .*\(--groups in the command\)"):
        as_predictions(CLASSES[rows], OF_CLASSES[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_predictions(CLASSES[rows], OF_CLASSES[rows], groups=rows)
        as_predictions(Y_TRUE[rows], HYPOTHESES[rows], groups=rows)


@pytest.mark.fault
def test_a_table_of_several_classes_is_refused_with_where_they_go(table):
    columns = {f"h{j}_{name}": OF_CLASSES[:, j, 0] for j in range(2) for name in NAMES}
    with pytest.raises(PredictionsError, match=r"of several classes they go in an \.npz"):
        read_predictions(table({"y_true": CLASSES, **columns}))
    with pytest.raises(PredictionsError, match=r"or all with hypotheses of shape"):
        read_predictions(table({"y_true": CLASSES, **MEMBERS}))


@pytest.mark.parametrize(("name", "groups"), [("groups", None), ("patient", "patient")])
def test_groups_of_a_table_and_of_an_archive(tmp_path, table, name, groups):
    of = np.array(["x", "y", "z"])[CLASSES]
    np.savez(tmp_path / "mine.npz", y_true=Y_TRUE, hypotheses=HYPOTHESES, **{name: of})
    for path in (table({"y_true": Y_TRUE, name: of, **MEMBERS}), tmp_path / "mine.npz"):
        arrays = read_predictions(path, groups=groups)
        accepted(arrays)
        # Numbered as they first appear, whatever they are called.
        np.testing.assert_array_equal(arrays["groups"], pd.factorize(CLASSES)[0])
        for wrong in ("site", "y_true"):
            with pytest.raises(PredictionsError, match=rf"(has no column|lacks) '?{wrong}"):
                read_predictions(path, groups=wrong)
    of[3] = ""
    path = table({"y_true": Y_TRUE, name: of, **MEMBERS})
    with pytest.raises(PredictionsError, match="groups has missing values"):
        read_predictions(path, groups=groups)


# What a model reports.

MEAN = HYPOTHESES.mean(axis=1)
TOTAL = entropy([MEAN, 1 - MEAN])
MUTUAL = TOTAL - entropy([HYPOTHESES, 1 - HYPOTHESES]).mean(axis=1)


@pytest.mark.parametrize(
    ("uncertainty", "words"),
    [
        (np.full(200, 0.26), r"reaches 0.26 \(sample 0\): it must be a variance .* \[0, 1/4\]; an"),
        (TOTAL, "reaches 0.69.* looks like the entropy of the mean"),
        (TOTAL / np.log(2), "looks like the entropy of the mean"),
        (MUTUAL, "looks like a mutual information"),
        (HYPOTHESES.std(axis=1), "looks like a standard deviation, whose square is the variance"),
        (HYPOTHESES.std(axis=1, ddof=1), "looks like a standard deviation"),
        (HYPOTHESES.std(axis=1).round(3), "looks like a standard deviation"),
        ((HYPOTHESES / 10).std(axis=1) - 0.1, "epistemic_uncertainty lies in .*>= 0"),
        (np.full(199, 0.1), r"epistemic_uncertainty has shape \(199,\), expected \(200,\)"),
        (np.full(200, np.nan), "200 values that are NaN"),
        (["a"] * 200, "epistemic_uncertainty holds text"),
    ],
)
def test_an_uncertainty_must_be_a_variance(uncertainty, words):
    with pytest.raises(PredictionsError, match=words):
        as_predictions(Y_TRUE, HYPOTHESES, epistemic_uncertainty=uncertainty)


@pytest.mark.parametrize("scale", [0.2, 0.02])
def test_a_small_standard_deviation_is_known_as_such(scale):
    hypotheses = 0.5 + scale * (HYPOTHESES - 0.5)
    with pytest.raises(PredictionsError, match="looks like a standard deviation"):
        as_predictions(Y_TRUE, hypotheses, epistemic_uncertainty=hypotheses.std(axis=1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "uncertainty",
    [
        HYPOTHESES.var(axis=1),
        HYPOTHESES.var(axis=1, ddof=1)[:, None],
        np.full(200, 1 / 6),
        np.full(200, 0.25 + 1e-7),
        np.full(200, -1e-9),
    ],
)
def test_variances_are_kept(uncertainty):
    arrays = as_predictions(Y_TRUE, HYPOTHESES, epistemic_uncertainty=uncertainty)
    expected = np.clip(uncertainty, 0, 0.25).ravel()
    np.testing.assert_allclose(arrays["epistemic_uncertainty"], expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.2, 0.05, 0.02, 0.001])
def test_small_variances_are_kept(scale):
    hypotheses = 0.5 + scale * (HYPOTHESES - 0.5)
    variance = hypotheses.var(axis=1)
    arrays = as_predictions(Y_TRUE, hypotheses, epistemic_uncertainty=variance)
    np.testing.assert_allclose(arrays["epistemic_uncertainty"], variance, rtol=1e-6)


@pytest.mark.fault
def test_a_prediction_far_from_the_hypotheses_is_told(npz):
    with pytest.warns(UserWarning, match=r"the mean of the hypotheses by 0\.\d\d on average: "):
        as_predictions(Y_TRUE, HYPOTHESES, prediction=RNG.random(200))
    y_true, hypotheses = np.tile([0, 1], 100), np.tile([[0.1], [0.8]], (100, 3))
    with pytest.warns(UserWarning, match=r"by 0\.70 on average, and is near 1 minus that mean"):
        as_predictions(y_true, hypotheses, prediction=1 - hypotheses[:, 0])
    np.savez(npz, hypotheses=HYPOTHESES, y_true=Y_TRUE, prediction=1 - MEAN**3)
    with pytest.warns(UserWarning, match=r"mine\.npz: prediction differs"):
        read_predictions(npz)


@pytest.mark.parametrize(
    ("prediction", "words"),
    [(MEAN > 0.5, "prediction holds only 0 and 1"), (Y_TRUE, "prediction is y_true itself")],
)
def test_a_prediction_is_no_class(prediction, words):
    with pytest.raises(PredictionsError, match=words):
        as_predictions(Y_TRUE, HYPOTHESES, prediction=prediction)


# Samples that are in more than once.


@pytest.mark.parametrize("decimals", [12, 3])
@pytest.mark.parametrize(
    ("rows", "n_repeated"),
    [([*range(200), *range(20)], 20), (np.tile(np.arange(200), 5), 800)],
)
def test_repeated_samples_are_counted(rows, n_repeated, decimals):
    with pytest.warns(UserWarning, match=rf"{n_repeated} of {len(rows)} samples .*groups="):
        as_predictions(Y_TRUE[rows], HYPOTHESES[rows].round(decimals))


def forest(min_samples_leaf):
    X = RNG.normal(size=(600, 3)).round(1)
    y = RNG.random(600) < 1 / (1 + np.exp(-X[:, 0]))
    model = RandomForestClassifier(20, min_samples_leaf=min_samples_leaf, random_state=0)
    model.fit(X[:300], y[:300])
    return np.stack([tree.predict_proba(X[300:])[:, 1] for tree in model.estimators_], axis=1)


def saturated():
    logits = 8 * RNG.normal(size=(5000, 1)) + 0.2 * RNG.normal(size=(5000, 5))
    return 1 / (1 + np.exp(-logits))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "hypotheses",
    [
        0.3 * np.linspace(0.9, 1, 7) * np.ones((300, 1)),
        np.where(RNG.random((300, 1)) < 0.5, 0.2, 0.8) * np.linspace(0.9, 1, 7),
        RNG.integers(1, 12, (300, 1)) / 12 * np.linspace(0.9, 1, 7),
        forest(2),
        forest(20),
        saturated().round(4),
        saturated().astype(np.float16),
        RNG.random((3000, 1)).round(4),
        (RNG.uniform(0.1, 0.9, (1000, 1)) + 0.01 * RNG.normal(size=(1000, 2))).round(3),
        RNG.random((300, 1)).astype(np.float16),
    ],
)
def test_methods_of_few_values_repeat_no_samples(hypotheses):
    as_predictions(RNG.random(len(hypotheses)) < 0.5, hypotheses)


def test_the_same_hypotheses_with_another_label_are_another_sample():
    rows = [*range(200), *range(20)]
    y_true = Y_TRUE[rows]
    y_true[200:] = 1 - y_true[200:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_predictions(y_true, HYPOTHESES[rows])


def test_a_network_that_says_the_same_of_many_inputs_repeats_no_samples():
    hypotheses, y_true = HYPOTHESES.copy(), Y_TRUE.copy()
    hypotheses[:30], y_true[:30] = [*[0.4] * 6, 0.5], np.arange(30) % 3 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_predictions(y_true, hypotheses)


# Several labels per input, and what goes with the hypotheses.


def test_several_labels_per_input_in_each_form(tmp_path):
    given = {"hypotheses": HYPOTHESES, "y_true": Y_TRUE}
    named = {"n_positive": N_POSITIVE, "n_labels": N_LABELS}
    both = {"label_counts": np.stack([N_LABELS - N_POSITIVE, N_POSITIVE], axis=1)}
    np.savez(tmp_path / "named.npz", **given, **named)
    np.savez(tmp_path / "both.npz", **given, **both)
    pd.DataFrame({"y_true": Y_TRUE, **named, **MEMBERS}).to_csv(tmp_path / "a.csv", index=False)
    files = [read_predictions(tmp_path / name) for name in ("named.npz", "both.npz", "a.csv")]
    for arrays in [*files, as_predictions(**given, **named)]:
        assert set(arrays) == {"hypotheses", "y_true", "n_positive", "n_labels"}
        np.testing.assert_array_equal(arrays["n_positive"], N_POSITIVE)
        np.testing.assert_array_equal(arrays["n_labels"], N_LABELS)
        assert arrays["hypotheses"].shape == (200, 7)
    arrays = as_predictions(**given, n_positive=N_POSITIVE, n_labels=5)
    np.testing.assert_array_equal(arrays["n_labels"], np.full(200, 5))


def test_a_file_says_that_its_hypotheses_are_no_draws(tmp_path):
    path = tmp_path / "mine.npz"
    given = {"hypotheses": HYPOTHESES, "y_true": Y_TRUE}
    np.savez(path, **given, exchangeable=False)
    assert not read_predictions(path)["exchangeable"]
    assert not as_predictions(**given, exchangeable=False)["exchangeable"]
    np.savez(path, **given, exchangeable=True)
    assert "exchangeable" not in read_predictions(path)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"n_positive": N_POSITIVE}, "n_labels is missing"),
        ({"n_positive": N_LABELS + 1, "n_labels": N_LABELS}, "n_positive must be at most"),
        ({"n_positive": N_POSITIVE / 2 + 0.1, "n_labels": N_LABELS}, "must be integers"),
        ({"n_positive": P, "n_labels": N_LABELS}, r"give numpy\.rint\(fraction \* n_labels\)"),
        ({"label_counts": np.where(HYPOTHESES > 0.9, np.nan, VOTES[:, None])}, r"numpy\.stack"),
        ({"label_counts": np.ones((900, 3))}, r"pandas\.crosstab"),
        ({"weight": P}, "weights are not taken"),
        ({"ids": P}, r"array\(s\) 'ids' are not known"),
        (
            {"n_positive": N_POSITIVE[1:], "n_labels": N_LABELS[1:]},
            r"n_positive has shape \(199,\)",
        ),
        ({"label_counts": N_POSITIVE}, r"label_counts has shape \(200,\); it must be \(200, 2\)"),
        ({"exchangeable": 1}, "exchangeable must be True or False"),
        ({"epistemic_uncertanty": P}, r"did you mean 'epistemic_uncertainty'\?\) are not known"),
        ({"label_count": N_POSITIVE}, r"did you mean 'label_counts'\?\) are not known"),
        ({"y_true": Y_TRUE.astype(object)}, "y_true holds Python objects, which are not read"),
    ],
)
def test_faults_of_what_goes_with_the_hypotheses(tmp_path, arrays, words):
    path = tmp_path / "mine.npz"
    np.savez(path, **{"hypotheses": HYPOTHESES, "y_true": Y_TRUE, **arrays})
    with pytest.raises(PredictionsError, match=rf"mine\.npz.*{words}") as caught:
        read_predictions(path)
    assert "pickle" not in str(caught.value)


# Archives.


@pytest.mark.fault
@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"hypotheses": HYPOTHESES}, "lacks y_true"),
        ({"y_true": Y_TRUE, "probs": HYPOTHESES}, "lacks hypotheses; it holds 'y_true', 'probs'"),
        ({f"a{j}": P for j in range(400)}, "'a9' and 390 more"),
        ({}, "lacks y_true and hypotheses; it holds no arrays"),
        ({"hypotheses": HYPOTHESES, "y_true": Y_TRUE * 2 - 1}, r"y_true must hold .*\[-1, 1\]"),
        ({"hypotheses": HYPOTHESES[:10], "y_true": Y_TRUE}, r"shape \(10, 7\), expected \(200, "),
        ({"hypotheses": HYPOTHESES[:, 0], "y_true": Y_TRUE}, r"shape \(200,\), expected"),
        ({"hypotheses": HYPOTHESES * 2, "y_true": Y_TRUE}, r"expected values in \[0, 1\]"),
        ({"hypotheses": np.where(HYPOTHESES > 0.5, np.nan, 0.1), "y_true": Y_TRUE}, "NaN"),
    ],
)
def test_faults_name_the_file(tmp_path, arrays, words):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    with pytest.raises(PredictionsError, match=f"mine.npz: .*{words}"):
        read_predictions(path)


def test_an_array_of_another_name_is_selected(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, y_true=Y_TRUE, probs=HYPOTHESES, ids=P)
    accepted(read_predictions(path, hypotheses="probs"))
    with pytest.raises(PredictionsError, match="the name of one array"):
        read_predictions(path, hypotheses=["probs"])


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda file: np.save(file, HYPOTHESES), r"must be a file of numpy\.savez"),
        (lambda file: pickle.dump(HYPOTHESES, file), r"must be a file of numpy\.savez"),
        (lambda file: torch.save({"h": TENSOR}, file), "lacks y_true and hypotheses"),
        (lambda file: file.write(b"PK no"), r"must be a file of numpy\.savez"),
        (lambda file: None, "the file is empty"),
    ],
)
def test_other_formats_by_the_name_of_npz(tmp_path, write, words):
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        write(file)
    with pytest.raises(PredictionsError, match=rf"mine\.npz: .*{words}"):
        read_predictions(path)


@pytest.mark.fault
def test_what_an_archive_promises_is_read_before_it_is_unpacked(tmp_path, npz):
    path = tmp_path / "huge.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (5 * 10**12,)}
    )
    np.savez_compressed(path, y_true=Y_TRUE)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("hypotheses.npy", header.getvalue())
    with pytest.raises(
        PredictionsError, match=r"promises 40,000,000,000,000 bytes|unpacks to 40,000,000,00"
    ):
        read_predictions(path)
    np.savez_compressed(path, y_true=Y_TRUE, hypotheses=np.zeros((200, 10_000)))
    assert path.stat().st_size < 50_000
    with pytest.raises(
        PredictionsError, match=r"16,0\d\d,\d\d\d bytes .* max_bytes= of read_predictio"
    ):
        read_predictions(path, max_bytes=10**7)
    with warnings.catch_warnings(), zipfile.ZipFile(npz, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("hypotheses.npy", header.getvalue())
    with pytest.raises(PredictionsError, match="has two arrays called 'hypotheses'"):
        read_predictions(npz)


@pytest.mark.fault
def test_other_endings_are_refused_with_what_to_do(tmp_path):
    np.save(tmp_path / "mine.npy", HYPOTHESES)
    with pytest.raises(PredictionsError, match=r"mine\.npy: .*save arrays by numpy\.savez"):
        read_predictions(tmp_path / "mine.npy")


@pytest.mark.fault
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["mine.npz", "mine.csv.gz"])
def test_a_missing_and_a_truncated_file_are_named(tmp_path, table, npz, name):
    with pytest.raises(PredictionsError, match=r"no such file of predictions: .*nowhere\.npz"):
        read_predictions(tmp_path / "nowhere.npz")
    path = npz if name == "mine.npz" else table({"y_true": Y_TRUE, **MEMBERS}, name)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(PredictionsError, match=rf"{name}: cannot be read"):
        read_predictions(path)


def test_importing_the_module_is_cheap():
    code = (
        "import sys, epistemic_calibration.predictions; "
        "print([m for m in ('pandas', 'scipy', 'sklearn', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SCRIPTS
    )
    assert done.stdout == "[]\n"
