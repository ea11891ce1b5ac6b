"""What a run cost: time and memory of each stage and method, from Snakemake's benchmark files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from epistemic_calibration.report.tables._selection import ordered_methods
from epistemic_calibration.report.tables._table import MISSING, PARTIAL, Table

_TOTAL = "(all)"


def read_runtimes(
    folder: str | Path, methods: Collection[str], stages: Collection[str]
) -> pd.DataFrame:
    """Read the benchmark files of one data set's jobs.

    They are ``STAGE.tsv``, ``seedSEED/STAGE.tsv``, and ``seedSEED/STAGE/METHOD.tsv`` or, for a
    chunk of tasks, ``seedSEED/STAGE/METHOD.NUMBER.tsv``.

    Parameters
    ----------
    folder : path
        ``results/benchmarks/DATASET``
    methods : collection of str
        Names in the configuration; files of others are left out.
    stages : collection of str
        Names of stages; files of others are left out.

    Returns
    -------
    DataFrame
        One row per job: ``seed`` (missing for what all seeds share), ``stage``, ``method``
        (empty where a stage has none), ``seconds`` of wall clock, ``cpu_seconds``,
        ``peak_mb`` (largest resident set, in MB of 2**20 bytes). A number is NaN where the
        job ended before Snakemake looked at it. Processor seconds are what Snakemake saw
        at its last look, so they lack the end of each job.

    Raises
    ------
    ValueError
        If a file is no benchmark file.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "images.tsv").write_text("s\\tcpu_time\\tmax_rss\\n2.5\\t1.5\\t100\\n")
    >>> read_runtimes(folder, ["eknn"], ["images"])[["stage", "seconds"]].values.tolist()
    [['images', 2.5]]
    """
    folder = Path(folder)
    rows = []
    for path in sorted(folder.rglob("*.tsv")):
        place = _place(path.relative_to(folder), methods, stages)
        if place is None:
            continue
        try:
            table = pd.read_csv(path, sep="\t", na_values=["-", "NA"])
        except pd.errors.EmptyDataError:
            table = pd.DataFrame()
        absent = {"s", "cpu_time", "max_rss"} - set(table.columns)
        if absent or table.empty:
            raise ValueError(
                f"{path} is no benchmark file of Snakemake: it lacks "
                f"{', '.join(sorted(absent)) or 'rows'}"
            )
        # A rule that repeats its jobs has a row for each time.
        numbers = table[["s", "cpu_time", "max_rss"]].astype(float)
        # A job may end while it is looked at: no process is that small.
        numbers.loc[~(numbers["max_rss"] > 0), ["cpu_time", "max_rss"]] = np.nan
        numbers = numbers.mean()
        rows.append((*place, *numbers))
    columns = ["seed", "stage", "method", "seconds", "cpu_seconds", "peak_mb"]
    types = {"seed": "Int64", "seconds": float, "cpu_seconds": float, "peak_mb": float}
    return pd.DataFrame(rows, columns=columns).astype(types)


def _place(
    path: Path, methods: Collection[str], stages: Collection[str]
) -> tuple[int | None, str, str] | None:
    """Return (seed, stage, method) of a benchmark file, or None if it is of no interest."""
    *folders, name = path.with_suffix("").parts
    if not folders:
        return (None, name, "") if name in stages else None
    seed = re.fullmatch(r"seed(\d+)", folders[0])
    if seed is None:
        return None
    if len(folders) == 1:
        return (int(seed[1]), name, "") if name in stages else None
    if len(folders) != 2 or folders[1] not in stages:
        return None
    # After the method's name, which has no dot, stands what tells its jobs apart.
    method = name.split(".")[0]
    return (int(seed[1]), folders[1], method) if method in methods else None


def runtime_table(
    runtimes: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    stages: Sequence[str],
    seeds: Sequence[int],
) -> Table:
    """Return time and memory of each stage and method, summed over jobs, mean over seeds.

    Parameters
    ----------
    runtimes : DataFrame
        As returned by `read_runtimes`; jobs of other stages and seeds are left out.
    dataset : str
    methods : mapping
        By name in the configuration: ``{"label": ..., ...}``.
    stages : sequence of str
        What there should be, in this order. A stage has one row, or one per method where
        any of its jobs has a method.
    seeds : sequence of int

    Returns
    -------
    Table
        Rows (stage, method), the last one ``(all)``: ``n_jobs``, ``seconds``,
        ``cpu_seconds``, each a mean over seeds of sums over jobs, and ``peak_mb``, the
        largest of any job. What all seeds share counts for each seed. What has no
        benchmark file is named below the table.

    Notes
    -----
    Jobs of the last time that they ran. If ``tasks_per_job`` has changed between two runs
    of a method, jobs of both may be among them, which ``n_jobs`` shows.

    Examples
    --------
    >>> runtimes = pd.DataFrame(
    ...     [(None, "images", "", 2.0, 1.5, 100.0), (0, "scores", "eknn", 3.0, 2.5, 90.0)],
    ...     columns=["seed", "stage", "method", "seconds", "cpu_seconds", "peak_mb"],
    ... )
    >>> methods = {"eknn": {"label": "EK-NN"}}
    >>> table = runtime_table(runtimes, "pets", methods, stages=["images", "scores"], seeds=[0])
    >>> table.text["Wall s"].to_dict()
    {'images': '2.0', 'scores': '3.0', '(all)': '5.0'}
    """
    names = ordered_methods(methods)
    runtimes = runtimes[runtimes["stage"].isin(stages)]
    by_method = set(runtimes.loc[runtimes["method"] != "", "stage"])
    rows = [(s, name) for s in stages for name in (names if s in by_method else [""])]

    shared = runtimes["seed"].isna()
    parts = [runtimes[runtimes["seed"] == seed] for seed in seeds]
    per_seed = pd.concat(
        {
            seed: pd.concat([runtimes[shared], part])
            .groupby(["stage", "method"])
            .agg(
                n_jobs=("seconds", "size"),
                seconds=("seconds", _sum),
                cpu_seconds=("cpu_seconds", _sum),
                peak_mb=("peak_mb", "max"),
            )
            for seed, part in zip(seeds, parts, strict=True)
        },
        names=["seed"],
    )
    by_row = per_seed.groupby(["stage", "method"])
    means = by_row.mean().assign(peak_mb=by_row["peak_mb"].max())
    cells = means.reindex(pd.MultiIndex.from_tuples(rows, names=["stage", "method"]))
    missing = [(*row, seed) for row in rows for seed in seeds if (seed, *row) not in per_seed.index]
    total = cells[["n_jobs", "seconds", "cpu_seconds"]].sum()
    cells.loc[(_TOTAL, ""), :] = {**total, "peak_mb": cells["peak_mb"].max()}

    labels = {"": "", **{name: methods[name]["label"] for name in names}}
    text = pd.DataFrame(
        {
            "Method": [labels[method] for _, method in cells.index],
            "Jobs": [_number(n, 0) for n in cells["n_jobs"]],
            "Wall s": [_number(s, 1) for s in cells["seconds"]],
            "CPU s": [_number(s, 1) for s in cells["cpu_seconds"]],
            "Peak MB": [_number(m, 0) for m in cells["peak_mb"]],
        },
        index=pd.Index([stage for stage, _ in cells.index], name="Stage"),
    )
    notes = ["Wall and CPU seconds are sums over jobs, which run side by side."]
    if missing:
        named = "; ".join(
            f"{' '.join(filter(None, (stage, labels[method])))} (seed {seed})"
            for stage, method, seed in missing
        )
        notes.append(f"{PARTIAL} no benchmark file of {named}.")
    return Table(
        cells=cells,
        text=text,
        caption=f"Time and memory on {dataset}, mean over {len(seeds)} seed(s)",
        notes=tuple(notes),
        words=("Method",),
    )


def _sum(values: pd.Series) -> float:
    return values.sum(min_count=1)


def _number(value: float, digits: int) -> str:
    return MISSING if pd.isna(value) else f"{value:.{digits}f}"
