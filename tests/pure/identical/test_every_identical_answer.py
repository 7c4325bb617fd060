"""Each request of a slot that copies with identical offsets meets error codes, lost and late answers.

Nothing is lost, doubled or shifted, no hole has a record, and what receipts claim is there. The next run copies the
rest. `tests/pure/scripted/table.py` says which cases run where.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from ferry.errors import FerryError
from ferry.protocol.names import ledger_topic
from tests.pure.identical.marking import AFTER_ALL_MS, Marking, later
from tests.pure.protocol.world import FLOW, TOPIC
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import at_work, place
from tests.pure.scripted.table import Case, Request, Table, each

pytestmark = pytest.mark.slow


def judge(_version: int, side: str, fault: Fault) -> None:
    """A slot's run with this fault, and a run without it when no marker of the first one can arrive any more."""
    print(f"{side}: {fault}")
    lane = Marking("rrcraracr", "crc")
    with at_work(lane), pytest.MonkeyPatch.context() as patched:
        attempt = lane.begin(lane.open("first"))
        (lane.target if side == "target" else lane.source).faults.append(fault)
        with suppress(FerryError):
            lane.copy(attempt, chunk_bytes=1)
        assert fault.happened, "the slot made no such request"
        ends = lane.ends()
        for partition in range(2):
            assert lane.same_up_to(partition) >= ends.get(place(partition), 0), "what receipts claim is there"
        lane.target.faults.clear()
        lane.source.faults.clear()
        with later(patched, AFTER_ALL_MS):
            assert lane.run("second").refusals == {}
        assert (lane.is_identical(), lane.until(0), lane.until(1)) == (True, 0, 0)


LEDGER = ledger_topic(FLOW.source)


def of_slot(
    api: str, *, side: str = "target", skip: int = 0, writes: bool = False, topic: str | None = None
) -> Request:
    """A request of the slot; `skip`: it has made that many of its kind before."""
    fault = Fault(api=api, skip=skip, topic=topic)
    return Request(judge=judge, fault=fault, side=side, writes=writes, versions=(2,))


TABLE = Table(
    {
        "records": of_slot("Produce", topic=TOPIC, skip=2, writes=True),
        "markers": of_slot("WriteTxnMarkers", skip=1, writes=True),
        "positions": of_slot("TxnOffsetCommit", skip=2, writes=True),
        "receipts": of_slot("Produce", topic=LEDGER, skip=4, writes=True),
        "commit": of_slot("EndTxn", skip=4, writes=True),
        "producer": of_slot("InitProducerId", writes=True),
        "later producer": of_slot("InitProducerId", skip=1, writes=True),
        "look at the ledger": of_slot("Fetch", topic=LEDGER, skip=3),
        "end of the ledger": of_slot("ListOffsets", topic=LEDGER, skip=1),
        "end of a partition": of_slot("ListOffsets", topic=TOPIC, skip=2),
        "epochs": of_slot("OffsetForLeaderEpoch", topic=TOPIC, skip=2),
        "settings": of_slot("DescribeConfigs"),
        "coordinator": of_slot("FindCoordinator"),
        "topics": of_slot("Metadata", topic=TOPIC, skip=1),
        "source": of_slot("Fetch", side="source", topic=TOPIC),
        "topics of the source": of_slot("Metadata", side="source", topic=TOPIC),
    }
)


@each(TABLE.coded)
def test_an_error_code(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.lost)
def test_no_answer(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.late)
def test_a_late_answer(case: Case) -> None:
    TABLE.judge(case)
