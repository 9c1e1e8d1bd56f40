"""The order of the rooms: none imports a later one, and no modules import each other in a circle.

Imports are read from the sources, also those inside functions, below `if TYPE_CHECKING:` and by
`import_module("…")`.
"""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "adgn"
ROOMS = (
    *("_util", "graph", "transforms", "nn", "data", "distributed", "training", "tasks"),
    *("selection", "analysis", "estimators", "experiments", "report", "bench", "cli"),
)
ABOVE_ALL = "adgn"  # the package itself: whatever is imported there is imported on first use
FILES = {"_version"}  # beside the rooms; each may import them


def module_of(path):
    """The dotted name of a source file."""
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SOURCES.rglob("*.py")}


def imports(tree, *, at_import_time=False):
    """Modules of the package that a source imports, or only those that it needs to be imported."""
    found = set()
    for node in walk(tree, at_import_time):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.update(a.value for a in node.args[:1] if isinstance(a, ast.Constant))
    return {name for name in found if name == "adgn" or name.startswith("adgn.")}


def walk(node, at_import_time):
    for child in ast.iter_child_nodes(node):
        if at_import_time:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                for other in child.orelse:
                    yield from walk(other, at_import_time)
                continue
        yield child
        yield from walk(child, at_import_time)


def room_of(module):
    return module.split(".")[1] if "." in module else ABOVE_ALL


TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def test_every_file_is_in_a_room():
    rooms = {room_of(name) for name in MODULES}
    assert set(ROOMS) <= rooms <= {ABOVE_ALL, *ROOMS, *FILES}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_none_that_comes_later(room):
    allowed = {*ROOMS[: ROOMS.index(room) + 1], *FILES}
    wrong = [
        f"{name} imports {imported}"
        for name, tree in TREES.items()
        if room_of(name) == room
        for imported in imports(tree)
        if room_of(imported) not in allowed
    ]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    needed = {
        name: {used for used in imports(tree, at_import_time=True) if used != name}
        for name, tree in TREES.items()
    }
    done, path = set(), []

    def visit(name):
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name in done or name not in needed:
            return
        path.append(name)
        for used in sorted(needed[name]):
            visit(used)
        done.add(path.pop())

    for name in sorted(needed):
        visit(name)


def test_hidden_imports_are_seen():
    source = """
if TYPE_CHECKING:
    from adgn.cli import app
def late():
    import adgn.bench.run
    import_module("adgn.report")
"""
    tree = ast.parse(source)
    assert imports(tree) == {"adgn.cli.app", "adgn.bench.run", "adgn.report"}
    assert imports(tree, at_import_time=True) == set()
