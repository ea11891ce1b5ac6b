"""The table of run times, from benchmark files as Snakemake writes them."""

import numpy as np
import pytest

from epistemic_calibration.report.runtimes import read_runtimes, runtime_table

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
STAGES = ["images", "encoder", "latents", "neighbors", "hypotheses", "scores"]
METHODS = {
    "eknn": {"label": "EK-NN", "family": "illustrative"},
    "random_forest": {"label": "Random Forest", "family": "active"},
}


def write(folder, name, seconds, peak_mb, cpu_seconds):
    path = folder / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    middle = f"{peak_mb}\t900.0\t10.0\t11.0\t0.0\t0.1\t88.0"
    path.write_text(f"{HEADER}{seconds}\t0:00:01\t{middle}\t{cpu_seconds}\n")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "images", 2.0, 100.0, 1.5)
    write(tmp_path, "figures", 50.0, 999.0, 40.0)
    for seed, factor in ((0, 1.0), (1, 3.0)):
        part = tmp_path / f"seed{seed}"
        write(part, "encoder", 10.0 * factor, 300.0, 9.0 * factor)
        write(part, "encoder_figures", 50.0, 999.0, 40.0)
        write(part, "latents", 1.0, 200.0, 1.0)
        write(part, "neighbors", 1.0, 150.0, 1.0)
        write(part, "hypotheses/random_forest.0", 4.0 * factor, 400.0 * factor, 3.0 * factor)
        write(part, "hypotheses/random_forest.11", 2.0 * factor, 410.0, 1.0 * factor)
        write(part, "hypotheses/eknn.0", 0.3, "NA", "NA")
        write(part, "scores/random_forest", 5.0, 250.0, 4.0)
        write(part, "scores/eknn", 5.0, 260.0, 4.0)
        write(part, "sensitivity/eknn", 50.0, 999.0, 40.0)
    return tmp_path


def test_rows_of_jobs(folder):
    runtimes = read_runtimes(folder, METHODS, STAGES)
    assert len(runtimes) == 1 + 2 * 8
    assert set(runtimes["stage"]) == {
        "images",
        "encoder",
        "latents",
        "neighbors",
        "hypotheses",
        "scores",
    }
    forest = runtimes[(runtimes["method"] == "random_forest") & (runtimes["seed"] == 1)]
    assert sorted(forest["seconds"]) == [5.0, 6.0, 12.0]
    assert runtimes[runtimes["stage"] == "images"]["seed"].isna().all()


def test_sums_over_jobs_and_means_over_seeds(folder):
    cells = runtime_table(
        read_runtimes(folder, METHODS, STAGES), "digits", METHODS, stages=STAGES, seeds=[0, 1]
    ).cells
    forest = cells.loc[("hypotheses", "random_forest")]
    # Seed 0: 4 + 2 s, seed 1: 12 + 6 s.
    assert forest["n_jobs"] == 2
    assert forest["seconds"] == 12.0
    assert forest["cpu_seconds"] == 8.0
    assert forest["peak_mb"] == 1200.0
    assert cells.loc[("images", ""), "seconds"] == 2.0
    assert cells.loc[("encoder", ""), "seconds"] == 20.0
    total = cells.loc[("(all)", "")]
    assert total["seconds"] == pytest.approx(2 + 20 + 1 + 1 + 12 + 0.3 + 5 + 5)
    assert total["n_jobs"] == 9
    assert total["peak_mb"] == 1200.0


def test_only_the_seeds_and_methods_asked_for(folder):
    methods = {"eknn": METHODS["eknn"]}
    cells = runtime_table(
        read_runtimes(folder, methods, STAGES), "digits", methods, stages=STAGES, seeds=[0]
    ).cells
    assert "random_forest" not in cells.index.get_level_values("method")
    assert cells.loc[("encoder", ""), "seconds"] == 10.0


@pytest.mark.parametrize("seen", ["NA", "0.00"])
def test_a_job_too_short_to_be_seen_has_no_memory(folder, seen):
    write(folder, "seed0/hypotheses/eknn.0", 0.3, seen, seen)
    table = runtime_table(
        read_runtimes(folder, METHODS, STAGES), "digits", METHODS, stages=STAGES, seeds=[0]
    )
    cell = table.cells.loc[("hypotheses", "eknn")]
    assert cell["seconds"] == 0.3
    assert np.isnan(cell["peak_mb"])
    assert np.isnan(cell["cpu_seconds"])
    line = next(line for line in table.to_markdown().splitlines() if "EK-NN" in line)
    assert [part.strip() for part in line.strip("|").split("|")] == [
        "hypotheses",
        "EK-NN",
        "1",
        "0.3",
        "—",
        "—",
    ]
    assert not any(note.startswith("Partial") for note in table.notes)


@pytest.mark.fault
def test_a_stage_without_files_is_named(folder):
    (folder / "seed0" / "scores" / "eknn.tsv").unlink()
    table = runtime_table(
        read_runtimes(folder, METHODS, STAGES), "digits", METHODS, stages=STAGES, seeds=[0]
    )
    assert "Partial: no benchmark file of scores EK-NN (seed 0)." in table.notes
    assert r"\begin{table}" in table.to_latex()


def test_a_method_whose_name_ends_like_a_chunk(tmp_path):
    # Predictions made elsewhere come in one job, without a number.
    write(tmp_path, "seed0/hypotheses/mine_2", 1.0, 100.0, 1.0)
    write(tmp_path, "seed0/hypotheses/other_2.0", 1.0, 100.0, 1.0)
    runtimes = read_runtimes(tmp_path, ["mine_2", "other_2", "mine"], STAGES)
    assert sorted(runtimes["method"]) == ["mine_2", "other_2"]


def test_no_benchmark_files_are_all_named(tmp_path):
    table = runtime_table(
        read_runtimes(tmp_path, METHODS, STAGES), "digits", METHODS, stages=STAGES, seeds=[0]
    )
    assert table.cells["seconds"].iloc[:-1].isna().all()
    assert "no benchmark file of images (seed 0)" in table.notes[-1]


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "images.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(ValueError, match=r"images\.tsv is no benchmark file.*cpu_time"):
        read_runtimes(tmp_path, METHODS, STAGES)


def test_stages_are_those_asked_for_in_their_order(folder):
    stages = ["sensitivity", "encoder"]
    runtimes = read_runtimes(folder, METHODS, stages)
    assert set(runtimes["stage"]) == {"sensitivity", "encoder"}
    cells = runtime_table(runtimes, "digits", METHODS, stages=stages, seeds=[0]).cells
    names = ["eknn", "random_forest"]
    assert list(cells.index) == [
        *(("sensitivity", n) for n in names),
        ("encoder", ""),
        ("(all)", ""),
    ]
    everything = read_runtimes(folder, METHODS, [*STAGES, *stages])
    again = runtime_table(everything, "digits", METHODS, stages=stages, seeds=[0])
    assert again.cells.equals(cells)
