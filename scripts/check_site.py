"""Checks the built documentation: links, anchors, references, formulas, and that it needs no host.

python scripts/check_site.py site            # print what is wrong; end with code 1 if anything is
"""

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import tomllib

ROOT = Path(__file__).resolve().parent.parent
CODE = {"code", "pre", "script", "style", "math", "title"}
RESOURCES = {
    *(("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")),
    *(("video", "src"), ("audio", "src"), ("object", "data"), ("embed", "src"), ("use", "href")),
}
VOID = {"img", "br", "hr", "input", "link", "meta", "source", "wbr", "col", "area", "embed"}
RAW = {
    "a formula that was not rendered": re.compile(
        r"\$[^$\n]+\$|\\[(\[][^)\]]*\\[)\]]|\\[a-zA-Z]{2,}"
    ),
    "a reference to nothing": re.compile(r"\[[^][]+\]\[[^][]*\]"),
    "Markdown that was not rendered": re.compile(r"\]\([^)]*\)|^:::|^\| ?---", re.MULTILINE),
}
CSS_URL = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')]+)""")


@dataclass
class Page(HTMLParser):
    """What a page has and asks for."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._text: list[str] = []
        self._formula: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes ids, links and what is loaded."""
        if tag not in VOID:
            self._open.append(tag)
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(str(values["id"]))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        self.resources += [str(v) for name, v in attrs if (tag, name) in RESOURCES and v]
        if tag == "img" and "alt" not in values:
            self.problems.append(f"an image without a description: {values.get('src')}")
        if tag == "autoref":
            self.problems.append(f"a reference to nothing: {values.get('identifier')}")
        if tag == "math":
            self._formula = []
        if tag == "merror":
            self.problems.append("a formula with an error")

    def handle_endtag(self, tag: str) -> None:
        """Closes an element."""
        if tag == "math":
            if not "".join(self._formula or []).strip():
                self.problems.append("an empty formula")
            self._formula = None
        while tag in self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Notes text that is not code."""
        if self._formula is not None:
            self._formula.append(data)
        # Code ends a piece of text; within it `x[i][j]` is no reference.
        self._text.append("\0" if CODE & set(self._open) else data)

    def close(self) -> None:
        """Looks at the text for what should not be there."""
        super().close()
        text = "".join(self._text)
        for what, pattern in RAW.items():
            self.problems += [f"{what}: {found!r}" for found in pattern.findall(text)]


def read_pages(site: Path) -> dict[Path, Page]:
    """All pages of a built site."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        page.close()
        pages[path.resolve()] = page
    return pages


def problems(site: Path) -> list[str]:
    """What is wrong with a site, one line each."""
    site = site.resolve()
    pages = read_pages(site)
    if not pages:
        return [f"{site} has no pages"]
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: {problem}" for problem in page.problems]
        if name.name == "404.html":  # its links start at the host's root, wherever it is shown
            continue
        found += [f"{name}: {wrong}" for link in page.links if (wrong := _link(link, path, pages))]
        for resource in page.resources:
            if urlsplit(resource).netloc:
                found.append(f"{name}: loads {resource} from another host")
            elif not resource.startswith(("data:", "#")) and not _file(resource, path).exists():
                found.append(f"{name}: {resource} is not there")
    for style in sorted(site.rglob("*.css")):
        text = style.read_text(encoding="utf-8")
        found += [f"{style.relative_to(site)}: loads {url}" for url in CSS_URL.findall(text)]
    return found


def not_in_navigation(root: Path = ROOT) -> list[str]:
    """Pages that no menu leads to."""
    config = tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))
    listed = set(_leaves(config["project"]["nav"]))
    there = {path.relative_to(root / "docs").as_posix() for path in root.glob("docs/**/*.md")}
    return [
        *(f"docs/{page} is not in the nav of zensical.toml" for page in sorted(there - listed)),
        *(f"zensical.toml lists {page}, which is not there" for page in sorted(listed - there)),
    ]


def _leaves(items: object) -> list[str]:
    if isinstance(items, str):
        return [items]
    values = items.values() if isinstance(items, dict) else items
    return [leaf for item in values for leaf in _leaves(item)]  # type: ignore[attr-defined]


def _file(link: str, page: Path) -> Path:
    return (page.parent / unquote(urlsplit(link).path)).resolve()


def _link(link: str, page: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = _file(link, page) if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"the link {link} leads nowhere"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].ids:
        return f"the link {link} leads to a place that is not there"
    return None


def main() -> None:
    """Prints what is wrong."""
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    wrong = [*not_in_navigation(), *problems(site)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(f"{len(wrong)} problems in {site}")


if __name__ == "__main__":
    main()
