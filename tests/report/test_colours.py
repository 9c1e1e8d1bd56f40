"""Contrast of the page's colours, as WCAG 2 defines it; axe cannot judge text inside SVG."""

import re
from importlib.resources import files

import pytest

TEXT = files("adgn.report").joinpath("templates/colours.css").read_text()
LIGHT, DARK = TEXT.split("@media")


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("css", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_stand_out(css):
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", css))
    lines = {f"s{k}" for k in range(10)}
    assert set(colours) == {"ground", "raised", "ink", "muted", "rule", "accent", "warn"} | lines
    for name in ("ink", "muted", "accent", "warn"):
        assert contrast(colours[name], colours["ground"]) >= 4.5, name
    assert contrast(colours["ink"], colours["raised"]) >= 4.5
    for name in lines:
        assert contrast(colours[name], colours["ground"]) >= 3, name
    assert len({colours[name] for name in lines}) == 10
