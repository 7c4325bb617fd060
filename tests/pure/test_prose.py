"""Tests assert kinds and fields: how often each file asserts prose is in tests/prose.toml, and may only fall."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.durations import TESTS

TABLE = TESTS / "prose.toml"
OWN_FILE = "pure/test_prose.py"
WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
AROUND = ".,:;()?!\"'\\^$`*|"
"""Punctuation, and what surrounds a word in a regular expression."""
MOST_WORDS = 4
"""Most words of a text in an assertion."""
MOST_MATCHED = 1
"""Most words that `match=` has."""


def words(text: str) -> int:
    """How many words a text has; names with dots, numbers and options are none."""
    return sum(1 for one in text.split() if WORD.fullmatch(one.strip(AROUND)))


def asserted(module: str) -> list[str]:
    """The assertions that have prose: `assert`, without its message, and `match=` of what is raised."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(module)) if has_prose(node)]


def has_prose(node: ast.AST) -> bool:
    """Whether a statement or call is an assertion with prose."""
    match node:
        case ast.Assert(test=test):
            return any(words(text) > MOST_WORDS for text in texts(test))
        case ast.Call(func=ast.Attribute(attr="raises" | "warns"), keywords=keywords):
            return any(words(" ".join(texts(one.value))) > MOST_MATCHED for one in keywords if one.arg == "match")
    return False


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in an expression; one with values in it comes in parts."""
    return (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


@pytest.mark.parametrize(
    ("line", "is_prose"),
    [
        ("assert 'topic orders was not copied' in said", True),
        ("assert said == f'run {name} was not copied, but {other}'", False),
        ("assert found, 'this is only what a failure says'", False),
        ("assert 'ferry.run.max.records = 5 6 7' in lines", False),
        ("pytest.raises(Refused, match='topic .*orders')", True),
        ("pytest.raises(Refused, match=f'orders-{number} .* 17 ')", False),
    ],
)
def test_prose_is_found(line: str, is_prose: bool) -> None:
    assert bool(asserted(line)) is is_prose


@pytest.mark.slow
def test_asserted_prose_becomes_less() -> None:
    """A file that is not in the table has none; who asserts less lowers the number."""
    modules = {str(file.relative_to(TESTS)): file.read_text() for file in TESTS.rglob("*.py")}
    found = Counter({file: len(asserted(text)) for file, text in modules.items() if file != OWN_FILE})
    listed = Counter(tomllib.loads(TABLE.read_text()))
    assert found - listed == Counter(), "assert kinds and fields, and give prose to golden"
    assert listed - found == Counter(), f"lower the numbers in {TABLE.name}"
    assert list(listed) == sorted(listed)
    assert min(listed.values(), default=1) > 0
