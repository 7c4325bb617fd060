"""The links of the documents: none is broken, and the first use of a term on a page links to the glossary."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from tests.world.documents.commands import ROOT

TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "check_docs.py"))


@pytest.mark.parametrize("check", ["broken", "without_link"])
def test_no_document_is_complained_of(check: str) -> None:
    assert [found for document in TOOL["documents"]() for found in TOOL[check](document)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Each lane has one.", ["lane"]),
        ("Each [lane](glossary.md#lane) has one, and a lane stays.", []),
        ("A lane is a [lane](glossary.md#lane).", ["lane"]),
        ("See [the lane](backfill.md), then each lane.", ["lane"]),
        ("See [the lane](backfill.md).", []),
        ("# A lane\n\n| lane |\n|---|\n| a lane |\n\n`lane`\n\n   ```text\n   lane\n   ```\n", []),
        ("<!-- begin rows -->\n\nA lane.\n\n<!-- end rows -->", []),
        ("Run it. A scan-run runs.", []),
        ("Wait for the\nrun.", ["run"]),
        ("An offset\nmap of a [slice](docs/glossary.md#slot).", ["offset-map"]),
        ("Lanes, Flink checkpoints, deadlines.", ["lane"]),
    ],
)
def test_the_first_use_of_a_term_in_the_text_is_found(text: str, found: list[str]) -> None:
    assert [anchor for anchor, _, _ in TOOL["first_uses"](text)] == found


def test_each_term_is_one_of_the_glossary() -> None:
    rows = re.findall(r'<a id="([\w-]+)">', (ROOT / "docs" / "glossary.md").read_text())
    assert set(TOOL["TERMS"]) <= set(rows)
