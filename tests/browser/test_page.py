"""The pages of a run and of files of predictions, and Snakemake's report, in a browser."""

import base64
import contextlib
import io
import shutil

import numpy as np
import pytest
from matplotlib.image import imread
from page_data import IMAGE, SCRIPT, run_results

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from epistemic_calibration.report.page._template import COLORS  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="Chromium or chromedriver is not installed"
)


@contextlib.contextmanager
def browser(width=1280, scheme="light", scripts=True):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument(f"--window-size={width},900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        yield driver
    finally:
        driver.quit()


def load(driver, path, fragment=""):
    # Another fragment alone would not load the page again.
    driver.get("about:blank")
    driver.get(f"{path.as_uri()}{fragment}")
    WebDriverWait(driver, 120).until(
        lambda d: d.execute_script("return document.documentElement.dataset.ready")
    )


def check_quiet(driver):
    """Nothing was fetched and nothing complained."""
    assert driver.get_log("browser") == []
    fetched = driver.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [name for name in fetched if not name.startswith(("data:", "blob:"))] == []


def seen(driver, selector):
    """The elements that a reader sees."""
    return [e for e in driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]


def methods_seen(driver):
    return [e.get_attribute("id") for e in seen(driver, "article.method")]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    from epistemic_calibration.report.page.run import run_page

    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(run_page(run_results()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def wide(page):
    with browser() as driver:
        load(driver, page)
        yield driver


def test_the_answer_is_on_the_first_screen(wide):
    check_quiet(wide)
    headline, figure = (seen(wide, s)[0] for s in (".headline", ".answers > svg"))
    assert headline.text.startswith("No method")
    assert figure.rect["y"] + figure.rect["height"] < 900
    assert figure.rect["width"] > 800


@pytest.mark.fault
def test_names_are_text_everywhere(wide):
    assert wide.execute_script("return window.hacked") is None
    text = wide.execute_script("return document.body.innerText")
    assert SCRIPT in text and IMAGE in text
    in_svg = wide.execute_script(
        "return [...document.querySelectorAll('svg text')].map(t => t.textContent)"
    )
    assert any(name.startswith("<script>window") for name in in_svg)
    assert wide.execute_script("return document.querySelectorAll('img[src=x]').length") == 0


def test_illustrative_methods_and_controls_are_off_at_first(page, wide):
    load(wide, page)

    def rows():
        figure = seen(wide, ".answers > svg")[0]
        return [text.text for text in figure.find_elements(By.TAG_NAME, "text")]

    assert "EK-NN" not in rows() and "Base rate" not in rows()
    seen(wide, "input.more")[0].click()
    assert {"EK-NN", "Base rate", "Illustrative:", "Controls:"} <= set(rows())
    assert wide.current_url.endswith(";all")


def test_a_row_leads_to_its_method_and_the_link_keeps_the_view(page, wide):
    load(wide, page)
    first = methods_seen(wide)
    assert len(first) == 2 and first[0].startswith("pets.")
    links = wide.find_elements(By.CSS_SELECTOR, ".answers > svg.main.wide a")
    other = next(
        link for link in links if link.get_attribute("xlink:href") not in {f"#{i}" for i in first}
    )
    name = other.get_attribute("xlink:href").removeprefix("#")
    other.find_element(By.TAG_NAME, "text").click()
    WebDriverWait(wide, 120).until(lambda _: name in methods_seen(wide))
    assert first[0] not in methods_seen(wide)
    (chip,) = wide.find_elements(By.CSS_SELECTOR, f"#pets .chips a[href='#{name}']")
    assert chip.get_attribute("aria-current") is not None
    assert len(seen(wide, "#pets .method svg")) == 3
    load(wide, page, f"#{name};all")
    assert name in methods_seen(wide)
    assert seen(wide, "input.more")[0].is_selected()


def test_tables_can_be_copied_and_figures_saved(page, wide):
    load(wide, page)
    wide.execute_script(
        "navigator.clipboard.writeText = text => { window.copied = text; };"
        "URL.createObjectURL = blob => { blob.text().then(t => { window.saved = t; }); "
        "return '#saved'; };"
    )
    for button in seen(wide, "#pets .answers button"):
        button.click()
        WebDriverWait(wide, 120).until(
            lambda d: d.execute_script("return window.copied || window.saved")
        )
    assert "\\begin{tabular}" in wide.execute_script("return window.copied")
    saved = WebDriverWait(wide, 120).until(lambda d: d.execute_script("return window.saved"))
    assert saved.startswith("<svg") and "var(" not in saved and COLORS["light"]["blue"] in saved
    link = wide.find_element(By.CSS_SELECTOR, "#pets a[download$='_answers.csv']")
    content = wide.execute_async_script(
        "fetch(arguments[0]).then(r => r.text()).then(arguments[1])", link.get_attribute("href")
    )
    assert content.startswith("method,label,")


def test_everything_can_be_reached_and_has_a_name(wide):
    nodes = wide.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = ("checkbox", "link", "button", "image", "region")
    controls = [
        node
        for node in nodes
        if node.get("role", {}).get("value") in roles and not node.get("ignored")
    ]
    assert len(controls) > 20
    for node in controls:
        assert node["name"]["value"].strip(), node
    assert wide.execute_script("return document.querySelectorAll('[tabindex=\"-1\"]').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_screen_in_either_scheme(page, scheme):
    with browser(width=400, scheme=scheme) as driver:
        load(driver, page)
        check_quiet(driver)
        wide, window = driver.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= window
        found = driver.execute_script(
            "const style = getComputedStyle(document.body), text = document.querySelector("
            "'.answers svg.narrow text');"
            "return [style.backgroundColor, style.color, getComputedStyle(text).fill]"
        )
        colors = COLORS[scheme]
        assert found == [rgb(color) for color in (colors["paper"], colors["ink"], colors["ink"])]
        # The name of a method stays while its numbers are scrolled.
        driver.find_element(By.CSS_SELECTOR, ".answers details > summary").click()
        name = driver.find_element(By.CSS_SELECTOR, ".answers tbody th")
        before = name.rect["x"]
        box = driver.find_element(By.CSS_SELECTOR, ".answers .scroll")
        driver.execute_script("arguments[0].scrollLeft = 150", box)
        assert box.get_property("scrollLeft") == 150
        assert name.rect["x"] == before


def rgb(color):
    return f"rgb({', '.join(str(int(color[k : k + 2], 16)) for k in (1, 3, 5))})"


def test_without_scripts_the_answer_shows(page):
    with browser(scripts=False) as driver:
        driver.get(page.as_uri())
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        assert seen(driver, ".headline")[0].text.startswith("No method")
        assert len(seen(driver, ".answers > svg")) == 2
        assert len(methods_seen(driver)) == 2
        assert seen(driver, "button") == []


def test_it_prints_in_few_pages_with_nothing_cut(page):
    with browser() as driver:
        load(driver, page)
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        a4 = {"width": 688, "height": 1017, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", a4)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 688
        assert seen(driver, "button, input, .chips, .experts") == []
        printed = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        content = base64.b64decode(printed["data"])
        assert 1 <= content.count(b"/Type /Page\n") <= 3


def test_the_page_of_a_file_of_predictions(tmp_path):
    from epistemic_calibration.cli import main

    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 400)
    hypotheses = np.clip(p[:, None] + rng.normal(0, 0.1, (400, 8)), 0, 1)
    path = tmp_path / "<b>mine.npz"
    np.savez(path, hypotheses=hypotheses, y_true=rng.random(400) < p)
    assert main(["page", str(path), "--output", str(tmp_path / "page.html")]) == 0
    with browser() as driver:
        load(driver, tmp_path / "page.html")
        check_quiet(driver)
        assert "<b>mine" in driver.find_element(By.TAG_NAME, "h1").text
        assert len(seen(driver, ".method svg")) == 3


def test_the_page_of_a_run(finished):
    with browser() as driver:
        for path in ("benchmark/report.html", "digits/report.html"):
            path = finished.folder / "results" / path
            assert path.stat().st_size < 1_000_000
            load(driver, path)
            check_quiet(driver)
            assert len(seen(driver, ".answers > svg")) >= 1
            assert len(seen(driver, ".method svg")) >= 3


def test_the_report_of_snakemake_is_drawn_and_lists_what_a_reader_looks_for(finished, tmp_path):
    project = finished.copy(tmp_path / "work")
    project.run("--report", "results/snakemake.html")
    with browser(width=1400) as driver:
        driver.get((project.folder / "results/snakemake.html").as_uri())
        # Without its scripts the page would be empty.
        for expected in ("digits", "Paper", "Workflow", "Statistics"):
            WebDriverWait(driver, 120).until(
                lambda d, word=expected: word in d.execute_script("return document.body.innerText")
            )
        image = imread(io.BytesIO(driver.get_screenshot_as_png()))[..., :3]
    assert image.shape == (900, 1400, 3)
    # An empty page is all of one colour.
    assert image.reshape(-1, 3).std(axis=0).max() > 0.05
