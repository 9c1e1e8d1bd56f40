"""Formulas of the site: each becomes MathML as TeX would set it, or is an error."""

import re
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml")
from markdown import Markdown
from scripts.site_markdown import mathml

ROOT = Path(__file__).resolve().parents[2]
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^\s$](?:[^$\n]*[^\s$])?)\$", re.DOTALL)
SETTINGS = {"pymdownx.arithmatex": {"generic": True}}


def convert(text):
    extensions = ["pymdownx.arithmatex", "pymdownx.superfences", "scripts.site_markdown"]
    return Markdown(extensions=extensions, extension_configs=SETTINGS).convert(text)


@pytest.mark.parametrize(
    ("tex", "part"),
    [
        (r"\mathbf{W}", "<mi>𝐖</mi>"),
        (r"\mathbf{1}", "<mn>𝟏</mn>"),
        (r"\mathrm{tr}", '<mi mathvariant="normal">tr</mi>'),
        (r"\Phi", '<mi mathvariant="normal">Φ</mi>'),
        (r"\epsilon", "<mi>ϵ</mi>"),
        (r"\hat{d}", ">ˆ</mo>"),
        (r"\sqrt{x}", "<msqrt>"),
        (r"\arg\min_x f", ">arg<"),
    ],
)
def test_it_is_set_as_tex_sets_it(tex, part):
    assert part in mathml(tex)


@pytest.mark.parametrize("tex", [r"\nosuch{x}", r"\frac{1}{", r"\boldsymbol{\theta}", r"{x"])
def test_what_would_be_shown_wrong_is_an_error_that_quotes_it(tex):
    with pytest.raises(ValueError, match=re.escape(f"the formula {tex} ")):
        mathml(tex)


def test_pages_and_blocks():
    made = convert("The state $x < y$.\n\n$$\n\\sum_i a_i\n$$\n\nNot `$code$`, not 3 $ and 4 $.\n")
    assert made.count("<math") == 2
    assert 'display="block"' in made
    assert "<mo>&lt;</mo>" in made
    assert "<code>$code$</code>" in made
    assert "3 $ and 4 $" in made


def test_examples_in_text_become_code_and_fences_stay():
    made = convert("Text.\n\n>>> x[0][1]\n2\n\n```python\n>>> y\n\n>>> z\n```\n")
    assert made.count("<pre>") == 2
    assert "blockquote" not in made


def test_every_formula_of_pages_and_docstrings_is_one():
    pages = [path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")]
    modules = [path.read_text(encoding="utf-8") for path in ROOT.glob("src/**/*.py")]
    docstrings = [
        text for module in modules for text in re.findall(r'r"""(.*?)"""', module, re.DOTALL)
    ]
    found = {a or b for text in (*pages, *docstrings) for a, b in FORMULA.findall(text)}
    assert len(found) > 300
    for tex in found:
        assert mathml(tex).startswith("<math")
