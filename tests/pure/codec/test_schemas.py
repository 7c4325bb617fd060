"""The schemas of docs/schemas: each is made from forms by tools/schemas.py, none is written by hand."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.program import SCHEMAS

TOOL = runpy.run_path(str(SCHEMAS.parents[1] / "tools" / "schemas.py"))
DOCUMENTS: Mapping[str, tuple[str, dict[str, Any]]] = TOOL["DOCUMENTS"]
RENDERED: Callable[[str, dict[str, Any]], str] = TOOL["rendered"]


def test_each_file_has_a_document() -> None:
    assert {path.stem for path in SCHEMAS.iterdir()} == DOCUMENTS.keys()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_is_what_its_document_describes(name: str) -> None:
    text = (SCHEMAS / f"{name}.json").read_text()
    assert text == RENDERED(*DOCUMENTS[name])
    Draft202012Validator.check_schema(json.loads(text))
