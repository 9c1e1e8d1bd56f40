"""What the check of the built site finds, and what it leaves alone."""

import pytest

pytest.importorskip("tomllib")
from scripts.check_site import not_in_navigation, problems

HEAD = '<html><head><link rel="stylesheet" href="style.css"></head><body>'
WHOLE = '<h1 id="top">A</h1><a href="b.html#place">b</a><a href="https://host/x">x</a>'


@pytest.fixture
def site(tmp_path):
    def write(text):
        (tmp_path / "style.css").write_text("math { font-family: math }")
        (tmp_path / "b.html").write_text(f'{HEAD}<h2 id="place">B</h2>')
        (tmp_path / "a.html").write_text(HEAD + text)
        return tmp_path

    return write


def test_a_whole_site_has_no_problems(site):
    text = (
        f"{WHOLE}<math><mi>x</mi></math><code>x[1][2] $y$</code><pre>a](b)</pre>"
        '<img src="style.css" alt=""><a href="#top">top</a>'
    )
    assert problems(site(text)) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('<a href="c.html">c</a>', "c.html leads nowhere"),
        ('<a href="b.html#elsewhere">c</a>', "b.html#elsewhere leads to a place that is not there"),
        ('<a href="#elsewhere">c</a>', "#elsewhere leads to a place that is not there"),
        ("<p>See [<code>x</code>][adgn.x].</p>", "a reference to nothing"),
        ("<autoref identifier='adgn.x'>x</autoref>", "a reference to nothing: adgn.x"),
        ("<p>The state $x_u$ grows.</p>", "a formula that was not rendered: '$x_u$'"),
        (r"<p>\(x\)</p>", "a formula that was not rendered"),
        (r"<p>\mathbf W</p>", "a formula that was not rendered"),
        ("<math><mrow></mrow></math>", "an empty formula"),
        ("<math><merror>x</merror></math>", "a formula with an error"),
        ('<script src="https://cdn/x.js"></script>', "loads https://cdn/x.js from another host"),
        ('<img src="//cdn/x.png" alt="">', "loads //cdn/x.png from another host"),
        ('<img src="x.png" alt="">', "x.png is not there"),
        ('<img src="style.css">', "an image without a description"),
        ("<p>[a](b.md)</p>", "Markdown that was not rendered"),
    ],
)
def test_each_problem_is_named_with_its_page(site, text, what):
    (problem,) = problems(site(WHOLE + text))
    assert problem.startswith("a.html: ")
    assert what in problem


@pytest.mark.parametrize("rule", ['@import "https://host/a.css"', "a { b: url(//host/a.woff) }"])
def test_styles_load_nothing_from_elsewhere(site, rule):
    folder = site(WHOLE)
    (folder / "style.css").write_text(rule)
    (problem,) = problems(folder)
    assert problem.startswith("style.css: loads ")


def test_a_folder_without_pages_is_a_problem(tmp_path):
    (problem,) = problems(tmp_path)
    assert "has no pages" in problem


def test_every_page_is_in_the_menu(tmp_path):
    (tmp_path / "docs" / "api").mkdir(parents=True)
    for page in ("index.md", "api/nn.md"):
        (tmp_path / "docs" / page).write_text("# A page\n")
    (tmp_path / "zensical.toml").write_text(
        '[project]\nnav = [{ "Home" = "index.md" }, { "More" = [{ "Gone" = "gone.md" }] }]\n'
    )
    assert not_in_navigation(tmp_path) == [
        "docs/api/nn.md is not in the nav of zensical.toml",
        "zensical.toml lists gone.md, which is not there",
    ]


def test_the_menu_of_this_site_is_whole():
    assert not_in_navigation() == []
