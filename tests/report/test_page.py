"""The page in a real browser: no network, no errors, accessible, and its numbers are the JSON's."""

from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from adgn.report import html_page, read_results
from adgn.report.grid import anchor
from adgn.report.numbers import number_format
from tests.crossing import covering, exhaustive
from tests.report.sample import TABLES, build_results, first_rows

WIDTHS, SCHEMES = (360, 1280), ("light", "dark")


@pytest.fixture(scope="module")
def page_path(report):
    return report.page


@pytest.fixture(scope="module")
def short_page_path(tmp_path_factory):
    """A page with all kinds of parts and few cells: axe takes its time for each element."""
    folder = tmp_path_factory.mktemp("short")
    tables = [first_rows(table, n) for table, n in zip(TABLES, (4, 1, 1, 2, 2), strict=True)]
    path = folder / "index.html"
    path.write_text(html_page(read_results(build_results(folder / "r", tables))), encoding="utf-8")
    return path


@pytest.fixture
def open_page(chromium, page_path):
    """Opens the page; what it asked for and complained about is on the returned page."""
    contexts = []

    def start(width=1280, scheme="light", path=page_path, **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield start
    for context in contexts:
        context.close()


def test_it_opens_from_a_file_without_network_or_errors(open_page, page_path):
    page = open_page()
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert [url for url in page.asked if not url.startswith("data:")] == [page_path.as_uri()]
    assert page.complaints == []


def check_with_axe(page):
    page.add_script_tag(content=files("axe_playwright_python").joinpath("axe.min.js").read_text())
    result = page.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
    assert len(result["passes"]) > 20
    found = [(v["id"], v["nodes"][0]["html"][:200]) for v in result["violations"]]
    assert found == []
    unsure = [(v["id"], v["nodes"][0]["html"][:200]) for v in result["incomplete"]]
    # The colours of text in SVG, which axe cannot judge, are those that test_colours checks.
    assert [u for u in unsure if u[0] != "color-contrast"] == []


# Colours are a matter of the scheme, places one of the width.
@pytest.mark.long
@covering("width, scheme", WIDTHS, SCHEMES)
def test_axe_finds_nothing(open_page, short_page_path, width, scheme):
    page = open_page(width, scheme, short_page_path)
    # All of one experiment and some cells of it, among them the failed one: others are made alike.
    page.evaluate(
        "document.querySelectorAll('#property > details, #property .cell:nth-of-type(-n+7)')"
        ".forEach(d => { d.open = true })"
    )
    assert page.locator("[id='cell-property--gat--sssp']").is_visible()
    check_with_axe(page)


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_nothing_is_wider_than_the_screen(open_page, width):
    page = open_page(width)
    for opened in (False, True):
        if opened:
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 360:  # the table is wider: it must scroll by itself, and say so
            assert page.evaluate(
                "(d => d.scrollWidth > d.clientWidth)(document.querySelector('.scroll'))"
            )
        # Of tables in closed parts nothing can be said before they are opened.
        page.wait_for_function(
            """[...document.querySelectorAll('.scroll')].filter(d => d.clientWidth).every(
                d => d.classList.contains('wide') === d.scrollWidth > d.clientWidth)""",
            timeout=5000,
        )


def check_numbers(page, results):
    """All cells of all tables are on the page as the JSON has them; gives how many numbers."""
    numbers = 0
    for table in results.tables:
        name = table.experiment.name
        form = number_format(table.experiment.metric.unit)
        shown = page.evaluate(
            """name => Object.fromEntries([...document.querySelectorAll(
                `#${name} > .scroll td[data-cell], #${name} > .tables td[data-cell]`)]
                .map(td => [td.dataset.cell, [td.querySelector('.m')?.textContent ?? td.textContent,
                 td.querySelector('.s')?.textContent ?? '']]))""",
            name,
        )
        assert set(shown) == {f"{row}--{column}" for row, column in table.cells}
        half = 0.5 * 10**-form.decimals + 1e-9
        for (row, column), cell in table.cells.items():
            mean, spread = shown[f"{row}--{column}"]
            score = table.score(cell)
            if score is None or score.mean is None:
                assert mean in ("failed", "waiting", "under way", "not finite")
                continue
            numbers += 1
            mean = mean.removesuffix(", then failed").replace("−", "-")
            assert abs(float(mean) - form.scale * score.mean) <= half
            if score.std is None or cell.status == "failed":
                assert spread == ""
            else:
                assert abs(float(spread.strip("± ")) - form.scale * score.std) <= half
        differences = page.locator(f"#{name} tr.difference td").all_text_contents()
        expected = [
            "–"
            if (score := table.score(cell)) is None or score.mean is None or not cell.published
            else form.signed(score.mean - cell.published.mean)
            for group in table.groups
            for row in table.experiment.rows
            if any(table.cells[row.key, c.key].published for c in group.columns)
            for c in group.columns
            if (cell := table.cells[row.key, c.key])
        ]
        assert differences == expected
        normalised = page.locator(f"#{name} tr.extra td").all_text_contents()
        measured = [
            cell.train["normalised_accuracy"].mean
            for cell in table.cells.values()
            if "normalised_accuracy" in cell.train
        ]
        found = [float(text) for text in normalised if text != "–"]
        assert found == pytest.approx(measured, abs=0.0051)
    return numbers


def test_the_numbers_are_those_of_the_json(open_page, sample):
    cells = sum(len(table.cells) for table in sample.tables)
    # All but one that failed, one infinite, and seven that wait.
    assert check_numbers(open_page(), sample) == cells - 1 - 1 - 7


@pytest.mark.parametrize("javascript", [True, False])
def test_a_number_leads_to_its_configuration_in_one_click(open_page, sample, javascript):
    page = open_page(java_script_enabled=javascript)
    cell = sample.tables[0].cells["gcn", "sssp"]
    about = page.locator(f"[id='{anchor(cell)}']")
    assert not about.is_visible()
    page.locator("#property > .scroll td[data-cell='gcn--sssp'] a").click()
    about.wait_for(state="visible", timeout=5000)
    assert 'name = "sssp"' in about.locator("pre").inner_text()


def test_a_failed_cell_leads_to_its_error(open_page):
    page = open_page()
    page.locator("td.failed a").first.click()
    about = page.locator("[id='cell-property--gat--sssp']")
    about.wait_for(state="visible", timeout=5000)
    text = about.inner_text()
    assert "the loss is not finite in epoch 12 <&>" in text
    assert "DivergedError" in text


def test_headings_are_in_order_and_ids_are_unique(open_page):
    page = open_page()
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    targets = page.evaluate("[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash)")
    assert {target[1:] for target in targets} <= set(ids)


def test_decimal_points_of_a_column_are_in_line(open_page):
    page = open_page()
    edges = page.evaluate(
        """[...document.querySelectorAll('#property > .scroll tr')].map(tr =>
            tr.querySelectorAll('td')[0]?.querySelector('.m')?.getBoundingClientRect().right)
            .filter(x => x !== undefined)"""
    )
    assert len(edges) > 15
    assert max(edges) - min(edges) < 1


def test_no_label_leaves_its_chart(open_page):
    """Texts end where their figure does: what is beyond is cut off in a file."""
    page = open_page(1280)
    beyond = page.evaluate(
        """[...document.querySelectorAll('figure svg text')].filter(text => {
            const svg = text.ownerSVGElement.getBoundingClientRect();
            const box = text.getBoundingClientRect();
            return box.width && (box.left < svg.left - 1 || box.right > svg.right + 1);
        }).map(text => text.textContent)"""
    )
    assert beyond == []


def test_the_page_refers_to_nothing_outside(page_path):
    text = page_path.read_text(encoding="utf-8")
    for mark in ("src=", "@import", "url(", "http://", "https://"):
        assert text.replace('xmlns="http://www.w3.org/2000/svg"', "").count(mark) == 0, mark


COMMITTED = Path(__file__).resolve().parents[2] / "results" / "reproduction"


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The repository's own results and their page."""
    if not COMMITTED.exists():
        pytest.skip("results/reproduction is not there: nothing was measured yet")
    results = read_results(COMMITTED)
    path = tmp_path_factory.mktemp("committed") / "index.html"
    path.write_text(html_page(results), encoding="utf-8")
    return results, path


@pytest.mark.long
def test_the_page_of_the_committed_results_has_the_numbers_of_the_json(open_page, committed):
    results, path = committed
    page = open_page(path=path)
    assert check_numbers(page, results) > 0
    assert [url for url in page.asked if not url.startswith("data:")] == [path.as_uri()]
    assert page.complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


# The sample's page, which has the same parts, is looked at in both widths and schemes.
@pytest.mark.long
@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "dark"), pytest.param(1280, "light", marks=exhaustive)]
)
def test_axe_finds_nothing_in_the_page_of_the_committed_results(
    open_page, committed, width, scheme
):
    page = open_page(width, scheme, committed[1])
    page.evaluate("document.querySelector('.cell').open = true")
    check_with_axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
