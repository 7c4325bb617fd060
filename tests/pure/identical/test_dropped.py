"""Which records of a producer id stay in the ledger when a lane is dropped, and what they say then."""

from __future__ import annotations

import pytest

from ferry.features.lanes.rules.listing import forgetting_lane
from ferry.ledger.codec import DeletedCopy, deleted_record
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.producer_codec import first_offsets, producer_record, sending_records
from ferry.ledger.window_codec import Dropped, dropped_record
from ferry.model import Fate, LedgerRecord, Record, TopicPartition

PLACE, OTHER = TopicPartition(topic="a.orders", partition=0), TopicPartition(topic="a.audit", partition=0)


def view_of(*records: Record) -> LedgerView:
    known = [
        LedgerRecord(offset=at, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=-1)
        for at, one in enumerate(records)
    ]
    return fold(known, len(known))


def sent(place: TopicPartition, first: int, lane: str = "backfill-x") -> list[Record]:
    return sending_records(lane, place, first=first, producer_id=7, run="r", at_ms=1)


@pytest.mark.parametrize(("lane", "stays"), [("backfill-x", True), ("drill-x", False)])
def test_those_of_a_drill_go_and_those_of_a_name_that_may_be_used_again_stay(lane: str, stays: bool) -> None:
    records = [
        producer_record(lane, producer_id=7, run="r", at_ms=1),
        *sent(PLACE, 5, lane),
        producer_record("live", producer_id=8, run="r", at_ms=1),
    ]
    view = view_of(*records)
    word = Dropped(lane=lane, who="ann", at_ms=2, topics=(), records=0)
    gone = {one.key for one in forgetting_lane(view, word, {}, []) if one.value is None}
    assert gone == (set() if stays else {one.key for one in records[:-1]})


DROPPED = dropped_record(Dropped(lane="backfill-x", who="ann", at_ms=2, topics=(), records=0))
DELETED = deleted_record(
    "backfill-x",
    DeletedCopy(
        topic="orders", target_topic=PLACE.topic, source_topic_id="", target_topic_id="", ends={0: 9}, run="r", at_ms=2
    ),
)


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ([DROPPED], {}),
        ([DELETED], {OTHER: {0}}),
        ([dropped_record(Dropped(lane="other", who="ann", at_ms=2, topics=(), records=0))], {PLACE: {5}, OTHER: {0}}),
        ([DROPPED, *sent(PLACE, 7)], {PLACE: {7}}),
        ([DELETED, *sent(PLACE, 7)], {PLACE: {7}, OTHER: {0}}),
    ],
)
def test_what_was_sent_to_copies_that_are_gone_counts_for_late_batches_alone(
    gone: list[Record], left: dict[TopicPartition, set[int]]
) -> None:
    view = view_of(*sent(PLACE, 5), *sent(OTHER, 0), *gone)
    assert first_offsets(view, "backfill-x", current=True) == left
    assert {5, 0} <= {first for firsts in first_offsets(view, "backfill-x").values() for first in firsts}
