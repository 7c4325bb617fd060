"""Which records of a producer id stay in the ledger when a lane is dropped."""

from __future__ import annotations

import pytest

from ferry.features.lanes.rules.listing import forgetting_lane
from ferry.ledger.ledger import fold
from ferry.ledger.producer_codec import producer_record, sending_records
from ferry.ledger.window_codec import Dropped
from ferry.model import Fate, LedgerRecord, TopicPartition

PLACE = TopicPartition(topic="a.orders", partition=0)


@pytest.mark.parametrize(("lane", "stays"), [("backfill-x", True), ("drill-x", False)])
def test_those_of_a_drill_go_and_those_of_a_name_that_may_be_used_again_stay(lane: str, stays: bool) -> None:
    records = [
        producer_record(lane, producer_id=7, run="r", at_ms=1),
        *sending_records(lane, PLACE, first=5, producer_id=7, run="r", at_ms=1),
        producer_record("live", producer_id=8, run="r", at_ms=1),
    ]
    known = [
        LedgerRecord(offset=at, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=-1)
        for at, one in enumerate(records)
    ]
    view = fold(known, len(known))
    word = Dropped(lane=lane, who="ann", at_ms=2, topics=(), records=0)
    gone = {one.key for one in forgetting_lane(view, word, {}, []) if one.value is None}
    assert gone == (set() if stays else {one.key for one in records[:-1]})
