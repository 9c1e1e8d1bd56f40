"""Every command line of the documentation is one that its program takes; quick ones are run.

The tutorial and the page on extending are performed whole by tests of their own. A line of a kind
that is not known here fails, so that somebody decides how it is tested.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.data import example_tables
from adgn.experiments.api import plan_cells
from adgn.training import resolve_config
from adgn.training.config import parse_setting

tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = re.compile(r"^ *```(sh|bash|console|text)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
PROGRAMS = ("adgn", "python", "make", "pip", "optuna-dashboard")
MENTION = re.compile(r"(?<!`)`((?:adgn|python|make|pip) [^`]+)`(?!`)")
REFERENCE = ROOT / "docs" / "cli.md"  # made from the program: its lines are no calls


def block_commands(text):
    """The command lines in blocks: up to two spaces, where a word about them begins."""
    for kind, block in SHELL.findall(text):
        for line in block.splitlines():
            # Other text has outputs and trees of files too.
            if line.split(" ")[0] in PROGRAMS if kind == "text" else line.strip():
                told = re.split(r"\s{2,}|\s#\s", line)[0]
                yield from (part.strip() for part in told.split("&&"))


BLOCKS = sorted(
    {
        command
        for page in PAGES
        if page != REFERENCE
        for command in block_commands(page.read_text(encoding="utf-8"))
    }
)
MENTIONS = sorted(
    {
        " ".join(found.split())
        for page in PAGES
        for found in MENTION.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    }
)


def resolved(words):
    """The command that the words begin with, and the others."""
    command = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def check_adgn(words):
    command, rest = resolved(words)
    assert not getattr(command, "commands", None) or not rest, f"adgn has no command {rest[:1]}"
    context = command.make_context(words[0], [], resilient_parsing=True)
    context.resilient_parsing = False  # so that an option that is not there is an error
    values, _, _ = command.make_parser(context).parse_args(list(rest))
    settings = [parse_setting(text) for text in values.get("settings") or ()]
    if words[0] == "train" and values.get("task") and not values.get("plugin"):
        model = {"model": {"name": values["model"]}} if values.get("model") else {}
        resolve_config(values["task"], model, *settings)
    if words[0] == "reproduce" and values.get("experiments"):
        split = {key: value.split(",") if (value := values.get(key)) else None
                 for key in ("models", "columns")}  # fmt: skip
        plan_cells(values["experiments"], values.get("budget") or "laptop", **split)


def check_python(words):
    if words[0] == "-m":  # a module of this checkout
        words = [words[1].replace(".", "/") + ".py", *words[2:]]
    script = ROOT / words[0]
    text = script.read_text(encoding="utf-8")
    helper = (ROOT / "scripts" / "pages.py").read_text(encoding="utf-8")
    for option in [word for word in words if word.startswith("--")]:
        assert f'"{option}"' in text or ("print_or_write" in text and f'"{option}"' in helper)


def check_make(words):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE)


def check_pip(words):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert words[0] == "install"
    for word in words[1:]:
        if extra := re.fullmatch(r"adgn\[(\w+)\]", word):
            assert extra[1] in project["optional-dependencies"]
        else:
            assert word in (".", "optuna-dashboard")


CHECKS = {
    "adgn": check_adgn,
    "python": check_python,
    "make": check_make,
    "pip": check_pip,
    "torchrun": lambda words: check_adgn(words[words.index("adgn") + 1 :]),
    "optuna-dashboard": lambda words: None,  # Optuna's own program
}


def test_there_are_many():
    assert len(BLOCKS) > 50
    assert len(MENTIONS) > 50


@pytest.mark.parametrize("command", BLOCKS)
def test_the_program_takes_the_command(command):
    program, *words = shlex.split(command)
    CHECKS[program](words)


@pytest.mark.parametrize("command", MENTIONS)
def test_what_a_text_mentions_is_there(command):
    program, *words = shlex.split(command)
    if program != "adgn":
        CHECKS[program](words)
        return
    command, rest = resolved(words)
    if words[0] != "COMMAND":
        assert rest != words, f"adgn has no command {words[0]}"
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert {word for word in rest if word.startswith("--")} <= options | {"--help"}


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("adgn fti papers.csv", "no command"),
        ("adgn train sssp --modle gcn", "modle"),
        ("adgn train sssp --set model.depht=3", "depht"),
        ("adgn reproduce property --models gnc", "gnc"),
        ("python scripts/nowhere.py", "nowhere.py"),
        ("python -m benchmarks.nowhere", "nowhere.py"),
        ("python scripts/document_cli.py --wrote", "--wrote"),
        ("pip install 'adgn[rey]'", "rey"),
    ],
)
def test_a_wrong_command_is_found(command, wrong):
    program, *words = shlex.split(command)
    with pytest.raises(Exception, match=wrong):
        CHECKS[program](words)


def is_quick(words):
    """Whether a command takes seconds, given the tables that are shipped."""
    if words[0] in ("tasks", "models") or words[:2] in (["data", "list"], ["data", "info"]):
        return True
    if words[0] == "fit":  # the others are performed with the tutorial
        return words[1] == "papers.csv" and "--transform" in words
    flags = {"reproduce": "--list", "bench": "--show", "analyze": "--baseline"}
    return flags.get(words[0], "") in words or words[:2] == ["probe", "papers.csv"]


QUICK = [
    command
    for command in sorted({*BLOCKS, *(one for one in MENTIONS if one.startswith("adgn tasks "))})
    if command.startswith("adgn ")
    and is_quick(shlex.split(command)[1:])
    and not re.search(r"--plugin|\bTASK\b", command)
]


def test_some_are_run():
    assert len(QUICK) >= 8
    assert {command.split()[1] for command in QUICK} >= {"fit", "probe", "analyze", "data", "bench"}


@pytest.mark.long
@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_runs(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "data"))
    for path in example_tables():
        shutil.copy(path, tmp_path)
    (tmp_path / "results").mkdir()
    shutil.copy(ROOT / "results" / "bench.json", tmp_path / "results")
    words = shlex.split(command)[1:]
    if words[0] == "fit":  # fewer models and epochs; what it is compared with has these, too
        words += ["--set", "loop.max_epochs=2", "--model", "gcn"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert result.output.strip()


def test_search_spaces_and_settings_in_toml_are_toml():
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert len(blocks) >= 3
    assert all(tomllib.loads(block) for block in blocks)
