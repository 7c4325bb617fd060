"""Topics whose records choose among several targets: each is written once, whichever names the file lists meanwhile."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.features.records.acts.cutoffs import Failure, cutoffs_at, narrowed
from ferry.ledger.units import least_dealt, reached_at
from ferry.model import ChangeKind, Era, Receipt, RefusalKind, Slice, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Transform
from ferry.plan.rules.repartition import deal_of
from ferry.plan.rules.repartition_shares import Deal
from ferry.policy import RoutedPolicy
from tests.golden import Golden
from tests.pure.decide.dealt_model import KEYS, number_of, selects, wants
from tests.pure.decide.test_deal import parse_plan_of, receipt
from tests.pure.decide.values import FACTS, RULES, facts_with, part, place, starts_left, target, topic
from tests.tiers import examples

NAMES = ("x", "y", "z")


def name_of(key: int) -> str:
    """The topic that a record goes to."""
    return NAMES[key % 3]


@dataclass
class World:
    """A source, and what was written of it by target partition."""

    source: list[list[int]]
    target: dict[TopicPartition, list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))
    units: dict[TopicPartition, Receipt] = field(default_factory=dict)
    rules: dict[str, Era] = field(default_factory=dict)
    """By target topic what the ledger has under `era`."""
    begun: list[tuple[Era, frozenset[str]]] = field(default_factory=list)
    planned: list[Slice] = field(default_factory=list)
    partitions: int = 1
    generation: int = 0

    def plan(self, digest: str, partitions: int, names: frozenset[str], foreign: int = -1, budget: int = 100) -> Deal:
        self.generation += 1
        self.partitions = max(partitions, self.partitions)
        at = place(NAMES[foreign % 3], foreign // 3) if foreign >= 0 else None
        facts = facts_with(
            FACTS,
            source={"topics": {"t": topic("t", *[part(log_start=0, end=len(keys), start=0) for keys in self.source])}},
            target={"topics": {name: target(name, *[10**6] * self.partitions) for name in NAMES}},
            lane={"units": self.units, "eras": self.rules},
            others={"foreign": {} if at is None else {at: 5}},
        )
        rule = Transform(name="t", partitions=self.partitions, digest=f"{digest} {sorted(names)}", targets=tuple(names))
        found = deal_of(
            RULES, facts, facts.source.topics["t"], sorted(names, reverse=True), rule, "run", self.generation
        )
        assert isinstance(found, Deal)
        if found.is_new:
            assert {era.target_topic for era in found.eras} == names
            self.begun.append((found.era, names))
        self.rules |= {era.target_topic: era for era in found.eras}
        limited = found.limited({need.source: budget for need in found.needs})
        units = [limited.slice_of(one, 0) for one in limited.lots]
        assert len({unit.source for unit in units}) == len(units), "each has a number of its own"
        self.planned = self.without_unknown(units, frozenset(found.targets))
        return found

    def without_unknown(self, units: list[Slice], names: frozenset[str]) -> list[Slice]:
        """As the job: no unit goes past a record whose name the rule does not know."""
        failures: dict[TopicPartition, Failure] = {}
        for number, keys in enumerate(self.source):
            for offset, key in enumerate(keys):
                asked = any(wants(unit, number, offset) for unit in units)
                if asked and name_of(key) not in names and selects(units[0].transform_digest.split()[0], key):
                    failure = Failure(kind=RefusalKind.TRANSFORM, message="", offset=offset)
                    failures.setdefault(place("t", number), failure)
        return [narrowed(unit, cutoffs_at(failures)) for unit in units]

    def attempt(self, number: int, chunks: int, size: int) -> None:
        """Copy at most so many chunks of one unit, then die."""
        if not self.planned:
            return
        unit = self.planned[number % len(self.planned)]
        at = starts_left(unit, self.units.get(unit.target), self.generation)
        rows = [
            (source, offset)
            for source, keys in enumerate(self.source)
            for offset, key in enumerate(keys)
            if wants(unit, source, offset)
            and offset >= at[source]
            and selects(unit.transform_digest.split()[0], key)
            and name_of(key) == unit.target.topic
            and number_of(key, source, offset, unit.partitions) == unit.target.partition
        ]
        for _ in range(chunks):
            done, rows = rows[:size], rows[size:]
            reached = reached_at(unit, *done[-1]) if rows else unit.ends
            self.target[unit.target] += [(*row, unit.transform_digest) for row in done]
            behind = len(self.target[unit.target])
            last = receipt(0, reached, era=unit.since, generation=self.generation, target_next=behind)
            self.units[unit.target] = replace(last, target=unit.target, target_topic_id=f"id-{unit.target.topic}")
            if not rows:
                return


SOME_NAMES = st.frozensets(st.sampled_from(NAMES), min_size=1)
DIGESTS = st.sampled_from(["all", "odd"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), DIGESTS, st.integers(1, 2), SOME_NAMES, st.integers(-1, 5), st.integers(0, 7)),
        st.tuples(st.just("attempt"), st.integers(0, 5), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("append"), st.integers(0, 2), KEYS),
        st.tuples(st.just("grow"), KEYS),
    ),
    max_size=25,
)


@settings(max_examples=examples(400), deadline=None)
@given(source=st.lists(KEYS, min_size=1, max_size=3), steps=STEPS)
def test_each_record_is_written_once_to_the_topic_that_it_names(
    source: list[list[int]], steps: list[tuple[Any, ...]]
) -> None:
    world = World([list(keys) for keys in source])
    world.plan("all", 1, frozenset("x"))
    for step in steps:
        match step:
            case ("plan", digest, partitions, names, foreign, budget):
                world.plan(digest, partitions, names | {"x"}, foreign, budget)  # one stays: else it is a new copy
            case ("attempt", number, chunks, size):
                world.attempt(number, chunks, size)
            case ("append", at, keys):
                world.source[at % len(world.source)] += keys
            case ("grow", keys):
                world.source.append(list(keys))
    deals = []
    for _ in range(2):  # one plan may have to finish what the rule before began
        deals.append(world.plan("all", 2, frozenset(NAMES)))
        for number in range(len(world.planned)):
            world.attempt(number, 1000, 2)
    assert not deals[-1].finishing
    assert not deals[-1].refusals
    rows = [(at, *row) for at, some in world.target.items() for row in some]
    assert len(rows) == len(set(rows))
    assert set(rows) == expected(world)
    for some in world.target.values():
        for number in range(len(world.source)):
            offsets = [offset for source, offset, _ in some if source == number]
            assert offsets == sorted(offsets)
    assert least_dealt(world.rules.values(), world.units.values()) == {
        place("t", number): len(keys) for number, keys in enumerate(world.source)
    }


def expected(world: World) -> set[tuple[TopicPartition, int, int, str]]:
    """Each record by the rule of the era that its offset lies in, which has to know the topic that it names."""
    found = set()
    for number, keys in enumerate(world.source):
        for offset, key in enumerate(keys):
            begins = [(era.begins[number] if number < len(era.begins) else 0, era, names) for era, names in world.begun]
            era, names = [(era, names) for begin, era, names in begins if begin <= offset][-1]
            if selects(era.digest.split()[0], key):
                assert name_of(key) in names, "no rule passes a name that it does not know"
                at = place(name_of(key), number_of(key, number, offset, era.partitions))
                found.add((at, number, offset, era.digest))
    return found


# In a plan

SPLIT = Transform(name="split", partitions=2, digest="d", targets=("y", "x"))
BY_NAME = replace(
    RULES,
    policy=RoutedPolicy(
        base=RULES.policy,
        route=lambda name, copy: "y" if name == "t" else copy,
        several=lambda name, _: SPLIT.targets if name == "t" else (),
    ),
    transform_of=lambda name: SPLIT if name == "t" else None,
)
FIRST: Facts = facts_with(
    FACTS, source={"topics": {"t": topic("t", part(), part())}}, target={"defaults": {}}, lane={"first_run": True}
)


def test_all_topics_are_created_and_each_has_its_units() -> None:
    plan = decide_plan(BY_NAME, FIRST, "r", 7)
    assert not plan.refusals
    assert [(change.kind, change.topic, change.partitions) for change in plan.changes] == [
        (ChangeKind.CREATE, "x", 2),
        (ChangeKind.CREATE, "y", 2),
    ]
    assert {unit.target: unit.source.partition for unit in plan.dealt} == {
        place("x", 0): 0,
        place("x", 1): 1,
        place("y", 0): 2,
        place("y", 1): 3,
    }
    assert {(era.target_topic, era.since) for era in plan.eras} == {("x", 7), ("y", 7)}
    assert plan.copies == (("t", "x"), ("t", "y"))
    assert parse_plan_of(plan) == plan


def test_one_name_that_cannot_be_written_stops_the_topic_and_says_which(golden: Golden) -> None:
    (other,) = decide_plan(BY_NAME, facts_with(FIRST, lane={"claims": {"x": "other"}}), "r", 7).refusals
    golden(other.message)
    assert not decide_plan(BY_NAME, facts_with(FIRST, lane={"claims": {"y": RULES.lane}}), "r", 7).refusals
    both = facts_with(FIRST, source={"topics": {"t": FIRST.source.topics["t"], "x": topic("x", part())}})
    assert isinstance(BY_NAME.policy, RoutedPolicy)
    clash = decide_plan(
        replace(BY_NAME, policy=replace(BY_NAME.policy, route=lambda name, copy: {"t": "y"}.get(name, name))),
        both,
        "r",
        7,
    )
    assert {one.topic: one.kind for one in clash.refusals} == {
        "t": RefusalKind.NAME_CLASH,
        "x": RefusalKind.NAME_CLASH,
    }


def test_a_lane_with_scratch_topics_has_none_for_it(golden: Golden) -> None:
    (one,) = decide_plan(replace(BY_NAME, scratch=True), FIRST, "r", 7).refusals
    golden(one.message)


def test_a_rule_that_the_ledger_has_for_some_of_its_topics_alone_begins_anew() -> None:
    """The process died between two records of it: nothing was written by it."""
    begun = Era(source_topic="t", target_topic="x", since=5, begins=(0, 0), digest="d", partitions=2)
    plan = decide_plan(BY_NAME, facts_with(FIRST, lane={"eras": {"x": begun}, "first_run": False}), "r", 7)
    assert {(era.target_topic, era.since) for era in plan.eras} == {("x", 7), ("y", 7)}
    assert {unit.target.topic for unit in plan.dealt} == {"x", "y"}
    both = facts_with(
        FIRST, lane={"eras": {name: replace(begun, target_topic=name) for name in ("x", "y")}, "first_run": False}
    )
    assert {era.since for era in decide_plan(BY_NAME, both, "r", 7).eras} == {5}
