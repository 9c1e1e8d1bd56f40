"""The page about a model in a real browser: complete, accessible, not wider than the screen."""

import numpy as np
import pytest

from adgn import Graph, NodeClassifier, NodeRegressor
from adgn.estimators import compare
from adgn.report.model_page import model_page
from tests.estimators.graphs import two_groups
from tests.report.test_page import check_with_axe

QUICK = {"loop": {"max_epochs": 3}}
COMMAND = "adgn fit people.csv knows.csv --target side --set 'a=<b>'"


@pytest.fixture(scope="module")
def classifier():
    graph, _ = two_groups()
    return NodeClassifier(test_size=0.3, settings=QUICK).fit(graph)


@pytest.fixture(scope="module")
def compared(classifier):
    return compare(None, classifier, resamples=50)


@pytest.fixture(scope="module")
def class_page(classifier, compared, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "report.html"
    text = model_page(classifier, compared, command=COMMAND, predictions="predictions.csv")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def value_page(tmp_path_factory):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 2))
    edges = generator.integers(0, 60, (2, 120))
    graph = Graph.from_arrays(x, edges, y=(3 * x[:, 0] + 100).tolist())
    model = NodeRegressor(model="mlp", settings=QUICK).fit(graph)
    path = tmp_path_factory.mktemp("values") / "report.html"
    path.write_text(model_page(model), encoding="utf-8")
    return path


@pytest.fixture
def open_file(chromium):
    contexts = []

    def start(path, width=1280, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
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


def test_it_needs_no_network_and_shows_the_numbers_of_the_model(
    open_file, class_page, classifier, compared
):
    page = open_file(class_page)
    assert [url for url in page.asked if not url.startswith("data:")] == [class_page.as_uri()]
    assert page.complaints == []
    rows = page.locator("#scores table").first.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["this model", *(r.name for r in compared[1:])]
    assert [float(row.split("\t")[1].replace("−", "-")) for row in rows] == pytest.approx(
        [row.score for row in compared], abs=0.00051
    )
    counts = page.locator("table.confusion td").all_inner_texts()
    held_out = classifier.parts_.test
    assert sum(int(text or 0) for text in counts) == held_out.numel()
    right = page.locator("table.confusion td.right").all_inner_texts()
    accuracy = sum(int(text or 0) for text in right) / held_out.numel()
    assert accuracy == pytest.approx(classifier.test_scores_["accuracy"])
    uncertain = page.locator("#errors table.plain tbody tr").all_inner_texts()
    probability = classifier.predict_proba(np.arange(100, 120)).max(axis=1)
    assert [row.split("\t")[0] for row in uncertain] == [
        str(100 + k) for k in np.argsort(probability, kind="stable")[:10]
    ]
    assert len(page.locator("#tried tbody tr").all()) == len(classifier.attempts_)
    assert page.locator("#command pre").inner_text() == COMMAND
    assert page.locator("#distances svg").count() == 1


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_axe_finds_nothing(open_file, class_page, value_page, width, scheme):
    for path in (class_page, value_page):
        check_with_axe(open_file(path, width, scheme))


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(open_file, class_page, value_page, width):
    for path in (class_page, value_page):
        page = open_file(path, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_values_have_a_chart_of_predicted_against_true(open_file, value_page):
    page = open_file(value_page)
    assert page.locator("#errors svg").count() == 1
    assert "largest error" in page.locator("#errors h3").inner_text()
    assert "No rows were held out" in page.locator(".lead").inner_text()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_a_score_that_is_not_defined_is_said():
    graph = Graph.from_arrays([[float(n)] for n in range(10)], [[0], [1]], y=range(10))
    model = NodeRegressor(model="mlp", settings=QUICK, test_size=0.1).fit(graph)
    text = model_page(model, compare(None, model, resamples=20))
    assert "R² is not defined on the 1 node(s) held out" in text
    assert "nan" not in text.lower().replace("nano", "")
