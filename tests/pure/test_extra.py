"""What `make test` leaves out is there, and no guarantee of the README rests on it alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.tiers import EXTRA

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
README = (ROOT / "README.md").read_text()


def functions(file: str) -> set[str]:
    return {node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("file", EXTRA)
def test_each_name_in_the_list_is_a_test(file: str) -> None:
    assert {name.partition("[")[0] for name in EXTRA[file]} <= functions(file) | {"*"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`tests/([^`]*)`", README))))
def test_each_file_of_a_guarantee_is_there_and_keeps_tests(path: str) -> None:
    assert (TESTS / path).exists()
    if path.endswith(".py"):
        left = {name for name in functions(path) if name.startswith("test_")} - EXTRA.get(path, {}).keys()
        assert left
        assert "*" not in EXTRA.get(path, {})


def test_no_test_that_a_guarantee_names_is_left_out() -> None:
    left_out = {name.partition("[")[0] for names in EXTRA.values() for name in names if "[" not in name}
    assert not left_out & set(re.findall(r"`(test_\w+)`", README))
