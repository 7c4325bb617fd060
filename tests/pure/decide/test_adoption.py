"""What a lane takes over, partition by partition, and what speaks against it."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput
from ferry.features.groups.rules.adopted_map import approximate
from ferry.features.migrate.rules.adoption import (
    MIRROR_MAKERS,
    MOST_PAIRS,
    Left,
    Row,
    Takeover,
    Verdict,
    adoptions_of,
    judged,
    kept_pairs,
    mirror_makers,
    takeover,
)
from ferry.features.migrate.rules.seam import Seam, SeamState
from ferry.ledger.adoption_codec import (
    SHOWN_PAIRS,
    adopted_receipt,
    adoption_records,
    adoptions,
    packed_pairs,
    unpacked_pairs,
)
from ferry.ledger.copied import copied
from ferry.ledger.ledger import fold
from ferry.ledger.map_rows import newer_rows
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.receipts import last_receipts
from ferry.model import Adoption, ChangeKind, OpenedRun, Predecessor, Segment, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Transform
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, lying, part, place, run_of, target, topic
from tests.tiers import IN_PART

ORDERS, COPY = place("orders"), place("a.orders")
SIDES = facts_with(
    FACTS,
    source={"topics": {"orders": topic("orders", part(end=100))}},
    target={"topics": {"a.orders": target("a.orders", 60)}},
)
CLEAN = Seam(state=SeamState.CLEAN, source_next=60, leader_epoch=4)


def left(**positions: int) -> Left:
    places = {place(name): offset for name, offset in positions.items()}
    return Left(by=Predecessor.MM2, where="mm2-offsets.a.internal", next_offsets=places)


def found(facts: Facts = SIDES, *, held: Mapping[TopicPartition, int] | None = None, **positions: int) -> Takeover:
    begins = {place(name, number): 0 for name, one in facts.target.topics.items() for number in one.ends}
    return takeover(RULES, facts, left(**(positions or {"orders": 60})), begins, held)


def only(one: Takeover) -> Row:
    (row,) = one.rows
    return row


def with_seam(seam: Seam, *, align: bool = False, **positions: int) -> Row:
    return only(judged(found(SIDES, held=None, **positions), {ORDERS: seam}, align=align))


def test_a_clean_end_is_adopted_where_the_position_says() -> None:
    row = with_seam(CLEAN)
    assert (row.verdict, row.position, row.lost, row.doubled) == (Verdict.ADOPT, 60, 0, 0)


def test_what_lies_behind_the_position_is_said_and_passed_when_asked_to(golden: Golden) -> None:
    ahead = Seam(state=SeamState.AHEAD, source_next=64, records=4)
    row = with_seam(ahead)
    assert (row.verdict, row.position, row.doubled) == (Verdict.ADOPT, 60, 4)
    golden(row.why)
    row = with_seam(ahead, align=True)
    assert (row.verdict, row.position, row.doubled) == (Verdict.ADOPT, 64, 0)
    row = with_seam(replace(ahead, source_next=None), align=True)
    assert (row.position, row.doubled) == (60, 4)


def test_a_copy_that_lacks_records_is_not_adopted_unless_aligned(golden: Golden) -> None:
    behind = Seam(state=SeamState.BEHIND, source_next=57, records=3)
    row = with_seam(behind)
    assert row.verdict is Verdict.REFUSED
    golden(row.why)
    row = with_seam(behind, align=True)
    assert (row.verdict, row.position, row.lost) == (Verdict.ADOPT, 57, 0)


def test_what_nobody_could_compare_may_be_doubled_up_to_the_sources_end() -> None:
    unknown = Seam(state=SeamState.UNKNOWN)
    assert with_seam(unknown).doubled is None
    assert with_seam(unknown, orders=100).doubled == 0


@pytest.mark.parametrize(
    ("facts", "positions"),
    [
        (SIDES, {"orders": 101}),
        (SIDES, {"other": 3}),
        (facts_with(SIDES, target={"topics": {}}), {"orders": 60}),
        (facts_with(SIDES, lane={"claims": {"a.orders": "drill"}}), {"orders": 60}),
        (facts_with(SIDES, source={"topics": {"orders": topic("orders", leaderless=(0,))}}), {"orders": 60}),
        (
            facts_with(SIDES, lane={"receipts": {COPY: replace(RECEIPT, end=50, source_topic_id="another")}}),
            {"orders": 60},
        ),
    ],
    ids=["truncated", "no position", "no target", "another lane", "no leader", "created again"],
)
def test_what_does_not_fit_together_is_refused_by_name(facts: Facts, positions: dict[str, int], golden: Golden) -> None:
    row = only(found(facts, held=None, **positions))
    assert row.verdict is Verdict.REFUSED, row.why
    golden(row.why)


def test_a_target_with_fewer_partitions_than_mirror_maker_1_read_is_adopted_whole(golden: Golden) -> None:
    """It chose partitions by the keys, so it has a position of a partition that the copy does not have yet."""
    facts = facts_with(
        FACTS,
        source={"topics": {"orders": topic("orders", part(end=100), part(end=90), part(end=0))}},
        target={"topics": {"a.orders": target("a.orders", 180)}},
    )
    offsets = {place("orders", 0): 100, place("orders", 1): 80}
    mm1 = Left(by=Predecessor.MM1, where="group mm on a", next_offsets=offsets)
    one = judged(takeover(RULES, facts, mm1, {COPY: 0}), {})
    assert [row.verdict for row in one.rows] == [Verdict.ADOPT, Verdict.ADOPT, Verdict.NOTHING]
    golden(one.rows[1].why)
    adopted = adoptions_of(one, facts, OpenedRun(record=run_of("adopt-1"), generation=9), "ann")
    view = fold(lying(*[record for each in adopted for record in adoption_records(each)]), 99)
    after = facts_with(facts, lane={"receipts": last_receipts(view, "live"), "positions": {COPY: None}})
    plan = decide_plan(RULES, after, "run-2", 10)
    assert not plan.refusals
    assert [(change.kind, change.partitions) for change in plan.changes] == [(ChangeKind.GROW, 3)]
    assert [(each.source, each.start, each.end) for each in plan.slices] == [(place("orders", 1), 80, 90)]
    mm2 = takeover(RULES, facts, replace(mm1, by=Predecessor.MM2), {COPY: 0})
    assert [row.verdict for row in mm2.rows] == [Verdict.ADOPT, Verdict.REFUSED, Verdict.NOTHING]


def test_an_open_transaction_on_the_copy_is_refused(golden: Golden) -> None:
    row = only(found(held={COPY: 55}))
    assert row.verdict is Verdict.REFUSED
    golden(row.why)


def test_merged_topics_are_refused() -> None:
    rules = replace(RULES, merges=lambda name: name == "orders")
    row = only(takeover(rules, SIDES, left(orders=60), {COPY: 0}))
    assert (row.verdict, "ferry.merge.topics" in row.why) == (Verdict.REFUSED, True)


def test_a_mirror_is_taken_over_as_it_is_and_not_where_its_records_would_be_dealt_anew(golden: Golden) -> None:
    masked = replace(RULES, transform_of=lambda _: Transform("mask"))
    taken = takeover(masked, SIDES, left(orders=60), {COPY: 0})
    assert only(taken).verdict is Verdict.ADOPT
    (note,) = taken.notes
    golden(note, "as it is")
    dealt = replace(RULES, transform_of=lambda _: Transform("few", partitions=3))
    row = only(takeover(dealt, SIDES, left(orders=60), {COPY: 0}))
    assert row.verdict is Verdict.REFUSED
    golden(row.why, "dealt")


def test_what_retention_took_is_lost_and_said() -> None:
    facts = facts_with(SIDES, source={"topics": {"orders": topic("orders", part(log_start=75, end=100))}})
    assert only(found(facts)).lost == 15


def test_an_empty_copy_without_position_is_begun_as_configured() -> None:
    facts = facts_with(SIDES, target={"topics": {"a.orders": target("a.orders", 0)}})
    assert only(found(facts, other=3)).verdict is Verdict.NOTHING


def test_a_lane_that_stands_further_on_stays_where_it_is(golden: Golden) -> None:
    facts = facts_with(SIDES, lane={"receipts": {COPY: replace(RECEIPT, end=70, target_next=70)}})
    row = only(found(facts))
    assert row.verdict is Verdict.UNCHANGED
    golden(row.why)


def test_what_was_adopted_before_is_not_adopted_again_until_the_predecessor_copied_on() -> None:
    facts = facts_with(SIDES, lane={"receipts": {COPY: replace(RECEIPT, end=60, target_next=60, adopted="mm2")}})
    assert only(found(facts)).verdict is Verdict.UNCHANGED
    row = only(found(facts, orders=61))
    assert (row.verdict, row.stands) == (Verdict.ADOPT, 60)


def test_what_was_adopted_between_two_copies_is_not_compared_as_the_lanes_own() -> None:
    opened = OpenedRun(record=run_of("adopt-2"), generation=9)
    own = replace(RECEIPT, end=40, target_next=40)
    facts = facts_with(SIDES, lane={"receipts": {COPY: own}})
    (one,) = adoptions_of(judged(found(facts), {ORDERS: CLEAN}), facts, opened, "ann@desk-7")
    assert (one.start, one.end, one.target_start, one.target_next) == (40, 60, 40, 60)
    later = replace(
        own, start=60, end=70, target_next=70, segments=(Segment(source_start=60, target_start=60, count=10),)
    )
    view = fold(lying(*receipt_records(own), *adoption_records(one), *receipt_records(later)), 99)
    (compared,) = copied(view, "live", newer_rows(view, lambda _: True))
    assert (compared.ranges, compared.void) == (((0, 40), (60, 70)), ((40, 60),))


def test_topics_that_nobody_copies_any_more_are_noted(golden: Golden) -> None:
    (note,) = found(orders=60, gone=7).notes
    golden(note)


def test_the_next_plan_goes_on_behind_an_adoption_and_guards_it() -> None:
    opened = OpenedRun(record=run_of("adopt-1"), generation=9)
    done = judged(found(), {ORDERS: CLEAN})
    (one,) = adoptions_of(done, SIDES, opened, "ann@desk-7")
    view = fold(lying(*adoption_records(one)), 99)
    assert list(adoptions(view, "live")) == [one]
    assert last_receipts(view, "live") == {COPY: adopted_receipt(one)}

    facts = facts_with(SIDES, lane={"receipts": last_receipts(view, "live"), "positions": {COPY: None}})
    plan = decide_plan(RULES, facts, "run-2", 10)
    (piece,) = plan.slices
    assert (piece.start, piece.end, piece.target_next, piece.read_epoch, plan.notes) == (60, 100, 60, 4, ())
    for changed, kind in (
        (facts_with(facts, others={"foreign": {COPY: 60}}), "foreign-writer"),
        (facts_with(facts, target={"topics": {"a.orders": target("a.orders", 59)}}), "target-changed"),
        (facts_with(facts, source={"topics": {"orders": topic("orders", part(end=40))}}), "source-truncated"),
        (facts_with(facts, source={"topics": {"orders": topic("orders", part(log_start=61))}}), "retention-passed"),
        (facts_with(facts, source={"topics": {"orders": topic("orders", part(), topic_id="new")}}), "topic-recreated"),
    ):
        (refusal,) = decide_plan(RULES, changed, "run-2", 10).refusals
        assert refusal.kind == kind


def syncs(count: int, seed: int = 1) -> tuple[tuple[int, int], ...]:
    """As MirrorMaker 2 writes them: one for about 100 records, of which some were left out."""
    random, source, target, made = Random(seed), 0, 0, []
    for _ in range(count):
        made.append((source, target))
        step = random.randint(90, 140)
        source, target = source + step, target + step - random.choice([0, 0, 0, 1, 2, 9])
    return tuple(made)


def wide(pairs: tuple[tuple[int, int], ...]) -> Row:
    """A partition whose predecessor copied all of it, with some records behind the last pair."""
    return replace(
        only(found()), position=pairs[-1][0] + 50, target_start=0, target_end=pairs[-1][1] + 50, source_end=1 << 40
    )


def kept_in_ledger(pairs: tuple[tuple[int, int], ...]) -> tuple[Adoption, int]:
    """What the ledger says of an adoption with these pairs, and the bytes of the record."""
    row = wide(pairs)
    taken = Takeover(left=replace(left(orders=row.position), pairs={ORDERS: pairs}), rows=(row,))
    (adoption,) = adoptions_of(taken, SIDES, OpenedRun(record=run_of("adopt-1"), generation=9), "ann")
    record = adoption_records(adoption)[0]
    (known,) = adoptions(fold(lying(record), 1), RULES.lane)
    assert known == adoption
    return known, len(record.value or b"")


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 64, 65, 346, 50_000])
def test_all_pairs_are_kept_in_a_record_that_the_ledger_takes(count: int) -> None:
    pairs = syncs(count)
    adoption, size = kept_in_ledger(pairs)
    assert adoption.pairs == pairs
    assert size < 700_000 // 2, "far below what a batch of the ledger may have"


@pytest.mark.slow
def test_more_pairs_than_a_record_takes_are_thinned_out_where_they_are_old() -> None:
    pairs = syncs((1 if IN_PART else 3) * MOST_PAIRS + 17)
    adoption, size = kept_in_ledger(pairs)
    kept = adoption.pairs
    assert len(kept) <= MOST_PAIRS
    assert kept[-MOST_PAIRS // 2 :] == pairs[-MOST_PAIRS // 2 :]
    assert set(kept) <= set(pairs)
    assert kept[0] == pairs[0]
    assert max(b[0] - a[0] for a, b in pairwise(kept)) <= 6 * 140, "one of so many all over the older half"
    assert size < 700_000


def test_versions_that_know_few_pairs_find_few() -> None:
    pairs = syncs(346)
    adoption = replace(kept_in_ledger(pairs)[0])
    body = json.loads(adoption_records(adoption)[0].value or b"")
    assert len(body["pairs"]) <= SHOWN_PAIRS
    assert body["pairs"][-SHOWN_PAIRS // 2 :] == [list(pair) for pair in pairs[-SHOWN_PAIRS // 2 :]]
    assert "all_pairs" not in json.loads(adoption_records(replace(adoption, pairs=pairs[:9]))[0].value or b"")


@pytest.mark.parametrize(
    "text",
    ["no base64", packed_pairs(((1, 2),))[:-8], b64encode(zlib.compress(b"[1,2,3]")).decode()],
    ids=["no-base64", "cut", "an-odd-number"],
)
def test_pairs_that_are_damaged_are_told_so(text: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as damaged:
        unpacked_pairs(text)
    golden(damaged.value)


def test_a_pair_that_leads_back_voids_those_before_it() -> None:
    row = replace(only(found()), position=60, target_start=0, target_end=60)
    assert kept_pairs(((1, 1), (40, 40), (5, 41), (9, 45)), row) == ((5, 41), (9, 45))
    assert kept_pairs(((1, 1), (40, 40), (50, 3)), row) == ((50, 3),)
    assert kept_pairs(((1, 1), (60, 60)), row) == ((1, 1),)


def of_mirror_maker(pairs: Sequence[tuple[int, int]], offset: int) -> int:
    """Where MirrorMaker 2 leads a group by the syncs that it has (OffsetSyncStore.translateDownstream); -1: nowhere."""
    before = [pair for pair in pairs if pair[0] <= offset]
    if not before:
        return -1
    upstream, downstream = before[-1]
    return downstream if offset == upstream else downstream + 1


@pytest.mark.slow
@given(count=st.integers(1, 400), seed=st.integers(0, 1 << 16), chosen=st.randoms(use_true_random=False))
def test_a_group_reads_again_at_most_what_mirror_maker_2_would_have_it_read(
    count: int, seed: int, chosen: Random
) -> None:
    """MirrorMaker 2 goes by at most 64 of the syncs that it writes, whichever they are."""
    pairs = syncs(count, seed)
    adoption, _ = kept_in_ledger(pairs)
    stored = sorted(chosen.sample(pairs, min(64, count)))
    for offset in chosen.sample(range(adoption.end), min(50, adoption.end)):
        ours = approximate([adoption], offset)
        assert ours is not None
        assert ours.offset >= of_mirror_maker(stored, offset)


@given(count=st.integers(257, 3_000), seed=st.integers(0, 1 << 16), chosen=st.randoms(use_true_random=False))
def test_of_more_pairs_than_are_kept_those_of_mirror_maker_2_are_kept(count: int, seed: int, chosen: Random) -> None:
    pairs = syncs(count, seed)
    with mock.patch("ferry.features.migrate.rules.adoption.MOST_PAIRS", 256):
        adoption, _ = kept_in_ledger(pairs)
    stored = mirror_makers(pairs)
    assert len(stored) <= MIRROR_MAKERS
    assert stored <= set(adoption.pairs) <= set(pairs)
    assert len(adoption.pairs) <= 256
    for offset in chosen.sample(range(adoption.end), min(50, adoption.end)):
        ours = approximate([adoption], offset)
        assert ours is not None
        assert ours.offset >= of_mirror_maker(sorted(stored), offset)


def test_the_store_of_mirror_maker_2_has_the_newest_pair_and_fewer_the_older_they_are() -> None:
    assert mirror_makers(()) == frozenset()
    assert mirror_makers([(7, 7)]) == {(7, 7)}
    dense = [(at, at) for at in range(10_000)]
    ages = sorted(9_999 - at for at, _ in mirror_makers(dense))
    assert (ages[0], ages[-1]) == (0, 9_999)
    assert len(ages) <= MIRROR_MAKERS
    assert all(later <= 4 * (age + 1) for age, later in pairwise(ages))
    rewound = [*dense, (3, 20_000), (4, 20_001)]
    assert mirror_makers(rewound) == {(3, 20_000), (4, 20_001)}
