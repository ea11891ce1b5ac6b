"""The pages of a run, of a file of predictions and of two runs, as a browser shows them."""

import contextlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

from epistemic_calibration.report.page._theme import COLORS, contrast  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1]))
from page_data import IMAGE, METHODS, SCRIPT, run_results  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="Chromium or chromedriver is not installed"
)


@contextlib.contextmanager
def browser(width=1280, scheme="light"):
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
        yield driver
    finally:
        driver.quit()


def load(driver, path):
    driver.get(path.as_uri())
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


def check_figures(driver):
    """Every chart has marks and a description, every image pixels and a text."""
    charts = driver.execute_script(
        """return [...document.querySelectorAll("figure.chart")].map(figure => ({
          title: figure.querySelector("h3").innerText,
          said: figure.querySelector("[role=graphics-document]")?.getAttribute("aria-label") ?? "",
          marks: [...figure.querySelectorAll("svg .mark-symbol path, svg .mark-rect path, "
            + "svg .mark-rule line")].filter(mark => mark.getBoundingClientRect().width
            + mark.getBoundingClientRect().height > 1).length}))"""
    )
    assert charts
    for chart in charts:
        assert chart["marks"] > 0, chart
        assert len(chart["said"]) > 20, chart
    images = driver.execute_script(
        "return [...document.querySelectorAll('main img')].map(i => [i.naturalWidth, i.alt])"
    )
    assert all(width > 0 and alt for width, alt in images)
    return charts, images


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


def points(driver, figure="two-questions"):
    """Position of each method's mark in a map, by label."""
    found = driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} .mark-symbol path`)].map("
        "m => [m.getAttribute('aria-label'), m.getAttribute('transform')])",
        figure,
    )
    return dict(found)


def menu(driver, figure, label):
    (found,) = (
        element
        for element in driver.find_elements(By.CSS_SELECTOR, f"#{figure} .vega-bind label")
        if element.text.startswith(label)
    )
    return found.find_element(By.CSS_SELECTOR, "select, input")


def test_it_needs_no_network_and_complains_of_nothing(wide):
    check_quiet(wide)


def test_every_figure_has_content(wide):
    charts, images = check_figures(wide)
    assert len(charts) == 6
    # The second data set has rows of values instead.
    assert len(images) > 20
    text = wide.find_element(By.ID, "carriers").get_attribute("textContent")
    assert ", …" in text


@pytest.mark.fault
def test_names_are_text_everywhere(wide):
    assert wide.execute_script("return window.hacked") is None
    text = wide.execute_script("return document.body.innerText")
    assert SCRIPT in wide.title + text and IMAGE in text
    in_svg = wide.execute_script(
        "return [...document.querySelectorAll('svg text')].map(t => t.textContent)"
    )
    assert SCRIPT in in_svg and f"Forest {IMAGE}" in in_svg
    options = [
        option.text for option in Select(wide.find_element(By.ID, "diagnostics-data")).options
    ]
    assert f"{SCRIPT}: {SCRIPT}" in options
    assert wide.execute_script("return document.querySelectorAll('img[src=x]').length") == 0


def test_a_heading_sorts(wide):
    table = wide.find_element(By.CSS_SELECTOR, "#methods table")
    heading = next(h for h in table.find_elements(By.TAG_NAME, "th") if h.text.startswith("Brier"))

    def column():
        rows = table.find_elements(By.CSS_SELECTOR, "tbody tr")
        place = table.find_elements(By.TAG_NAME, "th").index(heading)
        cells = [row.find_elements(By.TAG_NAME, "td")[place].text for row in rows]
        return [float(text.split()[0]) for text in cells]

    unsorted = column()
    wide.execute_script("arguments[0].scrollIntoView({block: 'center'})", heading)
    heading.click()
    ascending = column()
    heading.click()
    assert ascending == sorted(unsorted)
    assert column() == sorted(unsorted, reverse=True)
    # Intervals are drawn beside their numbers.
    assert len(table.find_elements(By.CSS_SELECTOR, "td svg line:not(.axis)")) >= 4


def test_the_field_searches(wide):
    section = wide.find_element(By.ID, "methods")
    field, table = (
        section.find_element(By.CSS_SELECTOR, selector) for selector in ("input", "table")
    )
    field.send_keys("illustrative")
    rows = table.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert [row.text.split()[0] for row in rows] == ["EK-NN"]
    field.clear()
    field.send_keys(" ")
    assert len(table.find_elements(By.CSS_SELECTOR, "tbody tr")) == len(METHODS)


def test_menus_switch_metric_data_and_scale(wide):
    before, title = points(wide), wide.find_element(By.CSS_SELECTOR, "#two-questions svg").text
    assert "Corrected TECE" in title
    across = Select(menu(wide, "two-questions", "Across"))
    across.select_by_visible_text("Brier score")
    after = points(wide)
    assert after.keys() == before.keys() and after != before
    assert "Brier score" in wide.find_element(By.CSS_SELECTOR, "#two-questions svg").text
    across.select_by_visible_text("Corrected TECE")
    assert points(wide) == before

    data = Select(menu(wide, "two-questions", "Data"))
    assert len(data.options) == 6
    data.select_by_visible_text("pets: cat")
    assert points(wide) != before
    data.select_by_visible_text("pets: all tasks")
    menu(wide, "two-questions", "Log across").click()
    assert points(wide) != before
    menu(wide, "two-questions", "Log across").click()
    assert points(wide) == before


def test_methods_can_be_hidden_and_controls_are_at_first(wide):
    assert "Base rate" not in points(wide)
    summary = wide.find_element(By.CSS_SELECTOR, "#two-questions details:has(.methods) > summary")
    wide.execute_script("arguments[0].scrollIntoView({block: 'center'})", summary)
    summary.click()
    labels = wide.find_elements(By.CSS_SELECTOR, "#two-questions-methods label")
    assert [label.text.strip() for label in labels][-1] == "Base rate"
    for label in labels:
        if label.text.strip() in ("Base rate", "EK-NN"):
            label.find_element(By.TAG_NAME, "input").click()
    assert points(wide).keys() == {m["label"] for m in METHODS.values()} - {"EK-NN"}
    for label in labels:
        if label.text.strip() in ("Base rate", "EK-NN"):
            label.find_element(By.TAG_NAME, "input").click()


def test_pointing_at_a_method_tells_its_numbers(wide):
    mark = next(
        element
        for element in wide.find_elements(By.CSS_SELECTOR, "#two-questions .mark-symbol path")
        if element.get_attribute("aria-label") == SCRIPT
    )
    wide.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(wide).move_to_element(mark).perform()
    tooltip = WebDriverWait(wide, 10).until(
        lambda d: d.find_element(By.CSS_SELECTOR, "#vg-tooltip-element.visible")
    )
    assert SCRIPT in tooltip.text
    assert tooltip.text.count("[") == 2  # both with an interval
    assert tooltip.find_elements(By.TAG_NAME, "script") == []
    assert wide.execute_script("return window.hacked") is None


def test_one_menu_is_for_all_charts_of_a_method(wide):
    def drawn():
        figures = wide.find_elements(By.CSS_SELECTOR, "#diagnostics figure svg.marks")
        return [figure.get_attribute("innerHTML") for figure in figures]

    first = drawn()
    assert len(first) == 3
    Select(wide.find_element(By.ID, "diagnostics-method")).select_by_visible_text(SCRIPT)
    WebDriverWait(wide, 10).until(
        lambda _: all(a != b for a, b in zip(first, drawn(), strict=True))
    )


def test_everything_can_be_reached_and_has_a_name(wide):
    nodes = wide.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    controls = [
        node
        for node in nodes
        if node.get("role", {}).get("value") in ("combobox", "checkbox", "searchbox", "link")
        and not node.get("ignored")
    ]
    assert len(controls) > 20
    for node in controls:
        assert node["name"]["value"].strip(), node
    assert wide.execute_script("return document.querySelectorAll('[tabindex=\"-1\"]').length") == 0


def test_downloads_are_inside(wide):
    links = wide.find_elements(By.CSS_SELECTOR, "#downloads a[download]")
    assert links
    content = wide.execute_async_script(
        "fetch(arguments[0]).then(r => r.text()).then(arguments[1])",
        next(a.get_attribute("href") for a in links if a.text == "summary.csv"),
    )
    assert content.startswith("method,label,")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_screen_in_either_scheme(page, scheme):
    with browser(width=400, scheme=scheme) as driver:
        load(driver, page)
        check_quiet(driver)
        check_figures(driver)
        wide, window = driver.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= window
        found = driver.execute_script(
            "const style = getComputedStyle(document.body); const label = "
            "getComputedStyle(document.querySelector('#two-questions svg .role-axis-label text'));"
            "return [style.backgroundColor, style.color, label.fill]"
        )
        colors = COLORS[scheme]
        expected = [colors["paper"], colors["ink"], colors["ink"]]
        assert found == [rgb(color) for color in expected]


def rgb(color):
    return f"rgb({', '.join(str(int(color[k : k + 2], 16)) for k in (1, 3, 5))})"


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
        charts, _ = check_figures(driver)
        assert len(charts) == 4
        assert "<b>mine" in driver.find_element(By.TAG_NAME, "h1").text
        assert "Is the mean right?" in driver.find_element(By.ID, "answers").text


def test_the_page_of_a_run_and_of_two(finished, tmp_path):
    from epistemic_calibration.cli import main

    results = finished.folder / "results"
    other = tmp_path / "other"
    shutil.copytree(results / "digits", other / "digits")
    arguments = ["page", str(results), str(other), "--output", str(tmp_path / "two.html")]
    assert main(arguments) == 0
    with browser() as driver:
        for path in (results / "report.html", results / "digits" / "report.html"):
            load(driver, path)
            check_quiet(driver)
            charts, images = check_figures(driver)
            assert len(charts) == 6
            assert any("reconstruction" in alt for _, alt in images)
        load(driver, tmp_path / "two.html")
        check_quiet(driver)
        check_figures(driver)
        assert "0 of " in driver.find_element(By.ID, "answers").text


def test_text_stands_out_from_its_background():
    for colors in COLORS.values():
        for text in ("ink", "muted", "link", "warning"):
            for background in ("paper", "panel"):
                assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
