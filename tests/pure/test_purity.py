"""Pure modules, and what they import, call nothing that reads this machine: the contract `pure` sees modules alone."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
READS = {"open", "input", "getenv", "read_text", "read_bytes", "read_json", "iterdir", "glob", "rglob"}
ASKS = {"exists", "stat", "lstat", "is_file", "is_dir", "resolve", "absolute", "cwd", "home", "expanduser"}
WRITES = {"print", "mkdir", "unlink", "touch", "rename", "write_text", "write_bytes", "write_json", "write_whole"}
CLOCKS = {"now", "today", "utcnow", "monotonic", "time_ns"}
CALLS = READS | ASKS | WRITES | CLOCKS
"""Names of calls by which Python and Ferry read files, folders, the environment and clocks, or write them."""


@cache
def module(name: str) -> Path | None:
    """The file of a module, or None if it is none of Ferry's."""
    place = SOURCE.joinpath(*name.split("."))
    found = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return found if found.exists() else None


def imported(tree: ast.AST) -> Iterable[Path]:
    """The files of Ferry that a module imports, also inside of functions."""
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        yield from filter(None, map(module, (name for name in names if name.startswith("ferry."))))


def calls(tree: ast.AST) -> set[str]:
    """The names of CALLS that are called, by themselves or of something."""
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {one.id for one in called if isinstance(one, ast.Name)}
    return CALLS & (names | {one.attr for one in called if isinstance(one, ast.Attribute)})


def pure() -> set[Path]:
    """The files of the contract `pure`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    names = next(one for one in contracts if one["id"] == "pure")["source_modules"]
    patterns = [name.replace(".", "/") for name in names]
    return {file for one in patterns for tail in (".py", "/**/*.py") for file in SOURCE.glob(f"{one}{tail}")}


def test_calls_that_read_this_machine_are_found() -> None:
    assert calls(ast.parse("def f(p):\n    return open(p), p.read_text(), datetime.now(UTC), p.name")) == {
        "open",
        "read_text",
        "now",
    }


def test_pure_modules_and_what_they_import_read_nothing_of_this_machine() -> None:
    seen: dict[Path, set[str]] = {}
    left = pure()
    assert len(left) > 200
    while left:
        file = left.pop()
        tree = ast.parse(file.read_text())
        seen[file] = calls(tree)
        left |= {other for other in imported(tree) if other not in seen}
    assert {str(file.relative_to(SOURCE)): found for file, found in seen.items() if found} == {}
