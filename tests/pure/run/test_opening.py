"""Opening a run reads each record of the ledger once: what was known is read on from, to records of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import pytest

from ferry.errors import Retryable
from ferry.ledger.ledger import UNREAD, LedgerView, fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.run_codec import run_record
from ferry.ledger.runs import flows_to_fence, slots_to_fence
from ferry.model import Fate, Flow, LedgerRecord, Plan, Record
from ferry.protocol.driver import Driver, fence_and_seal
from tests.golden import Golden
from tests.pure.decide.values import LANE, PLAN, RECEIPT, lying, run_of


@dataclass
class Lane:
    """A ledger in memory; fencing decides what was undecided. Notes what each read hands over."""

    records: list[LedgerRecord]
    handed: Counter[int] = field(default_factory=Counter)
    reads: list[tuple[int | None, int | None]] = field(default_factory=list)
    fenced: int = 0
    flows: frozenset[Flow] = frozenset()

    async def append(self, records: Sequence[Record]) -> int:
        self.records += lying(*records, first=len(self.records))
        return len(self.records) - 1

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        assert end is not None, "what decides a plan is read up to a record of the run's own"
        self.reads.append((start, end))
        found = self.records[start or 0 : end]
        self.handed.update(record.offset for record in found)
        return found, end

    async def append_in(self, records: Sequence[Record]) -> frozenset[int]:
        last = await self.append(records)
        return frozenset(range(last + 1 - len(records), last + 1))

    async def initialise(self) -> None:
        """Nothing of the driver's is open."""

    async def commit(self) -> None:
        """Counts at once."""

    async def leave(self) -> None:
        """Nothing is open."""

    async def back_off(self, failures: int) -> None:
        raise AssertionError(f"failure {failures}")

    async def settle(self, offset: int) -> None:
        assert offset < len(self.records)

    async def fence(self, slots: int, flows: Collection[Flow]) -> None:
        self.fenced = slots
        self.flows = frozenset(flows)
        self.records = [
            LedgerRecord(
                offset=record.offset,
                key=record.key,
                value=record.value,
                fate=Fate.ABORTED if record.fate is Fate.OPEN else record.fate,
                producer_id=record.producer_id,
            )
            for record in self.records
        ]


def opened(lane: Lane, known: LedgerView) -> LedgerView:
    """Open a run; the view that its plan is decided on."""
    seen: list[LedgerView] = []

    async def decide(driver: Driver) -> Plan:
        seen.append(driver.view)
        return PLAN

    asyncio.run(fence_and_seal(lane, run_of("newer", slots=1), decide, known))
    return seen[0]


def older_runs(last: Fate = Fate.COMMITTED) -> list[LedgerRecord]:
    """A run with three slots, and a receipt of it."""
    receipts = [(record, last) for record in receipt_records(RECEIPT)]
    return lying(run_record(run_of("older", slots=3)), *receipts)


@pytest.mark.parametrize("read_before", [0, 1, 3])
def test_every_record_is_read_once_wherever_the_reading_before_ended(read_before: int) -> None:
    lane = Lane(older_runs())
    known = fold(lane.records[:read_before], read_before)
    view = opened(lane, known)
    assert lane.fenced == 3
    assert view == fold(lane.records[: view.end], view.end)
    assert view.end == 5, "its own run record and the one that its slots are fenced"
    assert lane.handed == Counter(range(read_before, len(lane.records)))
    assert lane.reads == [(read_before or None, 4), (4, 5), (5, len(lane.records))]


def test_what_was_undecided_is_read_again_once_its_writer_is_fenced() -> None:
    lane = Lane(older_runs(Fate.OPEN))
    view = opened(lane, fold(lane.records, len(lane.records)))
    assert view == fold(lane.records[: view.end], view.end)
    assert not view.open
    assert lane.reads == [(1, 4), (1, 5), (5, len(lane.records))]


def test_the_writers_of_every_name_of_the_flow_are_fenced() -> None:
    renamed = replace(run_of("renamed", slots=2), flow=Flow(source="a", target="c"))
    lane = Lane(lying(run_record(renamed)))
    opened(lane, UNREAD)
    assert lane.fenced == 2
    assert lane.flows == {Flow(source="a", target="c"), Flow(source="a", target="b")}
    # The run record with the other name is compacted away by now.
    lane.records = [record for record in lane.records if record.offset > 0]
    kept = fold(lane.records, lane.records[-1].offset + 1)
    assert flows_to_fence(kept, LANE) == lane.flows


def test_a_view_is_as_old_as_its_first_reading_however_late_it_is_read_on() -> None:
    """What was taken back, and its tombstone dropped by compaction, while the driver slept is still in its view."""
    drivers: list[Driver] = []

    async def decide(driver: Driver) -> Plan:
        drivers.append(driver)
        return PLAN

    record = replace(run_of("slow", slots=1), started_ms=1_000)
    asyncio.run(fence_and_seal(Lane(older_runs()), record, decide, UNREAD))
    assert drivers[0].read_ms == 1_000, "the run's record is made before its driver reads"


def test_a_stale_reading_before_takes_nothing_away() -> None:
    fresh, stale = Lane(older_runs()), Lane(older_runs())
    assert opened(fresh, UNREAD) == opened(stale, fold(stale.records[:1], 1))
    assert slots_to_fence(opened(stale, UNREAD), LANE) == 3


def test_a_ledger_that_is_shorter_than_what_was_read_was_created_again(golden: Golden) -> None:
    lane = Lane([])
    with pytest.raises(Retryable) as caught:
        opened(lane, fold(older_runs(), 3))
    golden(caught.value)
    assert lane.fenced == 0
