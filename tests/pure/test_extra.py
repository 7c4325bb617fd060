"""What `make test` leaves out is there, and is named as it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tiers import EXTRA

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("file", EXTRA)
def test_each_name_in_the_list_is_a_test(file: str) -> None:
    there = {node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert {name.partition("[")[0] for name in EXTRA[file]} <= there | {"*"}
