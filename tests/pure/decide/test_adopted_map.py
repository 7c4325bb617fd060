"""Offsets that a predecessor copied: never past the record, whatever is known of them."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.adopted_map import approximate
from ferry.features.groups.rules.offset_map import Approximate, Before, Exact, OffsetMap
from ferry.ledger.adoption_codec import adopted_receipt
from ferry.model import Adoption, Gap, Predecessor, RefusalKind, Resolution, Segment
from tests.pure.decide.values import FLOW, LANE, RECEIPT, place

ADOPTION = Adoption(
    flow=FLOW,
    lane=LANE,
    run="adopt-1",
    generation=9,
    source=place("orders"),
    target=place("a.orders"),
    start=0,
    end=100,
    target_start=0,
    target_next=90,
    by=Predecessor.MM2,
    where="mm2-offsets.a.internal",
    who="ann@desk-7",
    at_ms=1_000,
    pairs=((10, 8), (50, 41)),
)


def test_the_last_pair_before_counts_and_one_further_at_most() -> None:
    for offset, wanted in ((0, 0), (9, 0), (10, 8), (11, 9), (49, 9), (50, 41), (99, 42)):
        assert approximate([ADOPTION], offset) == Approximate(offset=wanted)
    for offset, wanted in ((0, 0), (7, 0), (8, 10), (9, 11), (40, 11), (41, 50), (89, 51)):
        assert approximate([ADOPTION], offset, backward=True) == Approximate(offset=wanted)
    assert approximate([ADOPTION], 100) is None
    assert approximate([ADOPTION], 90, backward=True) is None


def test_what_the_lane_went_back_behind_does_not_hold() -> None:
    gap = Gap(
        source=place("orders"), start=100, end=0, why=RefusalKind.TARGET_CHANGED, run="r", at_ms=0,
        how=Resolution.RESTART, generation=12, void_from=40,
    )  # fmt: skip
    assert approximate([ADOPTION], 39, gaps=[gap]) is not None
    assert approximate([ADOPTION], 40, gaps=[gap]) is None
    assert approximate([ADOPTION], 40, gaps=[replace(gap, generation=8)]) is not None


def test_the_exact_map_begins_where_the_adoption_ends() -> None:
    adopted = adopted_receipt(ADOPTION)
    alone = OffsetMap.forward([adopted], (), 91)
    assert (alone.translate(100), alone.translate(99)) == (Exact(offset=90), Before(offset=90))
    own = replace(
        RECEIPT, start=100, end=104, target_next=94, segments=(Segment(source_start=100, target_start=90, count=4),)
    )
    both = OffsetMap.forward([adopted, own], (), 95)
    assert [both.translate(offset) for offset in (100, 103, 104)] == [
        Exact(offset=90),
        Exact(offset=93),
        Exact(offset=95),
    ]
    # Handed back and adopted once more: what lies between is not the lane's, and not a gap.
    later = adopted_receipt(replace(ADOPTION, start=104, end=120, target_start=95, target_next=111))
    assert OffsetMap.forward([adopted, own, later], (), 111).translate(120) == Exact(offset=111)


@given(
    copied=st.lists(st.booleans(), min_size=1, max_size=60),
    chosen=st.randoms(use_true_random=False),
    before=st.integers(0, 5),
)
def test_no_reader_is_led_past_a_record(copied: list[bool], chosen: random.Random, before: int) -> None:
    """Over any log of which some records were left out, and any of its pairs."""
    where = {}
    at = before
    for offset, kept in enumerate(copied):
        if kept:
            where[offset] = at
            at += 1
    pairs = tuple(pair for pair in where.items() if chosen.random() < 0.3)
    one = replace(ADOPTION, end=len(copied), target_start=0, target_next=at, pairs=pairs)
    for offset in range(len(copied)):
        next_record = min((target for source, target in where.items() if source >= offset), default=at)
        found = approximate([one], offset)
        assert found is not None
        assert found.offset <= next_record
    for offset in range(at):
        next_source = min((source for source, target in where.items() if target >= offset), default=len(copied))
        found = approximate([one], offset, backward=True)
        assert found is not None
        assert found.offset <= next_source
