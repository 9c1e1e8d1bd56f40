"""The site that `make docs` built, in a browser: formulas, sizes, accessibility, no other host.

`make docs` sets ADGN_SITE to its folder; without it there is nothing to look at.
"""

import importlib
import os
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread

import pytest

import adgn

SCHEMES = ("light", "dark")
PACKAGES = [name for name in adgn.__all__ if hasattr(getattr(adgn, name), "__all__")]
PAGES = ("index.html", "results.html", "probe.html")
WIDE = (
    "maths.html",
    "models.html",
    "stability.html",
    "mislabelled.html",
    "notebooks/stability.html",
)


@pytest.fixture(scope="module")
def site():
    folder = os.environ.get("ADGN_SITE")
    if not folder:
        pytest.skip("ADGN_SITE is not set: `make docs` builds the site and runs these tests")
    return Path(folder).resolve()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def address(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def open_page(chromium, address):
    """Opens a page of the site; a request to another host fails, and is noted."""
    contexts = []

    def start(name, width=1280, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.elsewhere, page.complaints = [], []
        page.route(
            lambda url: not url.startswith((address, "data:", "blob:")),
            lambda route: (page.elsewhere.append(route.request.url), route.abort()),
        )
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(address + name)
        page.wait_for_function("document.fonts.status == 'loaded'")
        return page

    yield start
    for context in contexts:
        context.close()


def test_no_page_asks_another_host_or_complains(open_page, site, address):
    page = open_page("index.html")
    for path in sorted(site.rglob("*.html")):
        if path.name != "404.html":  # its paths are those of the host that serves it
            page.goto(f"{address}{path.relative_to(site).as_posix()}")
    page.keyboard.press("/")  # the search loads its index
    page.wait_for_load_state("networkidle")
    assert page.elsewhere == []
    assert page.complaints == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_its_entry(site, package):
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    entries = set(re.findall(r'id="(adgn[\w.]*)"', text))
    names = importlib.import_module(f"adgn.{package}").__all__
    # A function whose module has its name is found there.
    places = {name: {f"adgn.{package}.{name}", f"adgn.{package}.{name}.{name}"} for name in names}
    assert [name for name, found in places.items() if not found & entries] == []


def test_every_name_of_the_package_itself_is_listed(site):
    text = (site / "api" / "adgn.html").read_text(encoding="utf-8")
    listed = {name.removeprefix("adgn.") for name in re.findall(r"<code>([\w.]+)</code>", text)}
    assert set(adgn.__all__) - listed == set()


@pytest.mark.parametrize("name", ["maths.html", "models.html", "api/nn.html"])
def test_every_formula_is_drawn_in_the_site_s_own_font(open_page, site, name):
    page = open_page(name)
    written = (site / name).read_text(encoding="utf-8").count("<math")
    boxes = page.eval_on_selector_all(
        "math", "all => all.map(m => [m.getBoundingClientRect().width, m.textContent])"
    )
    assert len(boxes) == written > 10
    assert [text for width, text in boxes if width < 2] == []
    assert page.evaluate(
        "[...document.fonts].some(f => f.family.includes('adgn math') && f.status == 'loaded')"
    )
    assert "$" not in page.evaluate(
        "[...document.querySelectorAll('article p, article td')].map(e => e.cloneNode(true))"
        ".map(e => (e.querySelectorAll('code').forEach(c => c.remove()), e.textContent)).join(' ')"
    )


@pytest.mark.parametrize("name", [*PAGES, *WIDE])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(open_page, name, width):
    page = open_page(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.long
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(open_page, name, scheme):
    page = open_page(name, 390 if scheme == "dark" else 1280, scheme)
    page.add_script_tag(content=files("axe_playwright_python").joinpath("axe.min.js").read_text())
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(result["passes"]) > 20
    assert [
        (v["id"], [n["html"][:160] for n in v["nodes"]][:5]) for v in result["violations"]
    ] == []
