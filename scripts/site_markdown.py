r"""A Markdown extension of the site: formulas become MathML, and examples of docstrings code.

`pymdownx.arithmatex` finds the formulas, `$…$` and `$$…$$`, in pages and in docstrings; this makes
MathML of each, which browsers show without a script. A formula that does not become MathML
whole is an error: latex2mathml passes on commands that it does not know as text.

griffe hands on the examples of a section "Example:" as Markdown, which takes `>>>` for
quotations; here they become blocks of code.

>>> mathml(r"\mathrm{diag}(\mathbf{W}) \ge 0").count(">diag</mi>")
1
>>> mathml(r"\unknown{x}")
Traceback (most recent call last):
    ...
ValueError: the formula \unknown{x} has the command \unknown, which is not known
"""

import html
import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
INLINE, BLOCK = re.compile(r"\\\((.*)\\\)", re.DOTALL), re.compile(r"\\\[(.*)\\\]", re.DOTALL)
ELEMENT = "{" + NAMESPACE + "}"
SCRIPTS = {ELEMENT + tag for tag in ("msub", "msup", "msubsup", "munder", "mover", "munderover")}
ACCENTS = {"^": "\u02c6", "~": "\u02dc"}  # as accents these have a place of their own
# Browsers know bold letters by their code points only, and latex2mathml leaves digits to a style.
BOLD_DIGITS = {ord("0") + digit: 0x1D7CE + digit for digit in range(10)}
ElementTree.register_namespace("", NAMESPACE)


def mathml(tex: str, display: str = "inline") -> str:
    """A formula as a `<math>` element.

    Args:
        tex: The formula in LaTeX, without its delimiters.
        display: `inline` or `block`.
    """
    tex = " ".join(tex.split())
    if len(re.findall(r"(?<!\\){", tex)) != len(re.findall(r"(?<!\\)}", tex)):
        raise ValueError(f"the formula {tex} has braces that are not closed")
    try:
        made = convert(re.sub(r"\\arg\b", r"\\operatorname{arg}", tex), display=display)
        root = ElementTree.fromstring(made)
    except Exception as error:  # latex2mathml raises many kinds
        reason = str(error) or type(error).__name__
        raise ValueError(f"the formula {tex} is not LaTeX: {reason}") from error
    if unknown := re.search(r"\\\w+", "\n".join(root.itertext())):
        raise ValueError(f"the formula {tex} has the command {unknown[0]}, which is not known")
    for element in root.iter():
        _join_letters(element)
        _set_as_tex(element)
        style = element.get("mathvariant", "normal")
        if style != "normal":
            raise ValueError(
                f"the formula {tex} needs the style {style}, which browsers do not have"
            )
    return ElementTree.tostring(root, encoding="unicode")


def _join_letters(element: ElementTree.Element) -> None:
    """Makes one identifier of upright letters side by side, which had gaps between them."""
    word = None
    for child in list(element):
        upright = child.tag == ELEMENT + "mi" and child.get("mathvariant") == "normal"
        if not upright or not (child.text or "").isalpha():
            word = None
        elif word is None:
            word = child
        else:
            word.text = f"{word.text}{child.text}"
            element.remove(child)


def _set_as_tex(element: ElementTree.Element) -> None:
    """Greek capitals, accents, bold digits and the spaces of scripts as TeX has them."""
    text = element.text or ""
    if element.tag == ELEMENT + "mi" and len(text) == 1 and "Α" <= text <= "Ω":
        element.set("mathvariant", "normal")
    if element.tag == ELEMENT + "mn" and element.get("mathvariant") == "bold":
        element.text = text.translate(BOLD_DIGITS)
        del element.attrib["mathvariant"]
    if element.tag == ELEMENT + "mo" and text == "/":
        element.attrib.update(lspace="0", rspace="0")
    if element.tag == ELEMENT + "mover" and (element[1].text or "") in ACCENTS:
        element[1].text = ACCENTS[element[1].text]
        element[1].set("stretchy", "false")
        element.set("accent", "true")
    if element.tag in SCRIPTS:
        for script in element[1:]:
            for operator in script.iter(ELEMENT + "mo"):
                operator.attrib.update(lspace="0", rspace="0")


class ExampleProcessor(Preprocessor):
    """Puts examples that stand in the text into fences."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines with the fences.

        >>> ExampleProcessor().run(["Text.", ">>> 1 + 1", "2", "", "Text."])
        ['Text.', '', '```pycon', '>>> 1 + 1', '2', '```', '', '', 'Text.']
        """
        made: list[str] = []
        fenced = example = False
        for line in lines:
            if not example and line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and not example and line.startswith(">>> "):
                example = True
                made += ["", "```pycon"]
            elif example and not line.strip():
                example = False
                made += ["```", ""]
            made.append(line)
        return [*made, "```", ""] if example else made


class MathProcessor(Treeprocessor):
    """Replaces what arithmatex found by MathML."""

    def run(self, root: ElementTree.Element) -> None:
        """Goes through the tree of a page or docstring."""
        for element in root.iter():
            if "arithmatex" not in element.get("class", "").split():
                continue
            block = element.tag == "div"
            found = (BLOCK if block else INLINE).fullmatch((element.text or "").strip())
            if found is None:
                raise ValueError(f"{element.text!r} is not a formula of pymdownx.arithmatex")
            made = mathml(html.unescape(found[1]), "block" if block else "inline")
            element.text = AtomicString(self.md.htmlStash.store(made))
            if block:
                # A wide formula scrolls in its own box, by keyboard too.
                element.set("tabindex", "0")
                element.set("role", "group")
                element.set("aria-label", "formula")


class SiteExtension(Extension):
    """Both processors."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name
        """Registers them: examples before fences are looked for, formulas after they were found."""
        md.preprocessors.register(ExampleProcessor(md), "site_examples", 28)
        md.treeprocessors.register(MathProcessor(md), "site_math", 1)


def makeExtension(**settings: Any) -> SiteExtension:  # noqa: N802 - Markdown's name
    """What Markdown calls."""
    return SiteExtension(**settings)
