"""Predictions made elsewhere are read as they are, or refused with the file named."""

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.predictions import PredictionsError, read_predictions

RNG = np.random.default_rng(0)
Y_TRUE = RNG.integers(0, 2, 200)
HYPOTHESES = RNG.random((200, 7))


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


def test_npz_and_csv_hold_the_same(npz, csv):
    from_npz, from_csv = read_predictions(npz), read_predictions(csv)
    assert set(from_npz) == set(from_csv) == {"hypotheses", "y_true"}
    np.testing.assert_array_equal(from_npz["y_true"], Y_TRUE)
    np.testing.assert_array_equal(from_csv["hypotheses"], from_npz["hypotheses"])
    np.testing.assert_array_equal(from_npz["hypotheses"], HYPOTHESES.astype(np.float32))


def test_reported_values_are_kept(tmp_path):
    path = tmp_path / "mine.npz"
    eu, prediction = RNG.random(200), RNG.random(200)
    np.savez(
        path,
        hypotheses=HYPOTHESES,
        y_true=Y_TRUE,
        epistemic_uncertainty=eu,
        prediction=prediction,
    )
    arrays = read_predictions(path)
    np.testing.assert_allclose(arrays["epistemic_uncertainty"], eu, rtol=1e-6)
    np.testing.assert_allclose(arrays["prediction"], prediction, rtol=1e-6)


N_LABELS = RNG.integers(0, 6, 200)
N_POSITIVE = RNG.binomial(N_LABELS, 0.4)


def test_several_labels_per_input_in_each_form(tmp_path):
    given = {"hypotheses": HYPOTHESES, "y_true": Y_TRUE}
    named = {"n_positive": N_POSITIVE, "n_labels": N_LABELS}
    both = {"label_counts": np.stack([N_LABELS - N_POSITIVE, N_POSITIVE], axis=1)}
    np.savez(tmp_path / "named.npz", **given, **named)
    np.savez(tmp_path / "both.npz", **given, **both)
    columns = {f"h{j}": HYPOTHESES[:, j] for j in range(7)}
    pd.DataFrame({"y_true": Y_TRUE, **named, **columns}).to_csv(tmp_path / "a.csv", index=False)
    for name in ("named.npz", "both.npz", "a.csv"):
        arrays = read_predictions(tmp_path / name)
        assert set(arrays) == {"hypotheses", "y_true", "n_positive", "n_labels"}
        np.testing.assert_array_equal(arrays["n_positive"], N_POSITIVE)
        np.testing.assert_array_equal(arrays["n_labels"], N_LABELS)
        assert arrays["hypotheses"].shape == (200, 7)


def test_a_file_says_that_its_hypotheses_are_no_draws(tmp_path):
    path = tmp_path / "mine.npz"
    given = {"hypotheses": HYPOTHESES, "y_true": Y_TRUE}
    np.savez(path, **given, exchangeable=False)
    assert not read_predictions(path)["exchangeable"]
    np.savez(path, **given, exchangeable=True)
    assert "exchangeable" not in read_predictions(path)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"n_positive": N_POSITIVE}, "lacks n_labels, which goes with n_positive"),
        ({"n_positive": N_LABELS + 1, "n_labels": N_LABELS}, "n_positive must be at most"),
        ({"n_positive": N_POSITIVE / 2 + 0.1, "n_labels": N_LABELS}, "must be integers"),
        ({"n_positive": N_POSITIVE[1:], "n_labels": N_LABELS[1:]}, "n_labels has 199 samples"),
        ({"label_counts": N_POSITIVE}, r"label_counts has shape \(200,\); it must be \(200, 2\)"),
        ({"exchangeable": 1}, "exchangeable must be True or False"),
    ],
)
def test_faults_of_what_goes_with_the_hypotheses(tmp_path, arrays, words):
    path = tmp_path / "mine.npz"
    np.savez(path, hypotheses=HYPOTHESES, y_true=Y_TRUE, **arrays)
    with pytest.raises(PredictionsError, match=rf"mine\.npz.*{words}"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"hypotheses": HYPOTHESES}, "lacks y_true"),
        ({"y_true": Y_TRUE, "probs": HYPOTHESES}, "lacks hypotheses; it holds y_true, probs"),
        ({"hypotheses": HYPOTHESES, "y_true": Y_TRUE * 2 - 1}, r"y_true must be .*\[-1, 1\]"),
        ({"hypotheses": HYPOTHESES[:10], "y_true": Y_TRUE}, r"shape \(10, 7\), expected \(200, "),
        ({"hypotheses": HYPOTHESES[:, 0], "y_true": Y_TRUE}, r"shape \(200,\), expected"),
        ({"hypotheses": HYPOTHESES * 2, "y_true": Y_TRUE}, r"expected values in \[0, 1\]"),
        ({"hypotheses": np.where(HYPOTHESES > 0.5, np.nan, 0.1), "y_true": Y_TRUE}, "NaN"),
    ],
)
def test_faults_name_the_file(tmp_path, arrays, words):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    with pytest.raises(PredictionsError, match=f"mine.npz.*{words}"):
        read_predictions(path)


def test_a_column_of_text_is_named(tmp_path):
    path = tmp_path / "mine.csv"
    pd.DataFrame({"y_true": Y_TRUE, "h": HYPOTHESES[:, 0], "id": "a"}).to_csv(path, index=False)
    with pytest.raises(PredictionsError, match=r"mine\.csv: column\(s\) id hold no numbers"):
        read_predictions(path)


def test_a_missing_and_a_truncated_file_are_named(tmp_path, npz):
    with pytest.raises(PredictionsError, match=r"no such file of predictions: .*nowhere\.npz"):
        read_predictions(tmp_path / "nowhere.npz")
    npz.write_bytes(npz.read_bytes()[:500])
    with pytest.raises(PredictionsError, match=r"mine\.npz cannot be read"):
        read_predictions(npz)
