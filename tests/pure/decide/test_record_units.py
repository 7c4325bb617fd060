"""Units against a plain model: whatever stops a run, each record is written once, by one rule, and in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.errors import BadInput
from ferry.ledger.units import (
    Log,
    is_done,
    is_level,
    joined,
    reached_at,
    read_ranges,
    replanned,
    standings,
)
from ferry.model import Era, Flow, Offsets, Reads, Receipt, Slice, TopicPartition
from tests.golden import Golden
from tests.pure.decide.dealt_model import KEYS, number_of, selects, wants
from tests.pure.decide.values import dealt_slice, reading, starts_left
from tests.tiers import examples

FLOW = Flow(source="a", target="b")


def era(since: int = 0, begins: Offsets = (0,), digest: str = "all", partitions: int = 1) -> Era:
    return Era(source_topic="t", target_topic="a.t", since=since, begins=begins, digest=digest, partitions=partitions)


def receipt(number: int, of: Era, reached: Offsets, begins: Offsets = (0,), generation: int = 0) -> Receipt:
    return Receipt(
        flow=FLOW,
        lane="live",
        run="r",
        generation=generation,
        slot=0,
        source=TopicPartition("t", number),
        target=TopicPartition("a.t", number),
        start=sum(begins),
        end=sum(reached),
        target_next=None,
        segments=(),
        records=0,
        bytes=0,
        batches=0,
        digest="",
        at_ms=0,
        since=of.since,
        transform_digest=of.digest,
        reads=Reads(starts=begins, ends=reached),
    )


@dataclass
class World:
    """A source, a target, and the last receipts; `plan` and `attempt` are all that happens to them."""

    source: list[list[int]]
    """The key of each record, by partition and offset."""
    target: dict[int, list[tuple[int, int, str]]] = field(default_factory=dict)
    """By partition what was written: source partition, offset, and by which rule."""
    lasts: dict[int, Receipt] = field(default_factory=dict)
    era: Era | None = None
    eras: list[Era] = field(default_factory=list)
    generation: int = 0
    units: list[Slice] = field(default_factory=list)

    def plan(self, digest: str, partitions: int) -> bool:
        """Plan; whether the wish is in force."""
        self.generation += 1
        wish = era(self.generation, (0,) * len(self.source), digest, partitions)
        found = replanned(self.era, self.lasts.values(), wish, [Log(0, len(part)) for part in self.source])
        assert not found.passed
        assert not found.cut
        if found.era != self.era:
            self.eras.append(found.era)
        self.era = found.era
        self.units = [
            dealt_slice(
                topic="t",
                target=TopicPartition("a.t", number),
                starts=starts,
                ends=ends,
                slot=0,
                since=found.era.since,
                partitions=found.era.partitions,
                digest=found.era.digest,
            )
            for number, (starts, ends) in enumerate(found.ranges)
        ]
        return not found.finishing

    def attempt(self, number: int, chunks: int, size: int) -> None:
        """Copy at most so many chunks of one unit, then die."""
        unit = self.units[number % len(self.units)]
        target = unit.target.partition
        last = self.lasts.get(target)
        at = starts_left(unit, last, self.generation)
        rows = [
            (part, offset)
            for part, keys in enumerate(self.source)
            for offset, key in enumerate(keys)
            if wants(unit, part, offset)
            and offset >= at[part]
            and selects(unit.transform_digest, key)
            and number_of(key, part, offset, unit.partitions) == target
        ]
        for _ in range(chunks):
            done, rows = rows[:size], rows[size:]
            reached = reached_at(unit, *done[-1]) if rows else unit.ends
            assert sum(reached) >= sum(at)  # receipts ascend
            self.target.setdefault(target, []).extend((*place, unit.transform_digest) for place in done)
            assert self.era is not None
            self.lasts[target] = receipt(target, self.era, reached, at, self.generation)
            at = reached
            if not rows:
                return


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), st.sampled_from(["all", "odd", "even"]), st.integers(1, 4)),
        st.tuples(st.just("attempt"), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("append"), st.integers(0, 2), KEYS),
        st.tuples(st.just("grow"), KEYS),
    ),
    max_size=25,
)


def assert_once_by_one_rule(world: World) -> None:
    written = [(part, offset) for rows in world.target.values() for part, offset, _ in rows]
    assert len(written) == len(set(written))
    expected: set[tuple[int, int, int, str]] = set()
    for part, keys in enumerate(world.source):
        for offset, key in enumerate(keys):
            own = [e for e in world.eras if (e.begins[part] if part < len(e.begins) else 0) <= offset][-1]
            if selects(own.digest, key):
                expected.add((number_of(key, part, offset, own.partitions), part, offset, own.digest))
    assert {(number, *row) for number, rows in world.target.items() for row in rows} == expected


def assert_in_order(world: World) -> None:
    for rows in world.target.values():
        for part in range(len(world.source)):
            offsets = [offset for found, offset, _ in rows if found == part]
            assert offsets == sorted(offsets)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(source=st.lists(KEYS, min_size=1, max_size=3), steps=STEPS, wish=st.sampled_from(["all", "odd", "even"]))
def test_each_record_is_written_once_by_one_rule_and_in_order(
    source: list[list[int]], steps: list[tuple[Any, ...]], wish: str
) -> None:
    world = World([list(keys) for keys in source])
    world.plan("all", 2)
    for step in steps:
        match step:
            case ("plan", digest, partitions):
                world.plan(digest, partitions)
            case ("attempt", number, chunks, size):
                world.attempt(number, chunks, size)
            case ("append", part, keys):
                world.source[part % len(world.source)] += keys
            case ("grow", keys):
                world.source.append(list(keys))
    in_force = False
    for _ in range(2):  # one plan may have to finish what the rule before began
        in_force = world.plan(wish, 3)
        for number in range(len(world.units)):
            world.attempt(number, 1000, 2)
    assert in_force
    assert_once_by_one_rule(world)
    assert_in_order(world)


def test_a_changed_rule_waits_until_all_partitions_stand_at_one_place() -> None:
    old = era(since=7, begins=(0, 0), digest="old", partitions=2)
    lasts = [receipt(0, old, (5, 3)), receipt(1, old, (5, 1))]
    logs = [Log(0, 9), Log(0, 9)]
    wish = era(since=8, digest="new", partitions=3)

    first = replanned(old, lasts, wish, logs)

    assert first.finishing
    assert first.era == old
    assert first.ranges == (((5, 3), (5, 3)), ((5, 1), (5, 3)))

    second = replanned(old, [lasts[0], receipt(1, old, (5, 3))], wish, logs)

    assert not second.finishing
    assert second.era == replace(wish, begins=(5, 3))
    assert second.ranges == (((5, 3), (9, 9)),) * 3


def test_what_retention_took_and_what_was_cut_is_told() -> None:
    old = era(since=7, begins=(0, 0), partitions=1)
    found = replanned(old, [receipt(0, old, (5, 8))], old, [Log(6, 9), Log(0, 7)])
    assert found.passed == ((0, 5, 6),)
    assert found.cut == ((1, 8, 7),)
    assert found.ranges[0][0][0] == 6


def test_a_source_with_fewer_partitions_is_another_one(golden: Golden) -> None:
    old = era(since=7, begins=(0, 0))
    with pytest.raises(BadInput) as caught:
        replanned(old, [], old, [Log(0, 9)])
    golden(caught.value)


def test_receipts_of_an_earlier_era_do_not_move_a_partition() -> None:
    new = era(since=9, begins=(4,), partitions=2)
    assert standings(new, [receipt(0, era(since=7), (9,))]) == [(4,), (4,)]
    assert joined([(1, 5), (3,)]) == (3, 5)
    assert is_level([(1, 0), (1,)])
    assert not is_level([(1, 0), (2,)])


def test_what_is_read_covers_what_each_unit_wants() -> None:
    one = dealt_slice(
        topic="t",
        target=TopicPartition("a.t", 0),
        starts=(2, 0),
        ends=(5, 0),
        slot=0,
        since=1,
        partitions=2,
        digest="all",
    )
    two = reading(one, target=TopicPartition("a.t", 1), starts=(4, 0), ends=(9, 0))
    assert read_ranges([one, two]) == {TopicPartition("t", 0): (2, 9)}
    last = receipt(0, era(since=1), (5, 0), generation=3)
    assert is_done(one, last)
    assert not is_done(two, last)
    assert not is_done(one, None)
