"""The contract with kafka-python: what Ferry needs of it is listed, is there, and is what was reviewed."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import tomllib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import kafka
import pytest
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from packaging.requirements import Requirement

from ferry.errors import Refused
from ferry.kafka.connect import reliance
from ferry.kafka.connect.reliance import CALLED, REPLACED, TESTED, find
from tests.golden import Golden

CHECKOUT = Path(__file__).parents[3]
REVIEWED = tomllib.loads((Path(__file__).parent / "reliance.toml").read_text())["source"]
DOCUMENTED = {"kafka.admin", "kafka.errors", "kafka.future"}
MESSAGES = re.compile(r"kafka\.protocol\.(admin|consumer|consumer\.metadata|metadata|producer|sasl)")
"""Classes that kafka-python makes of Kafka's schemas; tests/pure/net/test_versions.py looks at them."""

PRIVATE = {"_build_transport"}
"""The private names of kafka-python that Ferry's classes define or use."""

FILES = sorted((CHECKOUT / "src" / "ferry").rglob("*.py")) + sorted((CHECKOUT / "plugins").rglob("*.py"))


def digest(name: str) -> str:
    """What is compared of the source of a part."""
    return hashlib.sha256(inspect.getsource(find(name)).encode()).hexdigest()[:16]


@pytest.mark.parametrize("part", [*REPLACED, *CALLED], ids=lambda part: part.name.removeprefix("kafka."))
def test_what_ferry_needs_is_what_was_reviewed(part: reliance.Part) -> None:
    found = digest(part.name)
    if found != REVIEWED.get(part.name):
        pytest.fail(
            f"kafka-python {kafka.__version__} changed {part.name}, which Ferry needs ({part.why}): read the change, "
            "compare it with src/ferry/kafka/connect, run the tests on brokers (make test), and then write "
            f'"{part.name}" = "{found}" into tests/pure/net/reliance.toml'
        )


def test_nothing_else_is_reviewed() -> None:
    assert [*REVIEWED] == [part.name for part in (*REPLACED, *CALLED)]


def test_the_installed_version_has_all_of_it() -> None:
    reliance.check_installed.__wrapped__()


def test_what_is_tested_is_in_the_range_and_what_may_differ_is_not() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    (wanted,) = (one for one in map(Requirement, project["dependencies"]) if one.name == "kafka-python")
    assert f"kafka-python=={TESTED}" in (CHECKOUT / "constraints.txt").read_text().splitlines()
    assert TESTED in wanted.specifier
    major, minor, patch = map(int, TESTED.split("."))
    assert f"{major}.{minor}.{patch + 1}" in wanted.specifier
    assert f"{major}.{minor + 1}.0" not in wanted.specifier


def test_every_import_of_what_is_not_documented_is_listed() -> None:
    listed = [part.name for part in (*REPLACED, *CALLED)]
    for file in FILES:
        text = file.read_text()
        if "kafka." not in text.replace("ferry.kafka.", "").replace("confluent_kafka.", ""):
            continue  # to parse all files takes seconds
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{one.name}" for one in node.names]
            else:
                continue
            for name in names:
                module = name.rpartition(".")[0]
                if not name.startswith("kafka.") or name in DOCUMENTED or module in DOCUMENTED:
                    continue
                if MESSAGES.fullmatch(module) or name == "kafka.net.sasl.SASL_MECHANISMS":
                    continue
                assert any(f"{one}.".startswith(f"{name}.") for one in listed), f"{name} in {file}"


def test_one_private_name_of_kafka_python_is_used() -> None:
    """Ruff (SLF) forbids private names of other objects; of base classes nothing else would show them."""
    used: dict[str, set[str]] = {}
    for file in FILES:
        text = file.read_text()
        if not re.search(r"^\s*(from|import) kafka\.", text, re.MULTILINE):
            continue
        names = set(re.findall(r"\b_[a-z]\w+\b", text))
        module = import_module(".".join(file.relative_to(CHECKOUT / "src").with_suffix("").parts))
        for one in vars(module).values():
            if inspect.isclass(one) and one.__module__ == module.__name__:
                theirs = set().union(*(private(base) for base in one.__mro__ if base.__module__.startswith("kafka.")))
                used[one.__qualname__] = theirs & names
    assert set().union(*used.values()) == PRIVATE, used
    assert used["ConnectionManager"] == PRIVATE


def private(kind: type) -> set[str]:
    """The private names that a class of kafka-python defines, or assigns in its methods."""
    try:
        assigned = set(re.findall(r"\bself\.(_[a-z]\w*)", inspect.getsource(kind)))
    except (OSError, TypeError):
        assigned = set()
    return assigned | {name for name in vars(kind) if name.startswith("_") and not name.startswith("__")}


def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(KafkaConnectionManager, "_build_transport")


def other_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait_read(self: NetworkSelector, fileobj: object) -> None: ...

    monkeypatch.setattr(NetworkSelector, "wait_read", wait_read)


def other_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliance, "decoded_records", partial(bytes, 3))


@pytest.mark.parametrize(
    "change", [renamed, other_parameters, other_decoder], ids=["renamed", "other parameters", "another decoder"]
)
def test_a_version_without_it_is_refused(
    change: Callable[[pytest.MonkeyPatch], Any], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    change(monkeypatch)
    with pytest.raises(Refused) as refused:
        reliance.check_installed.__wrapped__()
    golden(str(refused.value).replace(kafka.__version__, "VERSION").replace(TESTED, "VERSION"))
