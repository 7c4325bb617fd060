"""10,000 partitions with a long past, and the most memory that it takes to plan them, and to read their ledger.

A program: `python -m tests.pure.decide.many THING` does one thing, and prints MB.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ferry.clock import wall_ms
from ferry.lane.summaries import open_ledger, write_summary
from ferry.ledger.block_index import NO_LINKS, LedgerDigest, grown
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.receipts import last_receipts
from ferry.model import Fate, LedgerRecord, Plan, Position, Receipt, Record, Segment, TopicPartition
from ferry.plan.rules.planning import decide_plan
from tests.memory import peak_mb
from tests.pure.decide.values import FACTS, LANE, RECEIPT, RULES, facts_with, part, target, topic
from tests.pure.run.ledger_model import now

TOPICS, PARTITIONS = 100, 100
ALL = TOPICS * PARTITIONS
RECORDS = 500
"""Of a receipt."""
_MARK = 87_654_321
"""A number that is found again in a receipt's text."""
_ENDS = {b"start": 0, b"next": RECORDS, b"end": RECORDS + 1}


def places() -> Iterator[TopicPartition]:
    """All partitions of the source."""
    for number in range(ALL):
        yield TopicPartition(topic=f"wide-{number // PARTITIONS:03}", partition=number % PARTITIONS)


def receipt_of(source: TopicPartition, number: int) -> Receipt:
    """The `number`-th receipt of a partition."""
    start = number * (RECORDS + 1)
    return replace(
        RECEIPT,
        source=source,
        target=TopicPartition(topic=f"a.{source.topic}", partition=source.partition),
        start=start,
        end=start + RECORDS + 1,
        target_next=start + RECORDS,
        segments=(Segment(source_start=start, target_start=start, count=RECORDS),),
        records=RECORDS,
        source_topic_id=f"id-{source.topic}",
        target_topic_id=f"id-a.{source.topic}",
    )


def row_of(of: ReceiptChain, number: int, at: int) -> MapEntry:
    """The same receipt in short, as it lies at this offset of the ledger."""
    start = number * (RECORDS + 1)
    return MapEntry(
        at=at,
        source=of.source,
        start=start,
        end=start + RECORDS + 1,
        target_next=start + RECORDS,
        generation=RECEIPT.generation,
        segments=(Segment(source_start=start, target_start=start, count=RECORDS),),
        target_topic_id=of.target_topic_id,
    )


def planned() -> Plan:
    """A plan of partitions that all were copied once, and have something new."""
    names, firsts = sorted({place.topic for place in places()}), [receipt_of(place, 0) for place in places()]
    facts = facts_with(
        FACTS,
        source={"topics": {name: topic(name, *[part(end=1_000_000)] * PARTITIONS) for name in names}},
        target={"topics": {f"a.{name}": target(f"a.{name}", *[RECORDS] * PARTITIONS) for name in names}},
        lane={
            "receipts": {one.target: one for one in firsts},
            "positions": {
                one.target: Position(target_next=one.target_next or 0, source_next=one.end, generation=one.generation)
                for one in firsts
            },
        },
    )
    return decide_plan(replace(RULES, max_tasks=8), facts, "wide", 1)


@dataclass
class Past:
    """A ledger of so many receipts for each partition, each of them twice, in turn; records are made when read."""

    each: int
    summary: Sequence[LedgerRecord] = ()
    """After them."""
    texts: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    """For each partition both keys, and the value; what differs from receipt to receipt is left open."""

    def __post_init__(self) -> None:
        for place in places():
            of_start, of_last = receipt_records(receipt_of(place, _MARK))
            key, value = of_start.key.replace(b"%", b"%%"), (of_start.value or b"").replace(b"%", b"%%")
            for name, more in _ENDS.items():
                number = b"%d" % (_MARK * (RECORDS + 1) + more)
                key, value = (text.replace(number, b"%%(%s)d" % name) for text in (key, value))
            self.texts.append((key, of_last.key, value))

    @property
    def upto(self) -> int:
        """Up to where the receipts lie."""
        return 2 * self.each * ALL

    @property
    def end(self) -> int:
        """Where the ledger ends."""
        return self.upto + len(self.summary)

    def record(self, offset: int) -> LedgerRecord:
        """The record at an offset."""
        if offset >= self.upto:
            return self.summary[offset - self.upto]
        number, at = divmod(offset // 2, ALL)
        of_start, of_last, value = self.texts[at]
        filled = {name: number * (RECORDS + 1) + more for name, more in _ENDS.items()}
        key = of_last if offset % 2 else of_start % filled
        return LedgerRecord(offset=offset, key=key, value=value % filled, fate=Fate.COMMITTED, producer_id=1)

    # As LedgerLog

    async def start(self) -> int:
        return 0

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        upto = self.end if end is None else end
        return [self.record(offset) for offset in range(start or 0, upto)], upto

    async def read_gapless(self, start: int, end: int) -> tuple[list[LedgerRecord], int, bool]:
        records, upto = await self.read(start, end)
        return records, upto, True

    async def read_untransacted(self, start: int, end: int) -> list[LedgerRecord]:
        return [self.record(offset) for offset in range(max(start, self.upto), end)]

    async def read_at(self, offsets: Collection[int]) -> dict[int, LedgerRecord]:
        return {offset: self.record(offset) for offset in offsets}

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = 0) -> list[int]:
        at = [self.end + number for number in range(len(records))]
        self.summary = [
            *self.summary,
            *(
                LedgerRecord(offset=offset, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=1)
                for offset, one in zip(at, records, strict=True)
            ),
        ]
        return at

    async def tombstones_kept_ms(self) -> int:
        return 0


def summarised(each: int, behind: int) -> Past:
    """The same with a summary of all but the last `behind` receipts of each partition."""
    past, first = Past(each), 2 * (each - behind) * ALL
    chains = {}
    for number, place in enumerate(places()):
        of = ReceiptChain.of(receipt_of(place, 0))
        rows = [row_of(of, at, 2 * (at * ALL + number)) for at in range(each - behind)]
        chains[of] = grown(of, NO_LINKS, rows)
    lasts = {one.key.decode(): one for one in map(past.record, range(first - 2 * ALL + 1, first, 2))}
    view = LedgerView(end=first, by_key=lasts, runs=(), open=(), rolled=LedgerDigest(upto=first, chains=chains))
    now(write_summary(past, view, generation=first - 1, read_ms=wall_ms()))
    return past


def opened(past: Past) -> None:
    """Open the ledger, and look up the last receipt of each partition."""
    view = now(open_ledger(past, past.end))
    found = last_receipts(view, LANE)
    assert {one.start // (RECORDS + 1) for one in found.values()} == {past.each - 1}
    assert len(found) == len(view.rolled.chains) == ALL


def main(thing: str, *given: str) -> None:
    """Do one thing, and print what it took at most."""
    if thing == "write":
        each, behind, file = given
        Path(file).write_bytes(pickle.dumps(summarised(int(each), int(behind)).summary))
        return
    past = None if thing == "plan" else Past(int(given[0]))
    if past is not None and given[1:]:
        past.summary = pickle.loads(Path(given[1]).read_bytes())
    before = peak_mb()
    if past is None:
        plan = planned()
        assert [piece.start for piece in plan.slices] == [RECORDS + 1] * ALL
        assert plan_records(plan)
    else:
        opened(past)
    print(peak_mb() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
