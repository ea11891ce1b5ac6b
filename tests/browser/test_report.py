"""The report of a finished run, as a browser shows it."""

import re
import shutil
import subprocess

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def report(finished, tmp_path_factory):
    project = finished.copy(tmp_path_factory.mktemp("report") / "work")
    project.run("--report", "results/snakemake.html")
    return project.folder / "results" / "snakemake.html"


def browse(report, folder, *options):
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={folder}/profile",
        "--virtual-time-budget=5000",
        *options,
        report.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)


def test_the_page_lists_what_a_reader_looks_for(report, tmp_path):
    page = browse(report, tmp_path, "--dump-dom").stdout
    # Without its scripts the page would be empty.
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", text)
    for expected in ("digits", "Paper", "Workflow", "Statistics"):
        assert expected in text


def test_the_page_is_drawn(report, tmp_path):
    from matplotlib.image import imread

    path = tmp_path / "page.png"
    browse(report, tmp_path, f"--screenshot={path}")
    image = imread(path)[..., :3]
    assert image.shape == (900, 1400, 3)
    # An empty page is all of one colour.
    assert image.reshape(-1, 3).std(axis=0).max() > 0.05
