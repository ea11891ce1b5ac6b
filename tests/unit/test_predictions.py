"""Predictions made elsewhere are read as what they are, or refused in words that help."""

import contextlib
import io
import logging
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import entropy

from epistemic_calibration import cli, evaluate
from epistemic_calibration.predictions import PredictionsError, as_predictions, read_predictions
from epistemic_calibration.torchmetrics import EpistemicCalibrationError

RNG = np.random.default_rng(0)
Y_TRUE = RNG.integers(0, 2, 200)
HYPOTHESES = RNG.random((200, 7))
GIVEN = {"y_true": Y_TRUE, "hypotheses": HYPOTHESES}
VOTES = RNG.integers(0, 2, 200)
MEMBERS = {f"h{j}": HYPOTHESES[:, j] for j in range(7)}
P = HYPOTHESES[:, 0]
N_LABELS = RNG.integers(0, 6, 200)
N_POSITIVE = RNG.binomial(N_LABELS, 0.4)
TENSOR = torch.tensor(HYPOTHESES, requires_grad=True)
CLASSES = RNG.integers(0, 3, 200)
OF_CLASSES = RNG.dirichlet(np.ones(3), (200, 7))
NAMES = ["cat", "dog", "eel"]


@pytest.fixture
def npz(tmp_path):
    """Write an archive and return its path."""

    def write(**arrays):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        return path

    return write


@pytest.fixture
def table(tmp_path):
    """Write a table of columns and return its path."""

    def write(columns, name="mine.csv", index=False, **options):
        path = tmp_path / name
        pd.DataFrame(columns).to_csv(path, index=index, **options)
        return path

    return write


def accepted(arrays, hypotheses=HYPOTHESES, atol=1e-7):
    np.testing.assert_allclose(arrays["hypotheses"], hypotheses, rtol=1e-6, atol=atol)
    np.testing.assert_array_equal(arrays["y_true"], Y_TRUE)
    assert arrays["y_true"].dtype == np.uint8


# One intake: what one door takes or refuses, every other does in the same words.


def by_command(path):
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(["score", str(path)])
    if code:
        raise ValueError(printed.getvalue())


def by_torchmetrics(y_true, hypotheses):
    metric = EpistemicCalibrationError()
    metric.update(torch.tensor(hypotheses), torch.tensor(y_true))
    metric.compute()


SURE = HYPOTHESES[:, :1] > 0.5
COUNTS = RNG.binomial(9, HYPOTHESES[:, 0])
OF_COUNTS = (RNG.random(200) < HYPOTHESES[:, 0]).astype(int)
IN_NINE = {"y_true": OF_COUNTS, "n_labels": np.full(200, 9)}
# Tables of three raters, some of whom said nothing: a column for each, or a row for each label.
WIDE = pd.DataFrame((RNG.random((200, 3)) < P[:, None]) * 1.0).mask(RNG.random((200, 3)) < 0.1)
LONG = pd.DataFrame(np.argwhere(WIDE.notna()), columns=["input", "rater"])
LONG["label"] = WIDE.to_numpy()[WIDE.notna()]
# Arguments, and words of the refusal.
CASES = {
    "probabilities": ({}, ""),
    "labels in a column": ({"y_true": Y_TRUE[:, None]}, ""),
    "names": ({"y_true": np.where(Y_TRUE, "yes", "no"), "class_names": ["no", "yes"]}, ""),
    "names without their order": ({"y_true": np.where(Y_TRUE, "yes", "no")}, "give class_names"),
    "softmax": ({"hypotheses": RNG.dirichlet([1, 1, 1], 200)}, "of 3 classes by one model"),
    "leak": ({"hypotheses": np.column_stack([HYPOTHESES, Y_TRUE])}, "column 7 is y_true itself"),
    "members first": ({"hypotheses": HYPOTHESES.T}, "It looks transposed"),
    "logits": ({"hypotheses": 9 * HYPOTHESES - 4}, "If these are logits"),
    "NaN": ({"hypotheses": np.where(HYPOTHESES > 0.9, np.nan, 0.4)}, "that are NaN or infinite"),
    "labels of -1": ({"y_true": 2 * Y_TRUE - 1}, "[-1, 1]: if these are names of classes"),
    "deviation": ({"epistemic_uncertainty": HYPOTHESES.std(axis=1)}, "like the standard deviation"),
    "variance": ({"epistemic_uncertainty": HYPOTHESES.var(axis=1)}, ""),
    "float32 counts": ({**IN_NINE, "n_positive": np.float32(COUNTS / 9).astype(float) * 9}, ""),
    "counts in another order": (
        {"y_true": OF_COUNTS, "label_counts": np.stack([COUNTS, 9 - COUNTS], axis=1)},
        "less than in another order",
    ),
    "counts of others": ({**IN_NINE, "n_positive": RNG.permutation(COUNTS)}, "than by chance"),
    "weights": ({"sample_weight": COUNTS}, "weights are not taken"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_door_takes_the_same_and_refuses_it_in_the_same_words(npz, name):
    changes, words = CASES[name]
    given = {**GIVEN, **changes}
    path = npz(**given)
    doors = {
        "evaluate": lambda: evaluate(**given),
        "as_predictions": lambda: as_predictions(**given),
        "file": lambda: read_predictions(path),
        "command": lambda: by_command(path),
    }
    if len(given) == 2 and np.asarray(given["y_true"]).dtype.kind != "U":
        doors["torchmetrics"] = lambda: by_torchmetrics(**given)
    for door, enter in doors.items():
        if not words:
            enter()
            continue
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            enter()
        assert "\n" not in str(caught.value).strip(), door


def test_an_argument_that_there_is_not_is_named():
    for door in (evaluate, as_predictions):
        with pytest.raises(TypeError, match="no such argument: predicton; there are epistemic_unc"):
            door(Y_TRUE, HYPOTHESES, predicton=P)


# Tables.


@pytest.mark.parametrize(
    "prefix", ["h", "H_", "hypothesis_", "member ", "sample_", "draw", "tree", "net.", "V", ""]
)
def test_numbered_columns_are_hypotheses(table, caplog, prefix):
    caplog.set_level(logging.INFO)
    path = table({"y_true": Y_TRUE} | {f"{prefix}{j}": HYPOTHESES[:, j] for j in range(7)})
    accepted(read_predictions(path))
    assert f"columns of hypotheses: ['{prefix}0', '{prefix}1'" in caplog.text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"id": "a", "fold": VOTES}, "'id', 'fold' are neither hypotheses nor known"),
        ({"sample_weight": P}, "'sample_weight': weights are not taken. Draw inputs"),
        ({"epistemic_uncertanty": P / 4}, "Known are y_true, prediction, epistemic_uncertainty"),
        ({"tree0": P, "tree1": P}, "several kinds, 'h0'"),
        ({"h7": 1 - Y_TRUE}, "column 'h7' is y_true itself or its complement, a leak"),
        ({"h7": VOTES}, "column 'h7' holds only 0 and 1, the others hold probabilities"),
        ({"h7": ["oops", *P[1:]]}, "h7 holds text, such as 'oops'"),
        ({"h0": 1 - P, "h1": P}, "(columns 'h0' to 'h1')"),
        ({f"feature {j} {'x' * 60}": P for j in range(400)}, "and 390 more are neither"),
        ({f"h{j}_{n}": P for j in (7, 8) for n in NAMES}, "of several classes they go in an .npz"),
    ],
)
def test_columns_that_are_no_hypotheses(table, more, words):
    path = table({"y_true": Y_TRUE, **(MEMBERS if "h0" not in more else {}), **more})
    with pytest.raises(PredictionsError, match=rf"mine\.csv: .*{re.escape(words)}") as caught:
        read_predictions(path)
    assert len(str(caught.value)) < 1300


@pytest.mark.parametrize("selection", ["bayes_", "bayes", ["bayes_0", "bayes_1"]])
def test_hypotheses_are_selected_by_name(table, selection):
    columns = {"y_true": Y_TRUE, "bayes_0": P, "fold": VOTES, "bayes_1": P / 2, "bayesian": P}
    arrays = read_predictions(table(columns), hypotheses=selection)
    accepted(arrays, np.stack([P, P / 2], axis=1))


@pytest.mark.fault
@pytest.mark.parametrize("selection", ["net", ["h0", "h22"], ["h0", "y_true"], ["h0", "h0"], []])
def test_faults_of_a_selection(table, selection):
    with pytest.raises(PredictionsError, match=r"must name columns, each once, .*there are 'h0'"):
        read_predictions(table({"y_true": Y_TRUE, **MEMBERS}), hypotheses=selection)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mine.csv.gz", {}),
        ("mine.csv.xz", {"sep": ";"}),
        ("mine.tsv", {"sep": "\t"}),
        ("mine.csv", {"sep": ";", "decimal": ","}),
        ("mine.csv", {"encoding": "utf-8-sig"}),
        ("mine.csv", {"index": True}),
    ],
)
def test_forms_of_tables(table, name, options):
    accepted(read_predictions(table({"y_true": Y_TRUE, **MEMBERS}, name, **options)))


def test_row_names_of_r_are_dropped_and_words_are_labels(tmp_path):
    path = tmp_path / "mine.csv"
    words = np.where(Y_TRUE, "True", "False")
    lines = [f'"{n + 1}",{y},{p!r}' for n, (y, p) in enumerate(zip(words, P.tolist(), strict=True))]
    path.write_text("\n".join(['"y_true","V1"', *lines]))
    accepted(read_predictions(path), P[:, None])


@pytest.mark.fault
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "the file is empty"),
        (b"y_true,h0\n", "has a header and no samples"),
        (b"y_true,h0,h1\n0,.3,.5\n1,.2,.1,.4\n", "Expected 3 fields in line 3, saw 4"),
        (b"y_true,h0\n0,0,3\n0,0,5\n", "more columns than the header"),
        (b"y_true,h0\n0,.3\n,.2\n", "y_true has 1 values that are NaN"),
        (b"y_true,h0\nTrue,.3\n,.2\n", "y_true has 1 masked or missing values"),
        (b"y_true,h0\ncat,.3\ndog,.2\n", r"class_names=\['cat', 'dog'\]"),
        (b"y_true,h\xe9\n0,.3\n", "cannot be read: 'utf-8'"),
    ],
)
def test_faults_of_tables(tmp_path, text, words):
    path = tmp_path / "mine.csv"
    path.write_bytes(text)
    with pytest.raises(PredictionsError, match=rf"mine\.csv: .*{words}"):
        read_predictions(path)


def test_parquet(tmp_path):
    path = tmp_path / "mine.parquet"
    pytest.importorskip("pyarrow")
    pd.DataFrame({"y_true": Y_TRUE, **MEMBERS}).to_parquet(path)
    accepted(read_predictions(path))


# Forms of arrays.


@pytest.mark.parametrize(
    "y_true",
    [
        Y_TRUE.tolist(),
        Y_TRUE.astype(str).astype(object),
        Y_TRUE.astype("S1"),
        np.where(Y_TRUE, "True", "False"),
        pd.Series(Y_TRUE == 1, dtype="boolean"),
        pd.Series(Y_TRUE).astype("category"),
        torch.tensor(Y_TRUE == 1),
    ],
)
def test_forms_of_labels(y_true):
    accepted(as_predictions(y_true, HYPOTHESES))


@pytest.mark.parametrize(
    ("hypotheses", "tolerance"),
    [
        (HYPOTHESES.tolist(), 1e-7),
        (pd.DataFrame(MEMBERS), 1e-7),
        (pd.DataFrame(HYPOTHESES).astype("Float64"), 1e-7),
        (list(TENSOR), 1e-7),
        (TENSOR.half(), 2**-11),
        (TENSOR.bfloat16(), 2**-8),
    ],
)
def test_forms_of_hypotheses(hypotheses, tolerance):
    accepted(as_predictions(Y_TRUE, hypotheses), atol=tolerance)


def test_tables_of_raters_are_counted_as_the_messages_say():
    counts = [
        np.stack([(raters == c).sum(axis=1) for c in (0, 1)], axis=1)
        for raters in (WIDE, WIDE.to_numpy(), WIDE.astype("Int64"))
    ]
    counts.append(pd.crosstab(LONG.input, LONG.label))
    for each in counts:
        found = as_predictions(OF_COUNTS, HYPOTHESES, label_counts=each)
        np.testing.assert_array_equal(found["n_positive"], WIDE.sum(axis=1))
        np.testing.assert_array_equal(found["n_labels"], WIDE.notna().sum(axis=1))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hypotheses": HYPOTHESES[:, 0]}, "For a single hypothesis"),
        ({"y_true": COUNTS / 9}, "give n_positive = numpy.rint(fraction"),
        ({"prediction": SURE[:, 0] * 1.0}, "prediction holds only 0 and 1"),
        ({**IN_NINE, "n_positive": COUNTS / 9}, "give numpy.rint(fraction * n_labels)"),
        ({"y_true": np.where(P > 0.9, 255, Y_TRUE)}, "if 255 marks what to ignore, leave it out"),
        ({"y_true": np.arange(200) % 10}, "10 different value(s), among them [0, 1, 2, 3, 4]: if"),
        ({"y_true": np.where(Y_TRUE, np.nan, 0)}, "values that are NaN, the first for sample"),
        ({"y_true": pd.Series([None, *Y_TRUE[1:].tolist()], dtype="Int64")}, "1 masked or missing"),
        ({"y_true": np.ma.masked_array(Y_TRUE, Y_TRUE == 0)}, "missing values: leave out"),
        ({"y_true": np.zeros(199)}, "shape (200, 7), expected (199, n_hypotheses)"),
        ({"hypotheses": np.tile([0.9, 0.1], (200, 1))}, "of 2 classes by one model"),
        ({"hypotheses": RNG.random((200, 7, 3))}, "must add up to 1; along axis 2 sums lie"),
        ({"hypotheses": OF_CLASSES[:199]}, "its axis 0 is the samples: it has 199, y_true has 200"),
        ({"hypotheses": RNG.dirichlet(np.ones(3), (200, 200))}, "may be 'nhc' or 'hnc'. Say which"),
        ({"hypotheses": np.where(OF_CLASSES < 0.1, np.nan, 0.3)}, "values that are NaN"),
        ({"hypotheses": np.ma.masked_array(HYPOTHESES, HYPOTHESES > 0.9)}, "masked or missing"),
        ({"hypotheses": pd.DataFrame({"h0": P, "mean": P})}, "'mean' are neither hypotheses"),
        ({"hypotheses": HYPOTHESES.astype(str)}, "hypotheses holds text, such as '0."),
        ({"hypotheses": [[0.1, 0.2], [0.3]]}, "give a NumPy array with rows of equal length"),
        ({"hypotheses": np.log(HYPOTHESES)}, "If these are logarithms"),
        ({"hypotheses": np.where(HYPOTHESES > 0.5, 0.0, -np.inf)}, "If these are logarithms"),
        ({"hypotheses": np.where(HYPOTHESES > 0.5, 0.5, -np.inf)}, "(counted from 0): leave out"),
        ({"label_counts": WIDE}, "masked or missing values: of a column for each rater"),
        (
            {"label_counts": LONG},
            "of a row for each label pandas.crosstab(table.input, table.label)",
        ),
        ({"exchangeable": 1}, "exchangeable must be True or False"),
        ({"class_names": NAMES}, "class_names must be two"),
        ({"groups": np.arange(199)}, "groups has shape (199,), expected (200,)"),
        ({"groups": np.zeros(200)}, "groups are all 0.0"),
        ({"groups": np.where(CLASSES, 1, np.nan)}, "groups has "),
        ({"prediction": Y_TRUE}, "prediction is y_true itself"),
    ],
)
def test_faults_of_arrays(changes, words):
    with pytest.raises(PredictionsError, match=re.escape(words)):
        as_predictions(**{**GIVEN, **changes})


def test_rounding_beyond_the_range_is_clipped():
    hypotheses = HYPOTHESES.copy()
    hypotheses[3, 2], hypotheses[4, 1] = 1 + 9e-7, -9e-7
    found = as_predictions(Y_TRUE, hypotheses)["hypotheses"]
    assert (found[3, 2], found[4, 1]) == (1, 0)
    hypotheses[3, 2] = 1 + 2e-6
    with pytest.raises(PredictionsError, match=r"for sample 3, hypothesis 2 .*give numpy\.clip"):
        as_predictions(Y_TRUE, hypotheses)


@pytest.mark.filterwarnings("error")
def test_hypotheses_that_only_look_odd_are_taken():
    # Such as of a network that has learnt nothing.
    for hypotheses in (np.stack([P, 1 - P, P], axis=1), 0.5 + 0.001 * HYPOTHESES[:, :2]):
        accepted(as_predictions(Y_TRUE, hypotheses), hypotheses)


def test_trees_that_are_right_throughout_are_taken_and_told():
    hypotheses = np.stack([Y_TRUE, Y_TRUE, VOTES], axis=1)
    with pytest.warns(UserWarning, match="column 0 is y_true itself"):
        accepted(as_predictions(Y_TRUE, hypotheses), hypotheses)


# Several classes.

ORDERS = ["nhc", "hnc", "nch", "chn", "hcn", "cnh"]


def accepted_classes(arrays, names=("0", "1", "2")):
    np.testing.assert_allclose(arrays["hypotheses"], OF_CLASSES, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(arrays["y_true"], CLASSES)
    assert arrays["class_names"].tolist() == list(names)


@pytest.mark.parametrize("order", ORDERS)
def test_axes_are_told_apart_or_declared(npz, order):
    turned = OF_CLASSES.transpose(["nhc".index(letter) for letter in order])
    given = {"y_true": CLASSES, "hypotheses": turned}
    accepted_classes(as_predictions(**given))
    accepted_classes(as_predictions(**given, axes=order.upper()))
    accepted_classes(as_predictions(CLASSES, list(torch.tensor(turned))))
    accepted_classes(read_predictions(npz(**given, axes=order)))
    other = npz(**given, axes="nch" if order != "nch" else "nhc")
    accepted_classes(read_predictions(other, axes=order))


def test_axes_that_could_be_either_are_declared():
    square = RNG.dirichlet(np.ones(3), (200, 200))
    for order, expected in (("nhc", square), ("hnc", square.transpose(1, 0, 2))):
        arrays = as_predictions(CLASSES, square, axes=order)
        np.testing.assert_allclose(arrays["hypotheses"], expected, atol=1e-7)
    # Of two axes of the same length only one adds up to 1 for each of five names.
    named = as_predictions(CLASSES, np.full((200, 3, 5), 0.2), class_names=list("abcde"))
    assert named["hypotheses"].shape == (200, 3, 5)


@pytest.mark.parametrize(
    ("y_true", "class_names"),
    [
        (CLASSES, NAMES),
        (pd.Series(np.array(NAMES)[CLASSES], dtype="category"), np.array(NAMES)),
        (np.array([7, -1, 3])[CLASSES], [7, -1, 3]),
        (CLASSES.astype(str), ["0", "1", "2"]),
    ],
)
def test_forms_of_class_labels(y_true, class_names):
    arrays = as_predictions(y_true, OF_CLASSES, class_names=class_names)
    accepted_classes(arrays, map(str, class_names))


LEAK = np.where(np.arange(7)[:, None] == 2, np.eye(3)[CLASSES][:, None], OF_CLASSES)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_true": CLASSES + 1}, "y_true must hold the classes 0 to 2, but has 3 different"),
        ({"y_true": np.array(NAMES)[CLASSES]}, "give class_names, all names in the order of"),
        (
            {"y_true": np.array(["cat", "cow", "eel"])[CLASSES], "class_names": NAMES},
            "y_true has 'cow', which class_names lacks: 'cat', 'dog', 'eel'",
        ),
        ({"class_names": ["a", "a", "b"]}, "a vector of different names, got 'a', 'a', 'b'"),
        ({"axes": "nhx"}, "axes must be the letters n (samples), h (hypotheses) and c"),
        ({"axes": "nch"}, "axes='nch' its axis 1 is the classes"),
        ({"hypotheses": 1.005 * OF_CLASSES}, "add up to 1; got sums in [1.005"),
        ({"hypotheses": LEAK}, "hypotheses: column 2 is y_true itself"),
    ],
)
def test_faults_of_several_classes(changes, words):
    with pytest.raises(PredictionsError, match=re.escape(words)):
        as_predictions(**{"y_true": CLASSES, "hypotheses": OF_CLASSES, **changes})


def test_a_file_of_several_classes(npz):
    counts = RNG.integers(0, 4, (200, 3))
    given = {"y_true": np.array(NAMES)[CLASSES], "hypotheses": OF_CLASSES, "class_names": NAMES}
    groups = np.repeat(["b", "a"], 100)
    arrays = read_predictions(npz(**given, label_counts=counts, groups=groups, exchangeable=False))
    accepted_classes(arrays, NAMES)
    np.testing.assert_array_equal(arrays["label_counts"], counts)
    np.testing.assert_array_equal(arrays["groups"], np.repeat([0, 1], 100))
    assert not arrays["exchangeable"]


# What goes with the hypotheses.


@pytest.mark.parametrize(("name", "groups"), [("groups", None), ("patient", "patient")])
def test_groups_of_a_table_and_of_an_archive(npz, table, name, groups):
    of = np.array(["x", "y", "z"])[CLASSES]
    for path in (table({"y_true": Y_TRUE, name: of, **MEMBERS}), npz(**GIVEN, **{name: of})):
        arrays = read_predictions(path, groups=groups)
        accepted(arrays)
        # Numbered as they first appear, whatever they are called.
        np.testing.assert_array_equal(arrays["groups"], pd.factorize(CLASSES)[0])
        with pytest.raises(PredictionsError, match="lacks site"):
            read_predictions(path, groups="site")
        for taken in ("y_true", "hypotheses"):
            with pytest.raises(PredictionsError, match=r"holds no groups|lacks"):
                read_predictions(path, groups=taken)
    of[3] = ""
    path = table({"y_true": Y_TRUE, name: of, **MEMBERS})
    with pytest.raises(PredictionsError, match="groups has 1 masked or missing values"):
        read_predictions(path, groups=groups)


MEAN = HYPOTHESES.mean(axis=1)
TOTAL = entropy([MEAN, 1 - MEAN])
MUTUAL = TOTAL - entropy([HYPOTHESES, 1 - HYPOTHESES]).mean(axis=1)


@pytest.mark.parametrize(
    ("uncertainty", "words"),
    [
        (np.full(200, 0.26), r"reaches 0.26 \(sample 0\): it must be a variance .* \[0, 1/4\]"),
        (TOTAL, "reaches 0.69.* looks like the entropy of the mean"),
        (MUTUAL / np.log(2), "looks like the mutual information"),
        (HYPOTHESES.std(axis=1, ddof=1), "looks like the standard deviation"),
        ((HYPOTHESES / 10).std(axis=1) - 0.1, "epistemic_uncertainty lies in .*>= 0"),
        (np.full(200, np.nan), "200 values that are NaN"),
    ],
)
def test_an_uncertainty_must_be_a_variance(uncertainty, words):
    with pytest.raises(PredictionsError, match=words):
        as_predictions(Y_TRUE, HYPOTHESES, epistemic_uncertainty=uncertainty)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [0.2, 0.05, 0.02, 0.001])
def test_small_variances_are_told_from_standard_deviations(scale):
    hypotheses = 0.5 + scale * (HYPOTHESES - 0.5)
    for variance in (hypotheses.var(axis=1), hypotheses.var(axis=1, ddof=1)[:, None]):
        arrays = as_predictions(Y_TRUE, hypotheses, epistemic_uncertainty=variance)
        np.testing.assert_allclose(arrays["epistemic_uncertainty"], variance.ravel(), rtol=1e-6)
    if scale > 0.01:
        with pytest.raises(PredictionsError, match="looks like the standard deviation"):
            as_predictions(Y_TRUE, hypotheses, epistemic_uncertainty=hypotheses.std(axis=1))


def test_a_prediction_far_from_the_hypotheses_is_told(npz):
    with pytest.warns(UserWarning, match=r"the mean of the hypotheses by 0\.\d\d on average: "):
        as_predictions(Y_TRUE, HYPOTHESES, prediction=RNG.random(200))
    with pytest.warns(UserWarning, match=r"mine\.npz: prediction differs"):
        read_predictions(npz(**GIVEN, prediction=1 - MEAN**3))
    arrays = read_predictions(npz(**GIVEN, prediction=MEAN + 0.05))
    np.testing.assert_allclose(arrays["prediction"], MEAN + 0.05, rtol=1e-6)


def test_several_labels_per_input_in_each_form(npz, table):
    named = {"n_positive": N_POSITIVE, "n_labels": N_LABELS}
    both = {"label_counts": np.stack([N_LABELS - N_POSITIVE, N_POSITIVE], axis=1)}
    found = [
        read_predictions(npz(**GIVEN, **named)),
        read_predictions(npz(**GIVEN, **both)),
        read_predictions(table({"y_true": Y_TRUE, **named, **MEMBERS})),
        as_predictions(**GIVEN, **named),
    ]
    for arrays in found:
        assert set(arrays) == {"hypotheses", "y_true", "n_positive", "n_labels"}
        np.testing.assert_array_equal(arrays["n_positive"], N_POSITIVE)
        np.testing.assert_array_equal(arrays["n_labels"], N_LABELS)
    arrays = as_predictions(**GIVEN, n_positive=N_POSITIVE, n_labels=5)
    np.testing.assert_array_equal(arrays["n_labels"], np.full(200, 5))


# Samples that are in more than once.


@pytest.mark.parametrize("decimals", [12, 3])
@pytest.mark.parametrize(
    ("rows", "n_repeated"),
    [([*range(200), *range(20)], 20), (np.tile(np.arange(200), 5), 800)],
)
def test_repeated_samples_are_counted_unless_groups_are_given(rows, n_repeated, decimals):
    words = rf"{n_repeated} of {len(rows)} samples .*groups= \(--groups in the command\)"
    y, hypotheses = Y_TRUE[rows], HYPOTHESES[rows].round(decimals)
    with pytest.warns(UserWarning, match=words):
        as_predictions(y, hypotheses)
    with pytest.warns(UserWarning, match=words):
        as_predictions(CLASSES[rows], OF_CLASSES[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_predictions(y, hypotheses, groups=rows)
        # Another label is another sample.
        as_predictions(np.r_[Y_TRUE, 1 - y[200:]], hypotheses)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "hypotheses",
    [
        RNG.integers(1, 12, (300, 1)) / 12 * np.linspace(0.9, 1, 7),
        (RNG.uniform(0.1, 0.9, (1000, 1)) + 0.01 * RNG.normal(size=(1000, 2))).round(3),
        # A network without active units at some inputs.
        np.where(np.arange(200)[:, None] < 30, 0.1 * np.arange(1, 8), HYPOTHESES),
    ],
)
def test_methods_of_few_values_repeat_no_samples(hypotheses):
    as_predictions(RNG.random(len(hypotheses)) < 0.5, hypotheses)


# Archives.


@pytest.mark.fault
@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"hypotheses": HYPOTHESES}, "lacks y_true"),
        ({"y_true": Y_TRUE, "probs": HYPOTHESES}, "lacks hypotheses; it holds 'y_true', 'probs'"),
        ({f"a{j}": P for j in range(400)}, "'a9' and 390 more"),
        ({**GIVEN, "ids": P}, "'ids' are neither hypotheses nor known"),
        ({**GIVEN, "y_true": Y_TRUE.astype(object)}, "y_true holds Python objects, which are not"),
    ],
)
def test_faults_name_the_file(npz, arrays, words):
    with pytest.raises(PredictionsError, match=f"mine.npz: .*{words}") as caught:
        read_predictions(npz(**arrays))
    assert "pickle" not in str(caught.value)


def test_an_array_of_another_name_is_selected(npz):
    accepted(read_predictions(npz(y_true=Y_TRUE, probs=HYPOTHESES, ids=P), hypotheses="probs"))


@pytest.mark.fault
def test_what_an_archive_promises_is_read_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "huge.npz", y_true=Y_TRUE, hypotheses=np.zeros((200, 10_000)))
    with pytest.raises(PredictionsError, match="max_bytes= of read_predictions"):
        read_predictions(tmp_path / "huge.npz", max_bytes=10**7)


@pytest.mark.fault
@pytest.mark.filterwarnings("error")
def test_missing_truncated_and_other_files_are_named(tmp_path, table, npz):
    with pytest.raises(PredictionsError, match=r"no such file of predictions: .*nowhere\.npz"):
        read_predictions(tmp_path / "nowhere.npz")
    for path in (npz(**GIVEN), table({"y_true": Y_TRUE, **MEMBERS}, "mine.csv.gz")):
        path.write_bytes(path.read_bytes()[:500])
        with pytest.raises(PredictionsError, match=rf"{path.name}: cannot be read"):
            read_predictions(path)
    (tmp_path / "mine.npz").write_bytes(pickle.dumps(HYPOTHESES))
    with pytest.raises(PredictionsError, match=r"must be a file of numpy\.savez"):
        read_predictions(tmp_path / "mine.npz")
    np.save(tmp_path / "mine.npy", HYPOTHESES)
    with pytest.raises(PredictionsError, match=r"mine\.npy: .*save arrays by numpy\.savez"):
        read_predictions(tmp_path / "mine.npy")
