"""Tests use public names: how often each file uses private ones is in tests/private_names.toml, and may only fall."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.durations import TESTS

TABLE = TESTS / "private_names.toml"
OWN_FILE = "pure/test_private_names.py"
PRIVATE = re.compile(r"_[a-zA-Z]\w*")
MAY_HAVE = re.compile(r"[.,'\"]\s?_[a-zA-Z]|import \(?_|\n\s+_[a-zA-Z]\w*,")
DOTTED = re.compile(r"(\w+\.)+_[a-zA-Z]\w*")
TAKERS = ("setattr", "getattr", "delattr", "hasattr", "object")
"""The last name of what takes an attribute's name as a text: the functions, and those of `monkeypatch` and `patch`."""
PUBLIC = {"_replace", "_make", "_asdict", "_fields", "_exit", "_getframe"}
"""Documented names: those of named tuples, os._exit and sys._getframe."""
PUBLIC_OF = {"KafkaError"}
"""Classes whose constants are documented with a leading underscore."""
OWN = {"self", "cls", "super()"}
"""A class of a test's own may use its own parts, and those of the class that it is made from."""


def private_uses(text: str) -> list[str]:
    """What a module uses of the private parts of others: attributes, and names in texts that are patched."""
    return [found for node in nodes(text) for found in _of(node)]


@functools.cache
def nodes(text: str) -> list[ast.AST]:
    """All that a module consists of; parsed once for all tests."""
    return list(ast.walk(ast.parse(text)))


def _of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(value=value, attr=name) if PRIVATE.fullmatch(name) and name not in PUBLIC:
            if ast.unparse(value) not in OWN | PUBLIC_OF:
                yield ast.unparse(node)
        case ast.Constant(value=str(text)) if DOTTED.fullmatch(text) and "." in text:
            yield text
        case ast.Call(func=ast.Attribute(attr=taker) | ast.Name(id=taker), args=arguments) if taker in TAKERS:
            for one in arguments[1:2]:
                if isinstance(one, ast.Constant) and PRIVATE.fullmatch(str(one.value)) and one.value not in PUBLIC:
                    yield str(one.value)


@functools.cache
def modules() -> dict[str, str]:
    """The text of each file of tests that may have a private name, by its path below tests/."""
    texts = {str(file.relative_to(TESTS)): file.read_text() for file in TESTS.rglob("*.py")}
    return {file: text for file, text in texts.items() if MAY_HAVE.search(text)}


def private_imports(text: str) -> list[str]:
    """The private names that a module imports from others."""
    return [
        f"{node.module}.{one.name}"
        for node in nodes(text)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
        if PRIVATE.fullmatch(one.name)
    ]


@pytest.mark.parametrize(
    ("line", "uses"),
    [
        ("desk.watcher._seen", ["desk.watcher._seen"]),
        ("a._b._c", ["a._b._c", "a._b"]),
        ("self._seen; cls._made; super()._take()", []),
        ("self.other._seen", ["self.other._seen"]),
        ("one._replace(a=1); KafkaError._TIMED_OUT; os._exit(0); a.__class__", []),
        ("monkeypatch.setattr(module, '_LIMIT', 1)", ["_LIMIT"]),
        ("patch.object(module, '_LIMIT', 1)", ["_LIMIT"]),
        ("monkeypatch.setattr('ferry.module._LIMIT', 1)", ["ferry.module._LIMIT"]),
        ("print('_LIMIT', 'a_b.c')", []),
    ],
)
def test_a_private_name_is_found(line: str, uses: list[str]) -> None:
    assert private_uses(line) == uses


@pytest.mark.slow
def test_no_test_imports_a_private_name() -> None:
    assert private_imports("from a import b, _c, __d__") == ["a._c"]
    found = {file: private_imports(text) for file, text in modules().items()}
    assert {file: names for file, names in found.items() if names} == {}, "give them public names"


def test_private_names_become_fewer() -> None:
    """A file that is not in the table uses none; who uses fewer lowers the number."""
    found = Counter({file: len(private_uses(text)) for file, text in modules().items() if file != OWN_FILE})
    listed = Counter(tomllib.loads(TABLE.read_text()))
    assert found - listed == Counter(), "use public names, or make these public"
    assert listed - found == Counter(), f"lower the numbers in {TABLE.name}"
    assert list(listed) == sorted(listed)
    assert min(listed.values(), default=1) > 0
