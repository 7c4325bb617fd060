"""Topics that get other partitions: what stands against them, and that nothing is lost or doubled by what happens."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.errors import Refused
from ferry.ledger.plan_codec import parse_plan, plan_records
from ferry.ledger.source_reads import Read, reads_of_units
from ferry.ledger.units import least_dealt, reached_at
from ferry.messages.phrases import ANEW
from ferry.model import Era, Pause, Plan, Reads, Receipt, Refusal, RefusalKind, Slice, TopicPartition, Vector
from ferry.model.observed import BrokerSpace, OpenTransaction
from ferry.model.topic_settings import TopicSettings
from ferry.plan.rules.facts import Seen, SourceTopic
from ferry.plan.rules.lag import lag_of
from ferry.plan.rules.planning import decide_plan, without_foreign
from ferry.plan.rules.repartition import deal_of
from ferry.plan.rules.repartition_refusals import dealt_before
from ferry.plan.rules.repartition_shares import Deal
from ferry.plan.rules.rules import Rules, Transform
from ferry.plan.rules.skipping import SkipRequest, skip_gap
from tests.golden import Golden
from tests.pure.decide.dealt_model import KEYS, number_of, selects, wants
from tests.pure.decide.values import (
    FACTS,
    FLOW,
    LANE,
    RECEIPT,
    RULES,
    dealt_slice,
    facts_with,
    part,
    place,
    redealt,
    starts_left,
    target,
    topic,
)
from tests.said import codes, facts_in
from tests.tiers import examples

SKIP = replace(RULES, guards=Guards(retention_passed=GuardPolicy(default=OnGuard.SKIP)))
RULE = Transform(name="small", partitions=2, digest="all")
ERA = Era(
    source_topic="t",
    target_topic="a.t",
    since=1,
    begins=(0, 0),
    digest="all",
    partitions=2,
    source_topic_id="id-t",
    target_topic_id="id-a.t",
)


def receipt(number: int, reached: Vector, *, era: int = 1, generation: int = 1, target_next: int = -1) -> Receipt:
    return Receipt(
        flow=FLOW,
        lane=LANE,
        run="r",
        generation=generation,
        slot=0,
        source=place("t", number),
        target=place("a.t", number),
        start=0,
        end=sum(reached),
        target_next=target_next,
        segments=(),
        records=0,
        bytes=0,
        batches=0,
        digest="",
        at_ms=0,
        since=era,
        transform_digest="all",
        reads=Reads(starts=(0,) * len(reached), ends=reached),
        source_topic_id="id-t",
        target_topic_id="id-a.t",
        source_cluster_id="cluster-a",
    )


HALF = {one.target: one for one in (receipt(0, (5, 3), target_next=4), receipt(1, (5, 1), target_next=3))}
TWO = topic("t", part(end=9), part(end=9))
FACTS_HALF = facts_with(
    FACTS,
    source={"topics": {"t": TWO}},
    target={"topics": {"a.t": target("a.t", 5, 4)}},
    lane={"units": HALF, "eras": {"a.t": ERA}, "claims": {"a.t": LANE}},
)


def dealt(rule: Transform = RULE, rules: Rules = RULES, of: SourceTopic = TWO, **facts: Any) -> Deal:
    found = deal_of(rules, facts_with(FACTS_HALF, **facts), of, ["a.t"], rule, "run", 7)
    assert isinstance(found, Deal), found
    return found


def refused(rule: Transform = RULE, rules: Rules = RULES, of: SourceTopic = TWO, **facts: Any) -> tuple[Refusal, ...]:
    found = deal_of(rules, facts_with(FACTS_HALF, **facts), of, ["a.t"], rule, "run", 7)
    assert isinstance(found, tuple), found
    return found


def test_each_target_partition_goes_on_where_it_stands() -> None:
    found = dealt()
    assert not found.is_new
    assert not found.finishing
    assert [(one.starts, one.ends) for one in found.lots] == [((5, 3), (9, 9)), ((5, 1), (9, 9))]
    assert [(need.source.partition, need.start, need.offsets) for need in found.needs] == [(0, 5, 4), (1, 1, 8)]
    assert found.needs[0].bytes == 4 * (10_000 // 9)
    cut = found.limited({place("t", 0): 2, place("t", 1): 3})
    assert [(one.starts, one.ends) for one in cut.lots] == [((5, 3), (7, 4)), ((5, 1), (7, 4))]
    nothing = found.limited({})
    assert [one.offsets for one in nothing.lots] == [0, 0]


def test_what_was_read_furthest_in_each_leader_epoch_is_held_against_the_source() -> None:
    ahead = redealt(receipt(0, (5, 3, 0)), epochs=(2, 1))
    behind = redealt(receipt(1, (5, 1)), epochs=(1, 1))
    assert reads_of_units([ahead, behind]) == [
        Read(place("t", 0), 1, 5),  # what one unit has may be cut where another has what came in its place
        Read(place("t", 0), 2, 5),
        Read(place("t", 1), 1, 3),
    ]
    further = redealt(receipt(1, (9, 1)), epochs=(1, 1))
    assert reads_of_units([ahead, further])[:2] == [Read(place("t", 0), 2, 5), Read(place("t", 0), 1, 9)]
    assert reads_of_units([receipt(1, (4, 9))]) == [Read(place("t", 0), -1, 4), Read(place("t", 1), -1, 9)]


def test_a_part_is_read_from_the_log_of_its_receipt_where_it_goes_on_there() -> None:
    read = {place("a.t", 0): redealt(receipt(0, (5, 3), target_next=4), epochs=(2, 1))}
    first, second = dealt(lane={"units": read}).lots
    deal = dealt(lane={"units": read})
    assert deal.slice_of(first, 0).epochs == (2, 1)
    assert deal.slice_of(second, 0).epochs == ()
    assert deal.slice_of(replace(first, starts=(5, 8)), 0).epochs == (2, -1), "what was skipped nobody read"
    old = replace(first, last=redealt(read[place("a.t", 0)], epochs=()))
    assert deal.slice_of(old, 0).epochs == ()


def test_a_changed_rule_waits_and_then_says_that_it_counts(golden: Golden) -> None:
    waiting = dealt(RULE._replace(digest="few"))
    assert waiting.finishing
    assert [(one.starts, one.ends) for one in waiting.lots] == [((5, 3), (5, 3)), ((5, 1), (5, 3))]
    golden(waiting.notes[0])
    level = {**HALF, place("a.t", 1): receipt(1, (5, 3), target_next=3)}
    begun = dealt(RULE._replace(digest="few", partitions=3, text="text"), lane={"units": level})
    assert begun.is_new
    assert begun.era == replace(ERA, since=7, begins=(5, 3), digest="few", partitions=3, spec="text")
    assert [one.starts for one in begun.lots] == [(5, 3)] * 3
    assert codes(begun.notes) == ["transform.begun"]
    (fewer,) = refused(RULE._replace(partitions=1), lane={"units": level})
    assert fewer.kind is RefusalKind.PARTITION_COUNT
    assert "ferry.transform.small.partitions = 2" in fewer.message


def test_a_copy_that_is_empty_and_too_wide_may_be_deleted() -> None:
    (found,) = refused(lane={"units": {}, "eras": {}}, target={"topics": {"a.t": target("a.t", 0, 0, 0)}})
    assert "delete the target topic" in found.message


def test_a_source_partition_in_trouble_is_left_out_of_all(golden: Golden) -> None:
    short = topic("t", part(end=9), part(log_start=4, end=9))
    found = dealt(of=short)
    assert [(one.topic, one.partition, one.kind) for one in found.refusals] == [("t", 1, RefusalKind.RETENTION_PASSED)]
    assert [(one.starts, one.ends) for one in found.lots] == [((5, 3), (9, 3)), ((5, 1), (9, 1))]
    lifted = dealt(rules=SKIP, of=short)
    assert not lifted.refusals
    assert [(gap.source, gap.start, gap.end, gap.generation) for gap in lifted.gaps] == [(place("t", 1), 1, 4, 7)]
    assert facts_in(lifted.notes[0])["key"] == "ferry.guard.retention.passed"
    assert [one.starts for one in lifted.lots] == [(5, 4), (5, 4)]
    # And what nobody has any more keeps a changed rule no longer waiting.
    assert dealt(RULE._replace(digest="few"), SKIP, short).era.begins == (5, 4)

    cut = dealt(of=topic("t", part(end=4), part(end=9)))
    assert [(one.partition, one.kind) for one in cut.refusals] == [(0, RefusalKind.SOURCE_TRUNCATED)]
    assert [(one.starts, one.ends) for one in cut.lots] == [((5, 3), (5, 9)), ((5, 1), (5, 9))]
    # Others have filled it up again since: leader epochs alone tell.
    filled = dealt(of=topic("t", replace(part(end=9), diverged=4), part(end=9)))
    assert [(one.partition, one.kind) for one in filled.refusals] == [(0, RefusalKind.SOURCE_TRUNCATED)]
    golden(filled.refusals[0].message)
    assert [one.ends for one in filled.lots] == [(5, 9), (5, 9)]
    held = dealt(of=topic("t", replace(part(end=4), high_watermark=6), part(end=9)))
    assert not held.refusals  # an open transaction, no cut
    assert [one.ends for one in held.lots] == [(5, 9), (5, 9)]

    unled = dealt(of=topic("t", part(end=9), leaderless=(0,)))
    assert [(one.partition, one.kind) for one in unled.refusals] == [(0, RefusalKind.NO_LEADER)]
    assert [(one.starts, one.ends) for one in unled.lots] == [((5, 3), (5, 9)), ((5, 1), (5, 9))]
    looped = dealt(others={"returned": {place("t", 0): ((6, 7),)}})
    assert [(one.partition, one.kind) for one in looped.refusals] == [(0, RefusalKind.LOOP)]
    assert [one.ends for one in looped.lots] == [(5, 9), (5, 9)]


def test_a_compacted_topic_that_rested_too_long_is_refused_or_skipped() -> None:
    resting: dict[str, Any] = {
        "lane": {
            "dealt": {place("t", 0): 5, place("t", 1): 1},
            "seen": {place("t", 1): Seen(whole_ms=0, asked_ms=0, asked_end=2)},
        },
        "now_ms": 10**9,
    }
    compacted = replace(
        TWO, settings=TopicSettings(own={"cleanup.policy": "compact", "delete.retention.ms": "1000"}, inherited={})
    )
    assert compacted.delete_retention_ms == 1000
    found = dealt(of=compacted, **resting)
    assert [(one.partition, one.kind) for one in found.refusals] == [(1, RefusalKind.TOMBSTONES_PASSED)]
    assert found.refusals[0].message.endswith(f"or {ANEW}")
    assert [one.ends for one in found.lots] == [(9, 3), (9, 1)]
    lenient = replace(RULES, guards=Guards(tombstones_passed=GuardPolicy(default=OnGuard.SKIP)))
    lifted = dealt(rules=lenient, of=compacted, **resting)
    assert not lifted.refusals
    assert [(gap.source, gap.start, gap.end, gap.why) for gap in lifted.gaps] == [
        (place("t", 1), 1, 1, RefusalKind.TOMBSTONES_PASSED)
    ]
    assert facts_in(lifted.notes[0])["key"] == "ferry.guard.tombstones.passed"


def test_a_target_partition_in_trouble_has_no_part() -> None:
    cases: list[tuple[dict[str, Any], RefusalKind]] = [
        ({"others": {"foreign": {place("a.t", 1): 4}}}, RefusalKind.FOREIGN_WRITER),
        (
            {"others": {"open_transactions": {place("a.t", 1): OpenTransaction(producer_id=1, start=4, last_ms=0)}}},
            RefusalKind.FOREIGN_WRITER,
        ),
        ({"target": {"cut": {place("a.t", 1): 2}}}, RefusalKind.TARGET_CHANGED),
        ({"target": {"topics": {"a.t": target("a.t", 5, 2)}}}, RefusalKind.TARGET_CHANGED),
        (
            {"target": {"topics": {"a.t": target("a.t", 5, 4, replicas={1: (1, 3)}, min_in_sync=2)}}},
            RefusalKind.TOO_FEW_REPLICAS,
        ),
    ]
    for facts, kind in cases:
        found = dealt(**facts)
        assert [(one.partition, one.kind) for one in found.refusals] == [(1, kind)]
        assert [one.target.partition for one in found.lots] == [0]


def test_a_first_copy_waits_for_all_partitions_of_the_source() -> None:
    first: dict[str, Any] = {"lane": {"units": {}, "eras": {}, "first_run": True}, "target": {"topics": {}}}
    found = refused(of=topic("t", part(), leaderless=(1,)), **first)
    assert [(one.partition, one.kind) for one in found] == [(1, RefusalKind.NO_LEADER), (None, RefusalKind.NO_LEADER)]
    begun = dealt(of=topic("t", part(log_start=3, start=3), part(start=60)), **first)
    assert begun.is_new
    assert begun.era.begins == (3, 60)
    assert not begun.notes
    # A partition that came later and has no leader waits, with those behind it; the others do not.
    later = dealt(of=topic("t", part(end=9), part(end=9), part(end=9), leaderless=(2,)))
    assert {len(one.starts) for one in later.lots} == {2}


def test_a_new_source_partition_begins_where_a_plan_first_saw_it() -> None:
    grown = topic("t", part(end=9), part(end=9), part(log_start=5, end=9))
    assert [one.starts[2] for one in dealt(of=grown).lots] == [5, 5]
    late = dealt(of=grown, lane={"starts": {place("t", 2): 2}})
    assert [(one.partition, one.kind) for one in late.refusals] == [(2, RefusalKind.RETENTION_PASSED)]


@pytest.mark.parametrize(
    ("facts", "kind", "says"),
    [
        (
            {"lane": {"receipts": {place("a.t"): replace(RECEIPT, target=place("a.t"))}}},
            RefusalKind.TRANSFORM,
            "by partition until",
        ),
        ({"target": {"topics": {}}}, RefusalKind.TARGET_CHANGED, "is gone"),
        (
            {"target": {"topics": {"a.t": target("a.t", 5, 4, topic_id="new")}}},
            RefusalKind.TARGET_CHANGED,
            "created again",
        ),
        ({"target": {"topics": {"a.t": target("a.t", 5)}}}, RefusalKind.TARGET_CHANGED, "fewer than were written"),
        ({"source": {"cluster_id": "other"}}, RefusalKind.CLUSTER_CHANGED, "from another cluster"),
        # A driver that was overtaken has put an older rule back: each partition would begin at its beginning again.
        ({"lane": {"eras": {"a.t": replace(ERA, since=0)}}}, RefusalKind.LEDGER_BEHIND, "current rule is older"),
    ],
)
def test_what_stands_against_the_whole_topic_is_one_sentence(facts: dict[str, Any], kind: str, says: str) -> None:
    (found,) = refused(**facts)
    assert (found.topic, found.partition, found.kind) == ("t", None, kind)
    assert says in found.message


def test_another_source_topic_of_the_name_is_refused() -> None:
    (again,) = refused(of=replace(TWO, topic_id="new"))
    assert again.kind is RefusalKind.TOPIC_RECREATED
    (fewer,) = refused(of=replace(topic("t", part()), topic_id=""))
    assert fewer.kind is RefusalKind.TOPIC_RECREATED


def test_windows_and_shared_topics_are_refused() -> None:
    for rules in (replace(RULES, lane="backfill-x"), replace(RULES, merges=lambda _: True)):
        (found,) = refused(rules=rules)
        assert found.kind is RefusalKind.TRANSFORM
    assert dealt_before(FACTS.lane, "t", "a.t") is None
    before = dealt_before(FACTS_HALF.lane, "t", "a.t")
    assert before is not None
    assert "repartitioned into 2 partitions" in before.message


# Whatever happens


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


# In a plan

DEALT = replace(RULES, max_tasks=3, transform_of=lambda name: RULE._replace(partitions=4) if name == "t" else None)
BESIDE = facts_with(
    FACTS,
    source={"topics": {"t": topic("t", part(), part()), "u": topic("u", part())}},
    target={"defaults": {}},
    lane={"first_run": True},
)


def test_units_are_planned_beside_slices_in_slots_of_their_own() -> None:
    plan = decide_plan(DEALT, BESIDE, "r", 7)
    assert {piece.source.topic for piece in plan.kept} == {"u"}
    assert [(unit.target, unit.starts, unit.ends, unit.since, unit.partitions) for unit in plan.dealt] == [
        (place("a.t", number), (0, 0), (100, 100), 7, 4) for number in range(4)
    ]
    assert [(era.since, era.partitions, era.begins) for era in plan.eras] == [(7, 4, (0, 0))]
    assert not set(plan.row_slots) & {piece.slot for piece in plan.kept}
    assert set(plan.used_slots) <= {0, 1, 2}
    created = {change.topic: change.partitions for change in plan.changes}
    assert created == {"a.t": 4, "a.u": 1}
    assert plan.version == 2
    assert parse_plan_of(plan) == plan


def parse_plan_of(plan: Plan) -> Plan:
    *parts, seal = plan_records(plan)
    return parse_plan({number: part.value or b"" for number, part in enumerate(parts)}, seal.value or b"", "the plan")


def test_budgets_are_shared_by_slices_and_units() -> None:
    plan = decide_plan(replace(DEALT, max_records=90), BESIDE, "r", 7)
    assert [piece.offsets for piece in plan.kept] == [30]
    assert {unit.ends for unit in plan.dealt} == {(30, 30)}
    half = decide_plan(replace(DEALT, max_bytes=15_000), BESIDE, "r", 7)
    assert [piece.offsets for piece in half.kept] == [50]
    assert {unit.ends for unit in half.dealt} == {(50, 50)}


def test_disks_without_room_refuse_units_too() -> None:
    space = {1: BrokerSpace(total=1_000_000, usable=201_000)}
    wide = replace(target("a.t", 0, 0, 0, 0), brokers=dict.fromkeys(range(4), (1,)))
    facts = facts_with(BESIDE, target={"topics": {"a.t": wide}, "space": space, "brokers": 1})
    plan = decide_plan(replace(DEALT, free_percent=20), facts, "r", 7)
    assert not plan.dealt
    assert not plan.eras
    assert [(one.topic, one.partition, one.kind) for one in plan.refusals] == [
        ("t", None, RefusalKind.NO_SPACE),
        ("u", None, RefusalKind.NO_SPACE),
    ]


def test_a_topic_that_another_lane_claimed_meanwhile_has_no_units_and_no_rule() -> None:
    plan = without_foreign(decide_plan(DEALT, BESIDE, "r", 7), {"a.t": "other"})
    assert not plan.dealt
    assert not plan.eras
    assert [one.kind for one in plan.refusals] == [RefusalKind.OWNED]
    assert {piece.source.topic for piece in plan.kept} == {"u"}


def test_a_caught_up_topic_has_no_units_and_a_paused_one_no_word() -> None:
    done = {place("a.t", number): receipt(number, (9, 9), target_next=4) for number in range(2)}
    facts = facts_with(FACTS_HALF, lane={"units": done})
    plan = decide_plan(replace(DEALT, transform_of=lambda _: RULE), facts, "r", 7)
    assert not plan.dealt
    assert plan.caught_up == 2
    paused = facts_with(facts, lane={"pauses": {"t": Pause(topic="t", since_ms=1, who="x", why="y")}})
    plan = decide_plan(replace(DEALT, transform_of=lambda _: RULE), paused, "r", 7)
    assert (plan.paused, plan.caught_up, plan.eras) == (("t",), 0, ())


def test_a_rule_that_cannot_be_carried_out_any_more_refuses_its_topic_alone(golden: Golden) -> None:
    rules = replace(DEALT, transform_of=lambda name: RULE._replace(digest="few") if name == "t" else None)
    facts = facts_with(
        FACTS_HALF,
        source={"topics": {**FACTS_HALF.source.topics, "u": topic("u", part())}},
        lane={"lost_rules": {"a.t": "PySpark is another"}},
    )
    plan = decide_plan(rules, facts, "r", 7)
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.kind) == ("t", RefusalKind.TRANSFORM)
    golden(refusal.message)
    assert {piece.source.topic for piece in plan.kept} == {"u"}


def test_a_place_that_is_passed_by_hand_is_passed_for_all_target_partitions(golden: Golden) -> None:
    rules = replace(RULES, transform_of=lambda name: RULE if name == "t" else None)
    facts = facts_with(FACTS_HALF, lane={"dealt": {place("t", 0): 5, place("t", 1): 1}})
    gap = skip_gap(rules, facts, SkipRequest(source=place("t", 1), to=4, who="x", reason="y"), "r", 7)
    assert (gap.start, gap.end, gap.why) == (1, 4, RefusalKind.STUCK)
    behind = dealt(lane={"dealt": facts.lane.dealt, "skips": {place("t", 1): (gap,)}})
    assert [one.starts for one in behind.lots] == [(5, 4), (5, 4)]
    assert not behind.gaps
    # Retention has taken less than that, or more.
    short = dealt(
        of=topic("t", part(end=9), part(log_start=3)),
        lane={"dealt": facts.lane.dealt, "skips": {place("t", 1): (gap,)}},
    )
    assert not short.refusals
    more = dealt(
        of=topic("t", part(end=9), part(log_start=6)),
        lane={"dealt": facts.lane.dealt, "skips": {place("t", 1): (gap,)}},
    )
    assert [(one.partition, one.kind) for one in more.refusals] == [(1, RefusalKind.RETENTION_PASSED)]
    assert "records 4 to 5 were deleted" in more.refusals[0].message
    # A run that was opened meanwhile has copied some of it: the skip does not count.
    later = {**HALF, place("a.t", 1): receipt(1, (5, 2), target_next=3)}
    void = dealt(lane={"units": later, "dealt": {place("t", 0): 5, place("t", 1): 2}, "skips": {place("t", 1): (gap,)}})
    assert [one.starts for one in void.lots] == [(5, 3), (5, 2)]

    cut = facts_with(facts, source={"topics": {"t": topic("t", part(end=4), part(end=9))}})
    with pytest.raises(Refused, match="was since truncated to 4"):
        skip_gap(rules, cut, SkipRequest(source=place("t", 0), to=4, who="x", reason="y"), "r", 7)
    with pytest.raises(Refused) as caught:
        skip_gap(DEALT, BESIDE, SkipRequest(source=place("t"), to=9, who="x", reason="y"), "r", 7)
    golden(caught.value)


# Lag


def test_the_lag_of_a_dealt_topic_is_by_source_partitions_as_far_as_all_target_partitions_have_come() -> None:
    """Also of one without a leader; and a topic that is gone is not known, which is no health."""
    facts = facts_with(FACTS_HALF, lane={"dealt": least_dealt((ERA,), HALF.values())})
    lags = lag_of(facts, RULES.policy, "a")
    assert [(lag.source, lag.target.topic, lag.position, lag.records, lag.dealt) for lag in lags] == [
        (place("t", 0), "a.t", 5, 4, True),
        (place("t", 1), "a.t", 1, 8, True),
    ]
    headless = facts_with(facts, source={"topics": {"t": topic("t", part(end=9), leaderless=(1,))}})
    assert [(lag.position, lag.records, lag.dealt) for lag in lag_of(headless, RULES.policy, "a")] == [
        (5, 4, True),
        (1, None, True),
    ]
    gone = facts_with(facts, source={"topics": {}, "absent": frozenset({"t"})})
    assert [(lag.source, lag.target.topic, lag.position, lag.records) for lag in lag_of(gone, RULES.policy, "a")] == [
        (place("t", 0), "a.t", 5, None),
        (place("t", 1), "a.t", 1, None),
    ]
