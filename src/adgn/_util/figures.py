"""One look for every figure: colours, markers, dashes, and files with the same bytes each time."""

import io
import re
from html import escape
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Texts have a contrast of 4.5:1 to the ground of their theme, the lines s0 … s9 one of 3:1.
# Figures are drawn in the light colours; those of a page or an SVG file follow the reader's theme.
LIGHT = {
    **{"ground": "#fcfcfb", "raised": "#f3f4f3", "ink": "#1c2024", "muted": "#565e66"},
    **{"rule": "#d5d9dc", "accent": "#0a57a4", "warn": "#a3310f"},
    **{"s0": "#0a57a4", "s1": "#b8480a", "s2": "#0b7a55", "s3": "#a03a78", "s4": "#8a6400"},
    **{"s5": "#3f6f8f", "s6": "#1c2024", "s7": "#6a4fc0", "s8": "#8c2f39", "s9": "#4c6b12"},
}
DARK = {
    **{"ground": "#15181b", "raised": "#1e2226", "ink": "#e6e8ea", "muted": "#a6adb4"},
    **{"rule": "#3a4147", "accent": "#8dbcf2", "warn": "#f2a284"},
    **{"s0": "#8dbcf2", "s1": "#f0985c", "s2": "#5fcfa3", "s3": "#e79ac6", "s4": "#e3bd55"},
    **{"s5": "#9cc7de", "s6": "#e6e8ea", "s7": "#b9a6f5", "s8": "#ee9aa2", "s9": "#b6d470"},
}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", "h")
_DASHES = (
    *((), (6, 3), (2, 2.5), (8, 3, 2, 3), (1, 3)),
    *((10, 4), (4, 2, 1, 2, 1, 2), (3, 3), (12, 3), (5, 1.5)),
)
# Any: matplotlib's stubs type the keys as a literal of all settings.
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.scale_dashes": False,
    "lines.solid_capstyle": "butt",  # a bar ends where its deviation does
}


def line_style(index: int) -> dict[str, Any]:
    """What tells a figure's lines apart, also in grey: colour, marker and dashes.

    Example:
        >>> line_style(1)
        {'color': '#b8480a', 'marker': 's', 'linestyle': (0, (6, 3))}
    """
    count = len(_MARKERS)
    # Colours and markers repeat together; from there on the dashes differ.
    dashes = _DASHES[(index + index // count) % count]
    return {
        "color": LIGHT[f"s{index % count}"],
        "marker": _MARKERS[index % count],
        "linestyle": (0, dashes) if dashes else "-",
    }


def figure_bytes(figure: Figure, kind: Literal["png", "svg"], salt: str = "adgn") -> bytes:
    """A figure as a file: without a date, and with ids that depend on the salt and the content."""
    FigureCanvasAgg(figure)
    metadata = {"Software": None} if kind == "png" else {"Date": None}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()


def theme_css() -> str:
    """The colours as custom properties of CSS, light and dark, and what figures need besides."""
    light, dark = (
        " ".join(f"--{name}: {colour};" for name, colour in colours.items())
        for colours in (LIGHT, DARK)
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        ".chart { font: 11px system-ui, sans-serif; font-variant-numeric: tabular-nums; "
        "stroke-linejoin: round; overflow: visible; }\n"
    )


def themed_svg(figure: Figure, key: str, title: str, description: str, css: str = "") -> str:
    """A figure as an SVG that follows the theme: text stays text, colours are the page's.

    It is drawn in colours of `LIGHT`, without clipping and formulas, in points. `key` names it in
    a page; `css` is `theme_css()` for a file of its own, empty inside a page that has it.
    """
    with mpl.rc_context({"svg.fonttype": "none"}):
        text = figure_bytes(figure, "svg", salt=key).decode()
    drawn = re.sub(r"<[^>]*>", _plain_tag, text[text.index("<g ") : text.rindex("</svg>")])
    drawn = re.sub(r">\s+<", "><", drawn).strip()
    width, height = (f"{72 * inches:g}" for inches in figure.get_size_inches())
    name = escape(key)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'aria-labelledby="{name}-t {name}-d" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(description)}</desc>'
        f"{f'<style>{css}</style>' if css else ''}{drawn}</svg>"
    )


def _plain_tag(match: re.Match[str]) -> str:
    """A tag of matplotlib's SVG with the colours of the theme and without what is not needed."""
    tag = match[0]
    if tag.startswith(("<g", "</g", "<!--")):
        return ""
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r"(font-size: 11px|font-family: [^;\"]*|text-anchor: start)(; )?", "", tag)
    tag = tag.replace("xlink:href", "href")
    tag = re.sub(r"#[0-9a-f]{6}(?=[;\"])", lambda colour: _VARIABLES[colour[0]], tag)
    tag = re.sub(r"-?\d+\.\d+", lambda number: f"{round(float(number[0]), 1):g}", tag)
    return re.sub(r"\s+", " ", tag)


# The last name of a colour that has two.
_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
