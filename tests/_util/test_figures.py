"""The look of all figures: contrast as WCAG 2 defines it, which axe cannot judge in SVG."""

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from adgn._util.figures import DARK, LIGHT, figure_bytes, line_style, theme_css, themed_svg

LINES = [f"s{k}" for k in range(10)]


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_stand_out(colours):
    assert {"ground", "raised", "ink", "muted", "rule", "accent", "warn", *LINES} == set(colours)
    for name in ("ink", "muted", "accent", "warn"):
        assert contrast(colours[name], colours["ground"]) >= 4.5, name
    assert contrast(colours["ink"], colours["raised"]) >= 4.5
    for name in LINES:
        assert contrast(colours[name], colours["ground"]) >= 3, name
    assert len({colours[name] for name in LINES}) == 10


def test_a_colour_with_two_names_has_them_in_both_themes():
    """An SVG may use either name."""
    for colours, others in ((LIGHT, DARK), (DARK, LIGHT)):
        for one in colours:
            for other in colours:
                if colours[one] == colours[other]:
                    assert others[one] == others[other]


def test_the_style_sheet_has_all_colours_of_both_themes():
    light, dark = theme_css().split("@media (prefers-color-scheme: dark)")
    for css, colours in ((light, LIGHT), (dark, DARK)):
        assert dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", css)) == colours


def test_lines_differ_in_colour_marker_and_dashes():
    styles = [line_style(index) for index in range(10)]
    for what in ("color", "marker", "linestyle"):
        assert len({style[what] for style in styles}) == 10, what
    many = [str(line_style(index)) for index in range(100)]
    assert len(set(many)) == 100


def drawn(label="α < β & $c$"):
    figure = Figure(figsize=(2, 1), dpi=72)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    axes.plot([1, 2], [3, 4], clip_on=False, **line_style(3))
    axes.text(0.123456, 0.5, label, color=LIGHT["muted"], size=11, parse_math=False)
    axes.set_axis_off()
    figure.patch.set_visible(False)
    return figure


def test_the_same_figure_is_the_same_file():
    for kind in ("png", "svg"):
        assert figure_bytes(drawn(), kind) == figure_bytes(drawn(), kind)
    assert themed_svg(drawn(), "a", "t", "d") == themed_svg(drawn(), "a", "t", "d")


def test_an_svg_follows_the_theme_and_keeps_its_text():
    text = themed_svg(drawn("12.3456 #0a57a4 α < β & $c$"), "k", "a & b", "d")
    root = ElementTree.fromstring(text)
    (words,) = [t for t in root.iter() if t.tag.endswith("}text")]
    assert words.text == "12.3456 #0a57a4 α < β & $c$"
    assert words.get("style") == "fill: var(--muted)"
    (line,) = [p for p in root.iter() if p.tag.endswith("}path") and "fill: none" in p.get("style")]
    assert "stroke: var(--s3)" in line.get("style")
    assert not re.search(r'"[^">]*#[0-9a-f]{6}', text)
    assert root.get("role") == "img"
    assert root.get("viewBox") == "0 0 144 72"


def test_figures_of_one_page_share_no_ids():
    ids = [re.findall(r' id="([^"]*)"', themed_svg(drawn(), key, "t", "d")) for key in ("a", "b")]
    assert len(ids[0]) == len(ids[1]) == 3  # title, description, marker
    assert not set(ids[0]) & set(ids[1])
    for key, mine in zip(("a", "b"), ids, strict=True):
        used = re.findall(r'href="#([^"]*)"', themed_svg(drawn(), key, "t", "d"))
        assert set(used) == set(mine[2:])
