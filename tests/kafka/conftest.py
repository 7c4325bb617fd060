"""What holds in each test with brokers: what decides where a lane continues is in a driver's transaction."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import ferry
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.codec import decode_key
from ferry.model import Record

DECIDED = {
    "accounted",
    "acl",
    "adopted",
    "began",
    "claim",
    "deleted",
    "dropped",
    "era",
    "fenced",
    "gap",
    "last",
    "plan",
    "producer",
    "receipt",
    "seen",
    "share",
    "start",
    "unit",
    "window",
}
"""Kinds of ledger records by which a later run decides what it copies (ADR 42)."""

SOURCE = Path(ferry.__file__).parent
REBUILD = SOURCE / "features" / "archive" / "acts" / "rebuild.py"
"""It writes an export to a ledger that no run can open until it is ready."""


@pytest.fixture(autouse=True)
def decided_in_transactions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which Ferry itself appends a decision outside of a transaction; tests may do so on purpose."""
    found: set[tuple[str, str]] = set()

    def watched(name: str) -> None:
        real = getattr(LedgerTopic, name)

        async def append(ledger: LedgerTopic, records: Sequence[Record], **more: Any) -> Any:
            caller = Path(sys._getframe(1).f_code.co_filename)
            if SOURCE in caller.parents and caller != REBUILD:
                keys = filter(None, (decode_key(one.key) for one in records))  # the sink's own ledger has others
                # That a slot may have sent something to a partition, from which first offset, is no decision: it holds
                # from any run.
                found.update((str(key[0]), caller.name) for key in keys if key[0] != "producer" or len(key) < 4)
            return await real(ledger, records, **more)

        monkeypatch.setattr(LedgerTopic, name, append)

    watched("append")
    watched("append_each")
    yield
    assert {(kind, caller) for kind, caller in found if kind in DECIDED} == set()
