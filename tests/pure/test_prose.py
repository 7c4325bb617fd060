"""Tests assert kinds and fields: how often each file asserts prose is in tests/prose.toml, and may only fall."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

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
COMPARING = frozenset(
    ("all", "any", "endswith", "escape", "fullmatch", "match", "search", "set", "sorted", "startswith")
)
"""Calls whose arguments are what a test expects. Those of all others are inputs, such as SQL, files and answers."""


Named = tuple[str, ast.expr]
"""A name, and an expression that it may be for."""


def words(text: str) -> int:
    """How many words a text has; names with dots, numbers and options are none."""
    return sum(1 for one in text.split() if WORD.fullmatch(one.strip(AROUND)))


def asserted(module: str) -> list[str]:
    """The assertions that have prose: `assert`, without its message, and `match=` of what is raised.

    Also each text with prose that they take from a column of `parametrize`, a variable or a constant of the module.
    """
    tree = ast.parse(module)
    nodes = list(ast.walk(tree))
    functions = [list(ast.walk(node)) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    constants = list(bound(tree.body))
    taken = {text for function in functions for text in taken_by(function, constants)}
    return [ast.unparse(node) for node in nodes if has_prose(node)] + [str(text.value) for text in taken]


def has_prose(node: ast.AST) -> bool:
    """Whether a statement or call is an assertion with prose."""
    match node:
        case ast.Assert(test=test):
            return any(words(text) > MOST_WORDS for text in texts(test))
        case ast.Call(func=ast.Attribute(attr="raises" | "warns"), keywords=keywords):
            return any(words(" ".join(texts(one.value))) > MOST_MATCHED for one in keywords if one.arg == "match")
    return False


def taken_by(function: Sequence[ast.AST], constants: Sequence[Named]) -> Iterator[ast.Constant]:
    """The texts with prose that assertions of a function take from its tables, its variables or the constants."""
    matches = [node.value for node in function if isinstance(node, ast.keyword) and node.arg == "match"]
    asserts = [node.test for node in function if isinstance(node, ast.Assert)]
    values = defaultdict(list)
    variables = list(bound(function))
    for name, value in (*constants, *variables, *cells(function, dict([*constants, *variables]))):
        values[name].append(value)
    for most, asked in ((MOST_MATCHED, matches), (MOST_WORDS, asserts)):
        nodes = [node for one in asked for node in expected(one)]
        while names := {node.id for node in nodes if isinstance(node, ast.Name)} & values.keys():
            nodes = [node for name in names for value in values.pop(name) for node in expected(value)]
            found = (node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
            yield from (node for node in found if words(str(node.value)) > most)


def bound(nodes: Sequence[ast.AST]) -> Iterator[Named]:
    """The names that statements assign to, each with the expression."""
    for one in nodes:
        match one:
            case ast.Assign(targets=[target], value=value):
                yield from ((name.id, value) for name in ast.walk(target) if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def cells(nodes: Sequence[ast.AST], tables: dict[str, ast.expr]) -> Iterator[Named]:
    """The columns of tables (`parametrize`) and loops, each with a cell; with the whole if it is not a literal."""
    for one in nodes:
        match one:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[columns, table]):
                names = ",".join(texts(columns)).replace(" ", "").split(",")
            case ast.For(target=target, iter=table):
                names = [name.id for name in ast.walk(target) if isinstance(name, ast.Name)]
            case _:
                continue
        table = tables.get(table.id, table) if isinstance(table, ast.Name) else table
        rows = getattr(table, "elts", None)
        if rows is None:
            yield from ((name, table) for name in names)
        for row in rows or []:
            several = row.args if isinstance(row, ast.Call) else getattr(row, "elts", [])
            yield from zip(names, several if len(names) > 1 else [row], strict=False)


def expected(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression without inputs: arguments of calls that do not compare, and the keys of a table."""
    yield node
    parts = ast.iter_child_nodes(node)
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name not in COMPARING:
            parts = iter([node.func])
        case ast.Dict(values=values):
            parts = iter(values)
    for part in parts:
        yield from expected(part)


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in an expression; one with values in it comes in parts."""
    return (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


TABLE_TEST = """
@pytest.mark.parametrize(('sql', 'said'), [('a query of many words', 'topic orders was not copied')], ids=['a b c d e'])
def test(sql, said):"""


@pytest.mark.parametrize(
    ("line", "is_prose"),
    [
        ("assert 'topic orders was not copied' in said", True),
        ("assert said == f'run {name} was not copied, but {other}'", False),
        ("assert found, 'this is only what a failure says'", False),
        ("assert 'ferry.run.max.records = 5 6 7' in lines", False),
        ("pytest.raises(Refused, match='topic .*orders')", True),
        ("pytest.raises(Refused, match=f'orders-{number} .* 17 ')", False),
        ("def test():\n wanted = 'topic orders was not copied'\n assert wanted in said", True),
        ("def test():\n wanted = parsed('topic orders was not copied')\n assert wanted == found", False),
        ("def test():\n for one in ('topic orders was not copied',):\n  assert said.startswith(one)", True),
        ("SAID = 'topic .*orders'\ndef test():\n with pytest.raises(Refused, match=SAID):\n  pass", True),
        ("SAID = 'topic orders was not copied'\ndef test():\n assert found", False),
        ("def test():\n for case, one in [('the first of all five cases', 1)]:\n  assert one == found, case", False),
        (f"{TABLE_TEST}\n assert said in run(sql)", True),
        (f"{TABLE_TEST}\n assert run(sql)", False),
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
