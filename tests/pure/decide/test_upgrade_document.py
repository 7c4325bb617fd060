"""docs/upgrade.md has each kind of record of another format than 1; ledgers that are kept have no other formats."""

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.ledger.kinds import KINDS

ROOT = Path(__file__).resolve().parents[3]
TOOL = runpy.run_path(str(ROOT / "tools" / "ledger_table.py"))
LEDGERS = sorted(
    [
        *(ROOT / "tests" / "pure" / "answers" / "kept").glob("*/ledger*.jsonl"),
        *Path(__file__).with_name("museum").glob("*/*.jsonl"),
    ]
)


def test_the_table_is_what_the_code_says() -> None:
    page = (ROOT / "docs" / "upgrade.md").read_text()
    assert page == TOOL["rendered"](page), "run python tools/ledger_table.py"


def formats(value: Any) -> Iterator[int]:
    """The format of a record's value: of a plan's seal that of the plan; none of lines without a format."""
    if isinstance(value, dict) and "v" in value:
        yield value.get("head", value)["v"]


@pytest.mark.parametrize("ledger", LEDGERS, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_kept_ledger_has_the_formats_of_the_table(ledger: Path) -> None:
    assert LEDGERS
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    found = {
        (row["key"][0], one) for row in rows if isinstance(row.get("key"), list) for one in formats(row.get("value"))
    }
    assert found
    assert [(kind, one) for kind, one in sorted(found) if one not in KINDS[kind].formats] == []
