"""Where groups go on in topics that were dealt anew: held against a plain model of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.checkpoints import TargetGroups, decide_groups, holds_for
from ferry.features.groups.rules.codec import group_record, parse_group
from ferry.features.groups.rules.map_check import Present, dealt_cut, dealt_trouble
from ferry.features.groups.rules.repartition_map import DealtMap, DealtPlace, GoesOn, connected, goes_on, most_read
from ferry.features.groups.rules.selection import GroupRules
from ferry.features.groups.rules.translated import translated
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.ledger.codec import decode_value
from ferry.ledger.units import reached_at
from ferry.model import Checkpoint, CommittedOffset, Found, Offsets, Reads, Receipt, TopicPartition, Why
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, dealt_slice, redealt

PLACE = TopicPartition("a.t", 0)
ONE = Receipt(
    flow=FLOW, lane=LANE, run="r1", generation=1, slot=0, source=TopicPartition("t", 0), target=PLACE, since=1,
    start=0, end=0, target_next=None, segments=(), records=0, bytes=0, batches=0, digest="", transform_digest="d",
    at_ms=0, reads=Reads(starts=(), ends=()),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copy:
    """What one target partition has: source partition and offset by its own offset; and its receipts."""

    ends: Offsets
    there: dict[int, tuple[int, int]]
    receipts: list[Receipt]
    stands_at: int


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    """Runs that each take all source partitions up to their ends, in chunks of a few records."""
    width = draw(st.integers(1, 3))
    to = draw(st.integers(0, 2))
    there: dict[int, tuple[int, int]] = {}
    receipts: list[Receipt] = []
    starts: Offsets = (0,) * width
    target_next = None
    for run in range(draw(st.integers(1, 4))):
        if run and draw(st.booleans()) and width < 4:
            width, starts = width + 1, (*starts, 0)
        ends = tuple(at + draw(st.integers(0, 6)) for at in starts)
        unit = dealt_slice(topic="t", target=PLACE, starts=starts, ends=ends, slot=0, since=1, partitions=2, digest="d")
        mine = [(p, o) for p in range(width) for o in range(starts[p], ends[p]) if draw(st.booleans())]
        begins = starts
        while True:
            count = draw(st.integers(1, 4))
            chunk, mine = mine[:count], mine[count:]
            reached = reached_at(unit, *chunk[-1]) if mine else ends
            first = to
            for one in chunk:
                there[to] = one
                to += 1
            target_next = to if chunk else target_next
            receipts.append(
                redealt(
                    ONE,
                    run=f"r{run}",
                    starts=begins,
                    ends=reached,
                    records=len(chunk),
                    target_next=target_next,
                    target_start=first if chunk else -1,
                )
            )
            to += bool(chunk)  # the marker
            begins = reached
            if not mine:
                break
        starts = ends
    return Copy(starts, there, receipts, to)


@st.composite
def reads(draw: st.DrawFn, ends: Offsets) -> Offsets:
    """What a group has read of each source partition."""
    return tuple(draw(st.integers(0, end)) if draw(st.booleans()) else 0 for end in ends)


@given(copies(), st.data())
def test_nothing_unread_is_missed_and_what_is_read_again_is_told(made: Copy, data: st.DataObject) -> None:
    read = data.draw(reads(made.ends), label="read")
    gone = data.draw(st.integers(0, len({one.run for one in made.receipts}) - 1), label="runs whose receipts are gone")
    known = [one for one in made.receipts if int(one.run[1:]) >= gone]
    log_start = data.draw(st.sampled_from([0, *made.there]), label="log start")
    found = goes_on(read, connected(known), log_start=log_start, stands_at=made.stands_at)

    left = {at: one for at, one in made.there.items() if at >= log_start}
    unread = [at for at, (number, offset) in left.items() if offset >= read[number]]
    again = [at for at, (number, offset) in left.items() if at >= found.offset and offset < read[number]]
    assert all(at >= found.offset for at in unread)
    assert found.again is None or len(again) <= found.again
    assert log_start <= found.offset <= max(made.stands_at, log_start)
    if not gone and not unread and read == made.ends:
        assert found == GoesOn(made.stands_at if made.there else found.offset, 0), "who has read everything has no lag"


@given(copies())
def test_a_group_at_the_edge_of_a_chunk_reads_nothing_again(made: Copy) -> None:
    """As long as the group's offsets are those that a chunk began with."""
    for one in made.receipts:
        found = goes_on(one.starts, made.receipts, log_start=0, stands_at=made.stands_at)
        following = [each for each in made.receipts[made.receipts.index(one) :] if each.records]
        assert found.again == 0
        if following:
            assert found.offset == following[0].target_start


def test_without_any_receipt_all_of_it_is_read() -> None:
    assert goes_on((9,), [], log_start=0, stands_at=7) == GoesOn(0, None)
    assert goes_on((9,), [], log_start=7, stands_at=7) == GoesOn(7, 0)


def test_receipts_that_do_not_follow_each_other_say_nothing_of_what_is_before() -> None:
    first = redealt(ONE, starts=(0,), ends=(5,), records=5, target_start=0, target_next=5)
    later = redealt(ONE, starts=(9,), ends=(12,), records=3, target_start=20, target_next=23)
    left = connected([first, later])
    assert goes_on((3,), left, log_start=0, stands_at=24) == GoesOn(0, None)
    assert goes_on((9,), left, log_start=0, stands_at=24) == GoesOn(20, 0)
    assert goes_on((3,), left, log_start=20, stands_at=24) == GoesOn(20, 0)


def map_of(made: Copy, gone: int = 0, log_start: int = 0) -> DealtMap:
    """The map of a copy of one partition, when the receipts of some runs have gone."""
    known = connected([one for one in made.receipts if int(one.run[1:]) >= gone])
    return DealtMap(
        target=PLACE.topic,
        places={PLACE: DealtPlace(receipts=known, log_start=log_start, stands_at=made.stands_at)},
    )


RULES = GroupRules(flow=FLOW, takes_group=lambda _: True, takes_topic=lambda _: True)


def committed(read: Offsets) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    return {"g": {TopicPartition("t", number): CommittedOffset(at) for number, at in enumerate(read)}}


@given(copies(), st.data())
def test_a_group_misses_nothing_while_it_reads_on_and_receipts_go_and_goes_back_with_the_source_alone(
    made: Copy, data: st.DataObject
) -> None:
    read, gone, log_start = (0,) * len(made.ends), 0, 0
    held: HeldGroup | None = None
    there: CommittedOffset | None = None
    written = read
    for number in range(4):
        before = read
        read = data.draw(reads(made.ends), label="read")
        if data.draw(st.booleans(), label="reads on"):
            read = most_read(before, read)
        gone = data.draw(st.integers(gone, len({one.run for one in made.receipts}) - 1), label="runs without receipts")
        log_start = data.draw(st.sampled_from([at for at in (0, *made.there) if at >= log_start]), label="log start")
        led = map_of(made, gone, log_start)
        found = translated(RULES, committed(read), {}, repartitioned={"t": led})
        target = TargetGroups(listed={}, offsets={"g": {} if there is None else {PLACE: there}})
        decided = decide_groups(RULES, found, target, {} if held is None else {"g": held}, now_ms=number)
        assert not decided.left
        for write in decided.writes.get("g", ()):
            one = write.checkpoint
            at = one.target_offset
            if there is not None and most_read(written, read) == read:
                assert at >= there.offset, "it goes back only with the source, behind what was written last"
            there, written = CommittedOffset(at), read
            vector = holds_for(held, PLACE.topic, found.checkpoints["g"], [one])
            offsets = {PLACE: Held(Wrote(one.source_offset, at), write.prior)}
            held = HeldGroup(offsets=offsets, sources={PLACE.topic: "t"}, renewed_ms=0, read={PLACE.topic: vector})
            value = group_record(LANE, "g", held, run="r", at_ms=0).value
            held = parse_group(decode_value(value or b"", "group"))
        assert there is not None
        assert all(
            at >= there.offset for at, (part, offset) in made.there.items() if at >= log_start and offset >= read[part]
        )


def test_a_vector_covers_what_was_not_written_when_a_group_went_back() -> None:
    other = TopicPartition(PLACE.topic, 1)
    held = HeldGroup(
        offsets={PLACE: Held(Wrote(9, 7)), other: Held(Wrote(9, 7))},
        sources={PLACE.topic: "t"},
        renewed_ms=0,
        read={PLACE.topic: (4, 5)},
    )

    def holds(read: Offsets, at: int) -> Offsets:
        here = Checkpoint("g", TopicPartition("t", 0), sum(read), PLACE, 3, Found.AGAIN, read=read)
        there = here._replace(target=other, target_offset=at)
        return holds_for(held, PLACE.topic, [here, there], [here])

    assert holds((6, 5), 2) == (6, 5), "it read on"
    assert holds((2, 6), 7) == (2, 6), "what is not written is not beyond where it goes on"
    assert holds((2, 6), 3) == (4, 6)


def test_a_group_that_was_moved_there_or_has_no_map_that_holds_is_left() -> None:
    receipt = redealt(ONE, starts=(0, 0), ends=(5, 5), records=4, target_start=0, target_next=4)
    led = DealtMap(target=PLACE.topic, places={PLACE: DealtPlace(receipts=[receipt], log_start=0, stands_at=5)})
    there = TargetGroups(listed={}, offsets={"g": {PLACE: CommittedOffset(2)}})
    found = translated(RULES, committed((5, 5)), {}, repartitioned={"t": led})
    (one,) = found.checkpoints["g"]
    assert (one.target_offset, one.outcome, one.again) == (5, Found.EXACT, 0)
    assert [left.why for left in decide_groups(RULES, found, there, {}, now_ms=0).left] == [Why.MOVED]

    (one,) = translated(RULES, committed((2, 5)), {}, repartitioned={"t": led}).checkpoints["g"]
    assert (one.target_offset, one.outcome, one.again) == (0, Found.AGAIN, 4)
    (one,) = translated(RULES, committed((5, 9)), {}, repartitioned={"t": led}).checkpoints["g"]
    assert (one.target_offset, one.outcome, one.again) == (5, Found.AHEAD, 0)

    cut = replace(led, cuts={1: dealt_cut(TopicPartition("t", 1), 5, 3)})
    assert translated(RULES, committed((5, 2)), {}, repartitioned={"t": cut}).checkpoints, (
        "it has not read what was lost"
    )
    for lost in (cut, replace(led, trouble="no"), replace(led, places={}, silent=frozenset({PLACE}))):
        found = translated(RULES, committed((5, 5)), {}, repartitioned={"t": lost})
        decided = decide_groups(RULES, found, there, {}, now_ms=0)
        assert (found.checkpoints, [left.why for left in decided.left]) == ({}, [Why.FAILED])


def test_a_group_without_offsets_at_the_source_is_named_once_for_each_partition_that_ferry_wrote(
    golden: Golden,
) -> None:
    held = HeldGroup(
        offsets={PLACE: Held(Wrote(7, 3))}, sources={PLACE.topic: "t"}, renewed_ms=0, read={PLACE.topic: (2, 5)}
    )
    there = TargetGroups(listed={}, offsets={"g": {PLACE: CommittedOffset(3)}})
    found = translated(RULES, {"g": {}}, {})
    (left,) = decide_groups(RULES, found, there, {"g": held}, now_ms=0).left
    assert left.why is Why.DELETED
    golden(left.message)
    some = translated(RULES, {"g": {TopicPartition("t", 1): CommittedOffset(5)}}, {})
    assert not decide_groups(RULES, some, there, {"g": held}, now_ms=0).gone


def test_what_is_not_what_was_dealt_leads_nowhere(golden: Golden) -> None:
    last = replace(ONE, target_next=9, source_topic_id="s", target_topic_id="t", source_cluster_id="c")
    assert dealt_trouble(last, Present(source_cluster_id="c", source_topic_id="s", target_topic_id="t")) is None
    for now, word, case in [
        (Present(source_cluster_id="d"), "cluster-changed", "another cluster"),
        (Present(source_topic_id="x"), "topic-recreated", "another source topic"),
        (Present(target_topic_id="x"), "target-changed", "another target topic"),
        (Present(target_end=8), "target-changed", "an earlier end"),
        (Present(target_cut=4), "target-changed", "a truncated log"),
    ]:
        why = dealt_trouble(last, now)
        assert why is not None
        assert word in why
        golden(why, case)
