"""Reading what jobs have written."""

import numpy as np
import pandas as pd

from epistemic_calibration.result_files import SCORE_COLUMNS, read_tables


def test_names_that_read_as_missing_values_are_names(tmp_path):
    path = tmp_path / "digits" / "seed0" / "scores" / "NA.csv"
    path.parent.mkdir(parents=True)
    rows = [
        ("digits", 0, "NA", "task", task, None, metric, value, None, 3, None)
        for task in ("None", "nan", "1")
        for metric, value in (("ece", 0.1), ("auroc", np.nan))
    ]
    rows.append(("digits", 0, "NA", "all_tasks", None, None, "ece", 0.1, None, None, None))
    pd.DataFrame(rows, columns=list(SCORE_COLUMNS)).to_csv(path, index=False)
    table = read_tables([path])
    assert list(table["task"][:6]) == ["None", "None", "nan", "nan", "1", "1"]
    assert table["task"].isna().tolist() == [False] * 6 + [True]
    assert set(table["method"]) == {"NA"}
    assert table["value"].isna().tolist() == [False, True] * 3 + [False]
