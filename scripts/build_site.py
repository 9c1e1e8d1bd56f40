"""Builds the documentation into site/ and checks it: `make docs`.

python scripts/build_site.py                 # into site/

The pages are made by Zensical. Then the font of the formulas is added, with the characters they
use, and every page is checked (scripts/check_site.py): the build fails on what does not hold.
"""

import html
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import check_site

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
MATH = re.compile(r"<math.*?</math>", re.DOTALL)
FONT = "assets/fonts/math.woff"  # as docs/stylesheets/site.css has it


def build_pages() -> None:
    """Runs Zensical, which must not have anything to complain of."""
    # Its cache does not see when an extension of ours or a docstring elsewhere has changed.
    shutil.rmtree(SITE, ignore_errors=True)
    paths = [str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nzensical found problems")


def characters(site: Path) -> set[str]:
    """The characters of all formulas of a site."""
    found: set[str] = set()
    for page in site.rglob("*.html"):
        for formula in MATH.findall(page.read_text(encoding="utf-8")):
            found |= set(html.unescape(re.sub(r"<.*?>", "", formula)))
    return found


def write_font(site: Path) -> None:
    """Puts STIX Two Math, as ziamath carries it, on the site: the characters that it needs."""
    from fontTools import subset

    folder = find_spec("ziamath").submodule_search_locations[0]
    options = subset.Options(
        flavor="woff", layout_features=["*"], name_IDs=["*"], notdef_outline=True
    )
    font = subset.load_font(str(Path(folder) / "fonts" / "STIXTwoMath-Regular.ttf"), options)
    chosen = subset.Subsetter(options)
    # What browsers draw without it being written: roots, and letters of identifiers as italic ones.
    italic = {chr(code) for code in range(0x1D434, 0x1D468)} | {"ℎ", "√"}
    greek = {chr(code) for code in range(0x1D6FC, 0x1D71C)}
    missing = characters(site) - {chr(code) for code in font.getBestCmap()}
    if unknown := {char for char in missing if not char.isspace()}:
        sys.exit(f"the font of the formulas lacks {' '.join(sorted(unknown))}")
    chosen.populate(text="".join(sorted(characters(site) | italic | greek)))
    chosen.subset(font)
    path = site / FONT
    path.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(path), options)


def main() -> None:
    """Builds and checks."""
    for name in ("zensical", "mkdocstrings", "ziamath"):
        if find_spec(name) is None:
            sys.exit(f"{name} is not installed: pip install -e '.[docs]' (Python 3.11 or newer)")
    build_pages()
    write_font(SITE)
    wrong = [*check_site.not_in_navigation(), *check_site.problems(SITE)]
    if wrong:
        sys.exit("\n".join([*wrong, f"{len(wrong)} problems in {SITE}"]))


if __name__ == "__main__":
    main()
