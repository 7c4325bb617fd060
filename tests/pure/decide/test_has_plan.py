"""Whether a run has sealed its plan, also where a summary has left it in the log."""

from __future__ import annotations

from dataclasses import replace

from ferry.ledger.codec import SEAL, encode
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.ledger.runs import has_plan
from ferry.model import Fate, Flow, LedgerRecord, OpenedRun, RunRecord
from ferry.model.run import LOCAL

RUN = RunRecord(
    flow=Flow(source="a", target="b"), lane="live", run="r2", slots=1, config_digest="", started_ms=1, origin=LOCAL
)
OPENED = OpenedRun(record=RUN, generation=7)


def seal(value: bytes | None, generation: int = 7) -> LedgerView:
    key = encode(["plan", "live", "r2", generation, SEAL])
    record = LedgerRecord(offset=9, key=key, value=value, fate=Fate.COMMITTED, producer_id=1)
    return replace(UNREAD, by_key={key.decode(): record})


def test_a_seal_counts_at_its_own_generation() -> None:
    assert has_plan(seal(b"{}"), OPENED)
    assert not has_plan(seal(b"{}", generation=3), OPENED)
    assert not has_plan(seal(None), OPENED)
    assert not has_plan(UNREAD, OPENED)


def test_a_seal_that_a_summary_left_in_the_log_counts() -> None:
    left = {encode(["plan", "live", "r2", 7, SEAL]).decode(): 9}
    assert has_plan(replace(UNREAD, rolled=replace(UNREAD.rolled, left=left)), OPENED)
