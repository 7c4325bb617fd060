"""How much of a source partition went where, whose records were dealt to other partitions."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.repartitioned import dealt_parts, spans_of, whereabouts
from ferry.ledger.repartitioned_at import Dealing, Dealt
from ferry.model import Era, Offsets, Receipt
from ferry.wire.partitioner import partition_of_key
from tests.pure.decide.test_deal import receipt
from tests.pure.decide.values import place, redealt

ERA = Era(source_topic="t", target_topic="a.t", since=1, begins=(5, 0), digest="d", partitions=2)


def chunk(number: int, begins: Offsets, reached: Offsets, at: int = 0, records: int = 0, era: int = 1) -> Receipt:
    """What was done for a target partition; `records` lie at offset `at` on."""
    one = receipt(number, reached, era=era, target_next=at + records)
    start, run = (at if records else -1), f"r-{reached[0]}"
    return redealt(one, starts=begins, target_start=start, records=records, at_ms=sum(reached), run=run)


def dealing(*receipts: Receipt, era: Era = ERA) -> Dealing:
    """Of receipts in their order."""
    by_place = {one.target: [other for other in receipts if other.target == one.target] for one in receipts}
    return Dealing(eras=[era], lasts={place: ones[-1] for place, ones in by_place.items()}, receipts=by_place)


DEALT = dealing(
    chunk(0, (5, 0), (20, 4), at=0, records=7),
    chunk(0, (20, 4), (30, 4)),
    chunk(1, (5, 0), (20, 4), at=100, records=12),
    chunk(1, (20, 4), (40, 9), at=113, records=3),
)


def test_a_key_names_the_target_partition() -> None:
    source = place("t", 0)
    assert [one.target for one in whereabouts(DEALT, source, 19)] == [place("a.t", 0), place("a.t", 1)]
    for key in (b"", b"a", b"b", b"k17"):
        (one,) = whereabouts(DEALT, source, 19, key)
        assert one.target == place("a.t", partition_of_key(key, 2))
        assert one.chunk is not None


def test_of_what_an_earlier_rule_dealt_a_key_tells_nothing() -> None:
    """Nobody keeps how many partitions that had."""
    later = replace(ERA, since=9, begins=(30, 4), partitions=3)
    found = dealing(chunk(0, (5, 0), (30, 4), at=0, records=3), chunk(1, (5, 0), (30, 4), at=0, records=3), era=later)
    states = [one.state for one in whereabouts(found, place("t", 0), 7, b"a")]
    assert states == [Dealt.PASSED, Dealt.PASSED, Dealt.EARLIER]
    assert [one.state for one in whereabouts(found, place("t", 0), 30, b"a")] == [Dealt.AHEAD]


def test_topics_that_records_choose_among_are_all_told() -> None:
    other = replace(ERA, target_topic="b.t")
    found = replace(DEALT, eras=[ERA, other])
    assert [(one.target, one.done) for one in dealt_parts(found, 0)] == [
        (place("a.t", 0), 30),
        (place("a.t", 1), 40),
        (place("b.t", 0), 5),
        (place("b.t", 1), 5),
    ]


def test_each_target_partition_says_how_much_it_has_and_since_when_that_is_known() -> None:
    first, second = dealt_parts(DEALT, 0)
    assert (first.target, first.done, first.known_from, first.spans) == (place("a.t", 0), 30, 5, 2)
    assert (second.done, second.spans) == (40, 2)
    assert first.newest is not None
    assert (first.newest.start, first.newest.end, first.newest.records) == (20, 30, 0)
    assert [one.spans for one in dealt_parts(DEALT, 1)] == [1, 2], "a chunk that had none of it is none of it"
    gone = replace(DEALT, receipts={})
    assert [(one.done, one.known_from, one.newest) for one in dealt_parts(gone, 0)] == [
        (30, None, None),
        (40, None, None),
    ]


@given(
    cuts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6),
    partition=st.integers(0, 1),
    offset=st.integers(0, 70),
)
def test_what_is_told_of_an_offset_is_what_the_chunks_were_for(
    cuts: list[tuple[int, int]], partition: int, offset: int
) -> None:
    at, reached, chunks = 0, (5, 0), []
    for more in cuts:
        begins, reached = reached, (reached[0] + more[0], reached[1] + more[1])
        chunks.append(chunk(0, begins, reached, at=at, records=sum(more)))
        at += sum(more) + 1
    told = dealing(*chunks)
    where = whereabouts(told, place("t", partition), offset)[0]
    held = [one for one in spans_of(told, partition) if one.start <= offset < one.end]
    assert (where.chunk is not None) == bool(held)
    assert len(held) <= 1
    assert dealt_parts(told, partition)[0].done == reached[partition]
