"""Topics that get other partitions: whatever happens, no record is lost or copied twice, and each follows one rule."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.ledger.units import reached_at
from ferry.model import Era, Receipt, Slice, TopicPartition
from ferry.plan.rules.planning_rules import Transform
from ferry.plan.rules.repartition import deal_of
from ferry.plan.rules.repartition_shares import Deal
from tests.pure.decide.dealt_model import KEYS, number_of, selects, wants
from tests.pure.decide.test_deal import SKIP, receipt
from tests.pure.decide.values import FACTS, RULES, dealt_slice, facts_with, part, place, starts_left, target, topic
from tests.tiers import examples


@dataclass
class World:
    """A source and what was written of it; `begun` is where its partitions were when a plan first saw them."""

    source: list[list[int]]
    log_starts: list[int]
    target: dict[int, list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))
    units: dict[TopicPartition, Receipt] = field(default_factory=dict)
    era: Era | None = None
    eras: list[Era] = field(default_factory=list)
    planned: list[Slice] = field(default_factory=list)
    passed: set[tuple[int, int]] = field(default_factory=set)
    begun: dict[int, int] = field(default_factory=dict)
    partitions: int = 0
    generation: int = 0

    def plan(
        self, digest: str, partitions: int, *, unled: int = -1, foreign: int = -1, skip: bool = True, budget: int = 100
    ) -> Deal | None:
        """Plan; None where the topic is refused. `unled` and `foreign`: a partition in trouble, on either side."""
        self.generation += 1
        served = [number for number in range(len(self.source)) if number != unled]
        parts = [part(log_start=self.log_starts[n], end=len(self.source[n]), start=self.log_starts[n]) for n in served]
        facts = facts_with(
            FACTS,
            source={
                "topics": {"t": topic("t", *parts, leaderless=tuple(n for n in (unled,) if 0 <= n < len(self.source)))}
            },
            target={"topics": {"a.t": target("a.t", *[10**6] * self.partitions)} if self.partitions else {}},
            lane={
                "units": self.units,
                "eras": {} if self.era is None else {"a.t": self.era},
                "starts": {place("t", n): at for n, at in self.begun.items()},
            },
            others={"foreign": {} if foreign < 0 else {place("a.t", foreign): 5}},
        )
        self.planned = []
        rule = Transform(name="x", partitions=max(partitions, self.partitions), digest=digest)
        found = deal_of(SKIP if skip else RULES, facts, facts.source.topics["t"], ["a.t"], rule, "run", self.generation)
        self.begun = {n: self.log_starts[n] for n in served} | self.begun
        if not isinstance(found, Deal):
            return None
        if found.is_new:
            self.eras.append(found.era)
        self.era, self.partitions = found.era, max(self.partitions, found.era.partitions)
        self.passed |= {(gap.source.partition, at) for gap in found.gaps for at in range(gap.start, gap.end)}
        limited = found.limited({need.source: budget for need in found.needs})
        self.planned = [
            dealt_slice(
                topic="t",
                target=one.target,
                starts=one.starts,
                ends=one.ends,
                slot=0,
                since=found.era.since,
                partitions=found.era.partitions,
                digest=found.era.digest,
            )
            for one in limited.lots
        ]
        return found

    def attempt(self, number: int, chunks: int, size: int) -> None:
        """Copy at most so many chunks of one unit, then die; nothing where the source has lost what it wants."""
        if not self.planned:
            return
        unit = self.planned[number % len(self.planned)]
        at = starts_left(unit, self.units.get(unit.target), self.generation)
        if any(start < low and start < end for start, low, end in zip(at, self.log_starts, unit.ends, strict=False)):
            return
        rows = [
            (part, offset)
            for part, keys in enumerate(self.source)
            for offset, key in enumerate(keys)
            if wants(unit, part, offset)
            and offset >= at[part]
            and selects(unit.transform_digest, key)
            and number_of(key, part, offset, unit.partitions) == unit.target.partition
        ]
        for _ in range(chunks):
            done, rows = rows[:size], rows[size:]
            reached = reached_at(unit, *done[-1]) if rows else unit.ends
            self.target[unit.target.partition] += [(*row, unit.transform_digest) for row in done]
            behind = len(self.target[unit.target.partition])
            self.units[unit.target] = receipt(
                unit.target.partition, reached, era=unit.since, generation=self.generation, target_next=behind
            )
            if not rows:
                return


DIGESTS = st.sampled_from(["all", "odd", "even"])
TROUBLED = st.integers(-1, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), DIGESTS, st.integers(1, 4), TROUBLED, TROUBLED, st.booleans(), st.integers(0, 7)),
        st.tuples(st.just("attempt"), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("append"), st.integers(0, 2), KEYS),
        st.tuples(st.just("retain"), st.integers(0, 2), st.integers(1, 4)),
        st.tuples(st.just("grow"), KEYS),
    ),
    max_size=25,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(source=st.lists(KEYS, min_size=1, max_size=3), steps=STEPS, wish=DIGESTS)
def test_each_record_is_dealt_once_by_one_rule_and_in_order(
    source: list[list[int]], steps: list[tuple[Any, ...]], wish: str
) -> None:
    world = World([list(keys) for keys in source], [0] * len(source))
    for step in steps:
        match step:
            case ("plan", digest, partitions, unled, foreign, skip, budget):
                world.plan(digest, partitions, unled=unled, foreign=foreign, skip=skip, budget=budget)
            case ("attempt", number, chunks, size):
                world.attempt(number, chunks, size)
            case ("append", at, keys):
                world.source[at % len(world.source)] += keys
            case ("retain", at, count):
                at %= len(world.source)
                world.log_starts[at] = min(len(world.source[at]), world.log_starts[at] + count)
            case ("grow", keys):
                world.source.append(list(keys))
                world.log_starts.append(0)
    found: Deal | None = None
    for _ in range(2):  # one plan may have to finish what the rule before began
        found = world.plan(wish, 3)
        assert found is not None
        assert not found.refusals
        for number in range(len(world.planned)):
            world.attempt(number, 1000, 2)
    assert found is not None
    assert not found.finishing
    written = [row[:2] for rows in world.target.values() for row in rows]
    assert len(written) == len(set(written))
    assert {(number, *row) for number, rows in world.target.items() for row in rows} >= expected(world)
    assert not set(written) - {row[1:3] for row in expected(world, also_passed=True)}
    for rows in world.target.values():
        for at in range(len(world.source)):
            offsets = [offset for number, offset, _ in rows if number == at]
            assert offsets == sorted(offsets)


def expected(world: World, *, also_passed: bool = False) -> set[tuple[int, int, int, str]]:
    """Each record by the rule of the era that its offset lies in; where policies passed over it, it may be missing."""
    rows: set[tuple[int, int, int, str]] = set()
    for number, keys in enumerate(world.source):
        for offset, key in enumerate(keys):
            own = [one for one in world.eras if (one.begins[number] if number < len(one.begins) else 0) <= offset]
            if not own or offset < world.begun[number] or (not also_passed and (number, offset) in world.passed):
                continue
            if selects(own[-1].digest, key):
                rows.add((number_of(key, number, offset, own[-1].partitions), number, offset, own[-1].digest))
    return rows
