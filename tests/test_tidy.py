"""A test of the code base itself: its sizes, words, texts and shape (the manners that no linter knows)."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest
from minutewheel.dispatcher.shard import TRANSITIONS

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FUNCTION_LINES = 60
MODULE_LINES = 400

ENTRIES = {
    *("minutewheel", "minutewheel.console.cli", "minutewheel.testing", "minutewheel.deploy.services.__main__"),
}
"""What is started, or imported by users: no module of ours needs to import it."""

UNTESTED = {
    "broker.command": "plain values; what they are made from is tested in test_submission",
    "broker.wire": "plain values",
    "dispatcher.effects": "plain values",
    "dispatcher.clock": "asks the operating system and nothing else",
    "doctor.cassandra": "asked for real in test_examination",
    "doctor.finding": "plain values",
    "doctor.kafka": "asked for real in test_examination",
    "doctor.zookeeper": "asked for real in test_examination",
    "loadtest.report": "plain values",
    "broker.sqlite_file": "tested through the logs and the broker that stand on it",
}
"""Modules without a test file of their own. `__init__`, `errors` and `port` have no behaviour anywhere."""

TWINS = {
    "store.port.Store": "store.sqlite.SqliteStore",
    "store.port.Catalog": "store.sqlite.SqliteStore",
    "store.port.Ledger": "store.sqlite_ledger.SqliteLedger",
    "broker.port.Broker": "broker.sqlite.SqliteBroker",
    "broker.port.GroupMember": "broker.sqlite_group.SqliteMember",
    "coordinator.port.Roster": "coordinator.local.LocalCoordinator",
    "coordinator.port.Coordinator": "coordinator.local.LocalCoordinator",
    "coordinator.port.Membership": "coordinator.local.LocalMembership",
}

REFUSED_WORDS = {
    "job": "task",
    "event": "task, or what it is",
    "timer": "task",
    "window": "bucket (a minute), or span",
    "entry": "filing",
    "generation": "filing, or incarnation",
    "lock": "lease",
    "epoch": "fence",
    "leader": "owner",
    "node": "member",
    "ack": "outcome, or acknowledged",
    "dedup": "ledger",
    "inbox": "ledger",
    "latency": "lateness",
    "misfired": "misfire",
    "util": "the name of what it does",
    "manager": "the name of what it does",
}
"""Words that have another name here (docs/glossary.md), in singular. Checked in the names that we give."""

WORDS_EXCUSED = {
    ("store.cassandra_reactor", "create_timer"): "so the driver calls it",
    ("broker.media", "is_binary_event"): "CloudEvents calls its messages so",
    ("broker.due_time", "EPOCH_DAY"): "the Unix epoch",
    ("console.logs", "event"): "structlog calls a log line so",
    ("loadtest.wheel", "generation"): "the garbage collector has them",
}

HEAVY = {
    *("cassandra", "confluent_kafka", "kazoo"),
    *("litestar", "fastapi", "starlette", "uvicorn", "flask", "django", "aiohttp"),
    *("matplotlib", "plotly", "numpy", "pandas"),
    *("typer", "rich", "sqlite3", "uvloop", "pydantic"),
}
"""What `import minutewheel` must not load: drivers, web frameworks, plotting; and what only the command line needs."""

WAITERS = {"asyncio", "threading", "time", "os", "random", "concurrent", "socket", "subprocess", "sqlite3", "select"}


class Module:
    """One module of the package, read and not imported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.relative_to(ROOT).as_posix()
        self.name = ".".join(("minutewheel", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        self.short = self.name.removeprefix("minutewheel.")
        self.package = self.name if path.name == "__init__.py" else self.name.rpartition(".")[0]
        self.text = path.read_text()
        self.tree = ast.parse(self.text)

    def imports(self) -> Iterator[str]:
        """The full names of what it imports anywhere in it: modules, and names in them."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = self.package.split(".")[: len(self.package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *filter(None, [node.module])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)

    def given_names(self) -> Iterator[str]:
        """The names that it gives: modules, classes, functions, arguments, variables, fields."""
        yield self.path.stem
        for node in ast.walk(self.tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield name
                case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name


@cache
def modules() -> tuple[Module, ...]:
    packages = PROJECT["tool"]["setuptools"]["packages"]
    folders = [ROOT.joinpath(*name.split(".")[1:]) for name in packages]
    return tuple(Module(path) for folder in folders for path in sorted(folder.glob("*.py")))


@cache
def pure_names() -> frozenset[str]:
    """The one list of pure modules is the import contract's."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (pure,) = [one for one in contracts if one["name"] == "pure modules import nothing that waits"]
    listed = set(pure["source_modules"])
    return frozenset(m.name for m in modules() if m.name in listed or m.package in listed)


def words(name: str) -> set[str]:
    """A name's words, in lower case and singular: `minute_entries`, `EntryList` and `ENTRIES` all hold "entry"."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    lower = {word.lower() for word in found}
    return lower | {word.removesuffix("s") for word in lower} | {re.sub("ies$", "y", word) for word in lower}


# Sizes.


def test_no_function_is_longer_than_sixty_lines() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [(m, node) for m in modules() for node in ast.walk(m.tree) if isinstance(node, kinds)]
    lengths = {f"{m.file}: {node.name}": (node.end_lineno or 0) - node.lineno + 1 for m, node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    lengths = {m.file: len(m.text.splitlines()) for m in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


# Texts.


def test_every_module_opens_with_a_docstring() -> None:
    assert [m.file for m in modules() if not (ast.get_docstring(m.tree) or "").strip()] == []


def test_no_mark_of_unfinished_work_is_left() -> None:
    marks = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
    files = [ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    files += [*ROOT.glob("tests/**/*.py"), *ROOT.glob("examples/**/*.py"), *(m.path for m in modules())]
    assert [str(file.relative_to(ROOT)) for file in files if marks.search(file.read_text())] == []


def test_no_refused_word_is_a_name() -> None:
    found = {
        (m.short, name, word, REFUSED_WORDS[word])
        for m in modules()
        for name in m.given_names()
        for word in words(name) & REFUSED_WORDS.keys()
        if (m.short, name) not in WORDS_EXCUSED
    }
    assert found == set()


def test_each_excuse_is_still_needed() -> None:
    given = {(m.short, name) for m in modules() for name in m.given_names()}
    assert WORDS_EXCUSED.keys() - given == set()
    assert UNTESTED.keys() - {m.short for m in modules()} == set()
    assert [name for name in UNTESTED if has_test(name)] == []


def test_architecture_names_every_module_and_no_missing_one() -> None:
    named = set(re.findall(r"[\w/]+\.py\b", (ROOT / "ARCHITECTURE.md").read_text()))
    ours = {m.file for m in modules() if m.path.name != "__init__.py"}
    assert sorted(ours - named) == []
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


def test_architecture_draws_the_life_of_a_reign_as_the_table_has_it() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    picture = text[text.index("stateDiagram-v2") :].partition("```")[0]
    drawn = set(re.findall(r"^ +(\w+) --> (\w+): (.+)$", picture, re.MULTILINE))
    table = {(life.replace(" ", "_"), to.replace(" ", "_"), what) for (life, what), to in TRANSITIONS.items()}
    assert drawn == table


# Shape.


def test_init_modules_are_a_docstring_re_exports_and_all() -> None:
    for m in modules():
        if m.path.name == "__init__.py":
            others = [node for node in m.tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
            assert [ast.unparse(node).partition(" =")[0] for node in others] in ([], ["__all__"]), m.file


def has_test(short: str) -> bool:
    return ROOT.joinpath("tests", *short.split(".")[:-1], f"test_{short.rpartition('.')[2]}.py").is_file()


def test_each_module_has_its_test_file() -> None:
    ours = [m for m in modules() if m.path.stem not in {"__init__", "errors", "port"}]
    assert [m.short for m in ours if m.short not in UNTESTED and not has_test(m.short)] == []


def test_no_module_is_dead() -> None:
    imported = {name for m in modules() for name in m.imports() if name != m.name}
    needed = imported | ENTRIES
    packages = set(PROJECT["tool"]["setuptools"]["packages"])
    assert [m.name for m in modules() if m.name not in needed | packages] == []


def test_each_port_has_its_embedded_twin_and_its_conformance_suite() -> None:
    """That the verbs are there with the same arguments; that they do the same, the conformance suites show."""
    ports = [m for m in modules() if m.path.name == "port.py"]
    protocols = {
        f"{m.short}.{name}": cls
        for m in ports
        for name, cls in inspect.getmembers(importlib.import_module(m.name), inspect.isclass)
        if Protocol in cls.__mro__ and cls.__module__ == m.name
    }
    assert protocols.keys() == TWINS.keys()
    for name, protocol in protocols.items():
        module, _, twin_name = TWINS[name].rpartition(".")
        twin = getattr(importlib.import_module(f"minutewheel.{module}"), twin_name)
        for verb, wanted in inspect.getmembers(protocol, inspect.isfunction):
            if verb.startswith("_"):
                continue
            has = inspect.signature(getattr(twin, verb)).parameters
            assert list(has) == list(inspect.signature(wanted).parameters), f"{name}.{verb}"
    suites = {path.stem for path in ROOT.glob("tests/conformance/test_*.py")}
    assert {f"test_{m.package.rpartition('.')[2]}" for m in ports} | {"test_ledger"} <= suites


def test_the_link_for_type_checkers_is_there() -> None:
    link = ROOT / "typings" / "minutewheel"
    assert link.is_symlink()
    assert link.readlink() == Path("..")
    assert link.resolve() == ROOT


# Purity.


def test_pure_modules_import_nothing_that_waits() -> None:
    found = {
        (m.name, name)
        for m in modules()
        if m.name in pure_names()
        for name in m.imports()
        if name.partition(".")[0] in WAITERS | HEAVY
    }
    assert found == set()


def test_each_listed_module_is_there_and_all_of_the_heart_but_the_shell_is_listed() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    listed = {name for one in contracts for name in one.get("source_modules", ())}
    assert listed - {m.name for m in modules()} == set()
    heart = {m.name for m in modules() if m.package == "minutewheel.dispatcher" and m.path.stem != "__init__"}
    shell = {f"minutewheel.dispatcher.{name}" for name in ("clock", "dispatcher", "leasing", "perform", "rejoining")}
    assert heart - pure_names() == shell


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import minutewheel; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/")
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "minutewheel" in loaded
    assert loaded & HEAVY == set()
