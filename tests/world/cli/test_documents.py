"""Documents name what is there: tests that prove, schemas that bind."""

from __future__ import annotations

import re
from pathlib import Path

from tests.program import SCHEMAS

ROOT = Path(__file__).resolve().parents[3]


def test_the_tests_of_guarantees_exist() -> None:
    text = (ROOT / "docs" / "internals" / "guarantees.md").read_text()
    paths = re.findall(r"`(tests/[\w/.]+)(?:::\w+)?`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    source = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    names = re.findall(r"[`:](test_\w+)`", text)
    assert paths
    assert names
    assert [name for name in names if f"def {name}(" not in source] == []


def test_every_json_answer_has_a_documented_schema() -> None:
    table = (SCHEMAS.parent / "json.md").read_text()
    assert set(re.findall(r"\(schemas/([a-z0-9-]+\.json)\)", table)) == {path.name for path in SCHEMAS.iterdir()}
