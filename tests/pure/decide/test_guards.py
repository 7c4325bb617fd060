"""One fact that does not fit the last receipt refuses one partition, by name, with the values and a remedy."""

from dataclasses import replace

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.errors import Refused
from ferry.model import Plan, Position, RefusalKind
from ferry.model.observed import Unavailable
from ferry.plan.rules.facts import Facts, SourceTopic, TargetTopic
from ferry.plan.rules.guards import position_note
from ferry.plan.rules.planning import decide_plan
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, part, place, target, topic

OTHER = replace(
    RECEIPT, source=place("users"), target=place("a.users"), source_topic_id="id-users", target_topic_id="id-a.users"
)
DISK = Unavailable(kind=RefusalKind.STORAGE, why="broker 2 answers KafkaStorageError (56): look at its disk")
POSITION = Position(target_next=40, source_next=40, generation=3)

# Two topics, each copied up to offset 40 of 100; the source has gone on, the target stands where it was left.
SOUND = facts_with(
    FACTS,
    source={"topics": {name: topic(name, part()) for name in ("orders", "users")}},
    target={"topics": {name: target(name, 41) for name in ("a.orders", "a.users")}},
    lane={
        "receipts": {last.target: last for last in (RECEIPT, OTHER)},
        "positions": {last.target: POSITION for last in (RECEIPT, OTHER)},
        "claims": {"a.orders": "live", "a.users": "live"},
    },
)


def planned(facts: Facts) -> Plan:
    return decide_plan(RULES, facts, "run-2", 9)


def source(changed: SourceTopic) -> Facts:
    return facts_with(SOUND, source={"topics": {**SOUND.source.topics, "orders": changed}})


def at_target(changed: TargetTopic) -> Facts:
    return facts_with(SOUND, target={"topics": {**SOUND.target.topics, "a.orders": changed}})


def test_sound_facts_refuse_nothing_and_go_on_behind_the_last_receipt() -> None:
    plan = planned(SOUND)
    assert (plan.refusals, plan.notes) == ((), ())
    assert [(piece.source.topic, piece.start, piece.end) for piece in plan.slices] == [
        ("orders", 40, 100),
        ("users", 40, 100),
    ]


def test_the_usual_way_on_behind_what_retention_took_is_named_first(golden: Golden) -> None:
    (refusal,) = decide_plan(RULES, source(topic("orders", part(log_start=41))), "run", 7).refusals
    golden(refusal.message)


def test_what_retention_took_is_skipped_where_the_guard_says_so_and_kept_as_a_gap(golden: Golden) -> None:
    facts = source(topic("orders", part(log_start=51)))
    skipping = replace(RULES, guards=Guards(retention_passed=GuardPolicy(default=OnGuard.SKIP)))
    plan = decide_plan(skipping, facts, "run", 7)
    assert plan.refusals == ()
    (note,) = plan.notes
    golden(note)
    assert [(piece.source.topic, piece.start, piece.end) for piece in plan.slices] == [
        ("orders", 51, 100),
        ("users", 40, 100),
    ]
    (gap,) = plan.gaps
    assert (gap.source, gap.start, gap.end) == (place("orders"), 40, 51)
    assert (gap.why, gap.run, gap.at_ms) == (RefusalKind.RETENTION_PASSED, "run", facts.now_ms)


@pytest.mark.parametrize(
    "facts",
    [
        source(topic("orders", part(log_start=51), topic_id="id-new")),
        facts_with(
            source(topic("orders", part(log_start=51))), target={"topics": {"a.users": SOUND.target.topics["a.users"]}}
        ),
    ],
    ids=["another source topic", "no target topic"],
)
def test_nothing_else_is_lifted_with_it(facts: Facts) -> None:
    skipping = replace(RULES, guards=Guards(retention_passed=GuardPolicy(default=OnGuard.SKIP)))
    plan = decide_plan(skipping, facts, "run", 7)
    assert [refusal.topic for refusal in plan.refusals] == ["orders"]
    assert [piece.source.topic for piece in plan.slices] == ["users"]
    assert plan.gaps == ()


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (source(topic("orders", part(), topic_id="id-new")), RefusalKind.TOPIC_RECREATED),
        (source(topic("orders", part(log_start=51))), RefusalKind.RETENTION_PASSED),
        (source(topic("orders", part(end=39))), RefusalKind.SOURCE_TRUNCATED),
        (source(topic("orders", leaderless=(0,))), RefusalKind.NO_LEADER),
        (source(replace(topic("orders", leaderless=(0,)), unserved={0: DISK})), RefusalKind.STORAGE),
        (at_target(replace(target("a.orders", 41), ends={}, unserved={0: DISK})), RefusalKind.STORAGE),
        (facts_with(SOUND, target={"topics": {"a.users": SOUND.target.topics["a.users"]}}), RefusalKind.TARGET_CHANGED),
        (at_target(target("a.orders", 41, topic_id="id-new")), RefusalKind.TARGET_CHANGED),
        (at_target(target("a.orders", 39)), RefusalKind.TARGET_CHANGED),
        (at_target(target("a.orders", 41, 0)), RefusalKind.PARTITION_COUNT),
        (at_target(replace(target("a.orders"), partitions=1)), RefusalKind.NO_LEADER),
        (at_target(target("a.orders", 41, replicas={0: (1, 3)}, min_in_sync=2)), RefusalKind.TOO_FEW_REPLICAS),
        (facts_with(SOUND, lane={"claims": {**SOUND.lane.claims, "a.orders": "drill"}}), RefusalKind.OWNED),
    ],
    ids=[
        "created again",
        "retention",
        "truncated",
        "no leader",
        "storage",
        "storage of the target",
        "target gone",
        "target created again",
        "target lost records",
        "other partitions",
        "no leader of the target",
        "too few replicas",
        "owned",
    ],
)
def test_each_refusal_says_what_it_saw_and_what_to_do_and_the_others_go_on(
    facts: Facts, kind: RefusalKind, golden: Golden
) -> None:
    plan = planned(facts)
    (refused,) = plan.refusals
    assert (refused.topic, refused.kind) == ("orders", kind)
    golden(refused.message)
    assert "\n" not in refused.message
    assert [piece.source.topic for piece in plan.slices] == ["users"]


@pytest.mark.parametrize(
    "facts",
    [
        source(topic("orders", part(), topic_id="")),  # a broker without topic ids
        at_target(target("a.orders", 41, topic_id="")),
        source(topic("orders", part(log_start=40))),  # retention took just what was copied
        source(topic("orders", part(end=40))),  # nothing new
        at_target(target("a.orders", 40)),  # the commit marker is not yet there
        at_target(target("a.orders", 41, replicas={0: (2, 3)}, min_in_sync=2)),
        at_target(target("a.orders", 41, replicas={0: (1, 1)}, min_in_sync=2)),  # all replicas that there are
    ],
)
def test_what_only_looks_like_a_fault_is_none(facts: Facts) -> None:
    assert planned(facts).refusals == ()


def test_a_topic_that_was_never_copied_is_not_begun_where_replicas_lack() -> None:
    fresh = facts_with(SOUND, lane={"receipts": {OTHER.target: OTHER}})
    poor = target("a.orders", 0, replicas={0: (2, 3)}, min_in_sync=3)
    plan = planned(facts_with(fresh, target={"topics": {**SOUND.target.topics, "a.orders": poor}}))
    assert [(refused.topic, refused.kind) for refused in plan.refusals] == [("orders", RefusalKind.TOO_FEW_REPLICAS)]
    assert [piece.source.topic for piece in plan.slices] == ["users"]


def test_another_cluster_under_the_source_alias_stops_everything(golden: Golden) -> None:
    with pytest.raises(Refused) as caught:
        planned(facts_with(SOUND, source={"cluster_id": "other"}))
    golden(caught.value)


@pytest.mark.parametrize(
    ("position", "noted"),
    [
        (POSITION, False),
        (None, True),
        (Position(target_next=12, source_next=40, generation=3), True),
        (Position(target_next=40, source_next=-1, generation=-1), True),
    ],
    ids=["as the ledger says", "missing", "another", "moved"],
)
def test_the_ledger_decides_over_the_position_group_and_says_so(
    position: Position | None, noted: bool, golden: Golden
) -> None:
    note = position_note(RECEIPT, position)
    assert (note is not None) is noted
    if noted:
        golden(note)
    plan = planned(facts_with(SOUND, lane={"positions": {**SOUND.lane.positions, place("a.orders"): position}}))
    assert plan.slices == planned(SOUND).slices
    assert plan.notes == (() if note is None else (note,))


def test_of_a_position_that_was_not_asked_for_nothing_is_said() -> None:
    plan = planned(facts_with(SOUND, lane={"positions": {place("a.users"): POSITION}}))
    assert (plan.notes, plan.slices) == ((), planned(SOUND).slices)
