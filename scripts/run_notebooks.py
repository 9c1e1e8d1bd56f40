"""Runs the notebooks of the documentation, and writes their outputs and a page of each.

    python scripts/run_notebooks.py            # run all, write outputs, pages and figures
    python scripts/run_notebooks.py --pages    # write pages and figures of the outputs there are

A notebook is plain Python without magics: its cells run in one process, as in a kernel. What a cell
prints, the value of its last expression and the figures of pyplot that are open when it ends become
its outputs.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
IMAGES = ROOT / "docs" / "images" / "notebooks"
Notebook = dict[str, Any]


def notebooks() -> list[Path]:
    """All notebooks of the documentation."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Notebook:
    """A notebook, of the format 4 that Jupyter writes."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("nbformat") != 4:
        raise ValueError(f"{path} has nbformat={found.get('nbformat')}; save it as version 4")
    return dict(found)


def run(notebook: Notebook, name: str) -> Notebook:
    """The notebook with the outputs of its cells, run in an empty folder.

    Args:
        notebook: As `read` gives it; it is not changed.
        name: What tracebacks call it.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    cells, names, number = [], {"__name__": "__main__"}, 0
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                outputs = _run_cell("".join(cell["source"]), names, f"{name}, cell {number}")
                for output in outputs:
                    if output["output_type"] == "execute_result":
                        output["execution_count"] = number
                cell = {**cell, "execution_count": number, "outputs": outputs}
            cells.append(cell)
    return {**notebook, "cells": cells}


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run_cell(source: str, names: dict[str, Any], place: str) -> list[dict[str, Any]]:
    tree = ast.parse(source, place)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)
        value = None if last is None else eval(compile(last, place, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None and not source.rstrip().endswith(";"):  # as in Jupyter
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"output_type": "execute_result", "metadata": {}, "data": data})
    outputs += [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}}
        for picture in _pictures()
    ]
    return outputs


def _pictures() -> Iterator[str]:
    """The open figures of pyplot, which are closed."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        buffer = io.BytesIO()
        # Without the version of matplotlib in the file, equal figures are equal bytes.
        pyplot.figure(number).savefig(buffer, dpi=120, metadata={"Software": None})
        yield base64.b64encode(buffer.getvalue()).decode()
    pyplot.close("all")


def page(path: Path, notebook: Notebook) -> tuple[str, Mapping[str, bytes]]:
    """The notebook as a page of the site, and its figures by file name."""
    parts, figures = [], {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append(_block("".join(output["text"])))
                continue
            data = output["data"]
            if "image/png" in data:
                name = f"{path.stem}-{len(figures) + 1}.png"
                figures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![{cell['metadata']['alt']}](../images/notebooks/{name})")
            else:
                parts.append(_block("".join(data["text/plain"])))
    parts.append(
        f"This page is the notebook [{path.name}]({path.name}), run by "
        "`python scripts/run_notebooks.py`."
    )
    return "\n\n".join(parts) + "\n", figures


def _block(text: str) -> str:
    return "```text\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n```"


def write(path: Path, notebook: Notebook) -> None:
    """Writes the page of a notebook and its figures, in place of earlier ones."""
    text, figures = page(path, notebook)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for old in IMAGES.glob(f"{path.stem}-*.png"):
        old.unlink()
    for name, content in figures.items():
        (IMAGES / name).write_bytes(content)
    path.with_suffix(".md").write_text(text, encoding="utf-8")


def main() -> None:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", action="store_true", help="do not run them again")
    pages_only = parser.parse_args().pages
    for path in notebooks():
        notebook = read(path)
        if not pages_only:
            notebook = run(notebook, path.name)
            text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
            path.write_text(text, encoding="utf-8")
        write(path, notebook)
        print(f"{path.relative_to(ROOT)}: {len(notebook['cells'])} cells")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same numbers on machines with other cores
    main()
