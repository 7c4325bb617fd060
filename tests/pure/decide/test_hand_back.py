"""What goes back to MirrorMaker 2."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.migrate.rules.connect_offsets import ConnectorOffsets, connector_offsets
from ferry.features.migrate.rules.hand_back import Handed, HandedRow, hand_back_rows, position_records
from ferry.model import Fate, LedgerRecord
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning_rules import Transform
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, part, place, topic

ORDERS, COPY = place("orders"), place("a.orders")
SIDES = facts_with(
    FACTS,
    source={"topics": {"orders": topic("orders", part(end=100))}},
    lane={"receipts": {COPY: replace(RECEIPT, end=60)}},
)
CONNECTOR = "MirrorSourceConnector"
OWN_KEY = b'["MirrorSourceConnector",{"topic":"orders","partition":0,"cluster":"a"}]'
"""With its fields in another order than Ferry writes them."""


def only(facts: Facts = SIDES, theirs: ConnectorOffsets | None = None) -> HandedRow:
    (row,) = hand_back_rows(RULES, facts, theirs or ConnectorOffsets())
    return row


def test_the_lanes_place_becomes_the_offset_before_it() -> None:
    row = only()
    assert (row.verdict, row.position, row.was) == (Handed.WRITE, 60, -1)
    (record,) = position_records([row], ConnectorOffsets(), CONNECTOR, "a")
    assert record.key == b'["MirrorSourceConnector",{"cluster":"a","partition":0,"topic":"orders"}]'
    assert record.value == b'{"offset":59}'
    read = LedgerRecord(offset=0, key=record.key, value=record.value, fate=Fate.COMMITTED, producer_id=-1)
    assert connector_offsets([(0, read)], CONNECTOR, "a", "offsets").next_offsets == {ORDERS: 60}


def test_a_key_that_is_there_keeps_its_bytes() -> None:
    theirs = ConnectorOffsets(next_offsets={ORDERS: 30}, keys={ORDERS: OWN_KEY}, partitions={ORDERS: 3})
    (record,) = position_records([only(theirs=theirs)], theirs, CONNECTOR, "a")
    assert record.key == OWN_KEY


def test_the_same_position_is_left_alone_and_one_further_on_is_refused() -> None:
    assert only(theirs=ConnectorOffsets(next_offsets={ORDERS: 60})).verdict is Handed.UNCHANGED
    row = only(theirs=ConnectorOffsets(next_offsets={ORDERS: 61}))
    assert (row.verdict, "beyond the lane" in row.why) == (Handed.REFUSED, True)


def test_what_was_never_copied_is_left_to_begin_by_itself_unless_the_lane_began_later() -> None:
    assert only(facts_with(SIDES, lane={"receipts": {}})).verdict is Handed.NOTHING
    row = only(facts_with(SIDES, lane={"receipts": {}, "starts": {ORDERS: 25}}))
    assert (row.verdict, row.position) == (Handed.WRITE, 25)


def test_a_partition_without_leader_is_handed_back_by_its_receipt() -> None:
    hidden = {"orders": topic("orders", leaderless=(0,))}
    assert only(facts_with(SIDES, source={"topics": hidden})).position == 60
    assert only(facts_with(SIDES, source={"topics": hidden}, lane={"receipts": {}})).verdict is Handed.REFUSED


def test_mirror_maker_does_not_get_a_topic_whose_transform_it_does_not_know(golden: Golden) -> None:
    def row(transform: Transform) -> HandedRow:
        (found,) = hand_back_rows(replace(RULES, transform_of=lambda _: transform), SIDES, ConnectorOffsets())
        return found

    masked = row(Transform("mask"))
    assert masked.verdict is Handed.REFUSED
    golden(masked.why)
    assert row(Transform("transforms")) == only(), "Connect's own stand in its file, too"
    assert row(Transform("transforms", partitions=3)).verdict is Handed.REFUSED
