"""What `make test` leaves out is there, and no guarantee of docs/internals/guarantees.md rests on it alone."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.tiers import EXTRA, is_extra

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
GUARANTEES = (ROOT / "docs" / "internals" / "guarantees.md").read_text()
PATH = re.compile(r"[\w./-]*/[\w./-]*\w|\btest_\w+\.py")
"""A file or folder below tests/, as texts of the list name it."""
PARAMETERS = re.compile(r"\[[^\]]*\]")
"""The parameters of another case of the same test."""
IN_PLACE = [(file, test, text) for file, names in EXTRA.items() for test, text in names.items()]


@functools.cache
def functions(file: str) -> set[str]:
    return {node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("file", EXTRA)
def test_each_name_in_the_list_is_a_test(file: str) -> None:
    assert {name.partition("[")[0] for name in EXTRA[file]} <= functions(file) | {"*"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`tests/([^`]*)`", GUARANTEES))))
def test_each_file_of_a_guarantee_is_there_and_keeps_tests(path: str) -> None:
    assert (TESTS / path).exists()
    if path.endswith(".py"):
        left = {name for name in functions(path) if name.startswith("test_")} - EXTRA.get(path, {}).keys()
        assert left
        assert "*" not in EXTRA.get(path, {})


def test_no_test_that_a_guarantee_names_is_left_out() -> None:
    left_out = {name.partition("[")[0] for names in EXTRA.values() for name in names if "[" not in name}
    assert not left_out & set(re.findall(r"`(test_\w+)`", GUARANTEES))


@pytest.mark.parametrize(("file", "test", "text"), IN_PLACE, ids=[f"{file}-{test}" for file, test, _ in IN_PLACE])
def test_what_stands_in_for_a_test_is_there_and_keeps_tests(file: str, test: str, text: str) -> None:
    assert text
    for path in PATH.findall(text):
        assert (TESTS / path).exists(), f"{path} is not below tests/"
        assert keeps_tests(path), f"make test leaves out all of {path}"
    if "[" in test:
        base = test.partition("[")[0]
        assert not [one for one in PARAMETERS.findall(text) if is_extra(file, base + one)], "left out, too"


@pytest.mark.parametrize(
    ("path", "keeps"),
    [
        ("kafka/run/test_zombies.py", True),
        ("kafka/chaos", True),
        ("spark/test_local.py", False),
        ("pure/decide/museum", False),
    ],
)
def test_a_path_keeps_tests(path: str, keeps: bool) -> None:
    assert keeps_tests(path) is keeps


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("kafka/run/test_x.py: a run; pure/decide", ["kafka/run/test_x.py", "pure/decide"]),
        ("pure/decide/test_a.py, test_b.py", ["pure/decide/test_a.py", "test_b.py"]),
        ("the run. airflow/page, browser/page.", ["airflow/page", "browser/page"]),
        ("[target-topic Read]; Spark Connect", []),
    ],
)
def test_paths_are_found_in_a_text(text: str, paths: list[str]) -> None:
    assert PATH.findall(text) == paths


@functools.cache
def keeps_tests(path: str) -> bool:
    """Whether `make test` runs a test of a file, or of some file of a folder, below tests/."""
    whole = TESTS / path
    files = whole.rglob("test_*.py") if whole.is_dir() else [whole]
    return any(_left(one.relative_to(TESTS).as_posix()) for one in files)


def _left(file: str) -> bool:
    return any(name.startswith("test_") and not is_extra(file, name) for name in functions(file))
