"""Names that clash, circles, offsets that came from the target, and topics that belong to other flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from ferry.ledger.other_flows import OtherFlow, gaps, owned_elsewhere, uncut
from ferry.model import Flow, Plan, Range, RefusalKind
from ferry.plan.rules.facts import Facts, NoReceipt
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.policy import IdentityReplicationPolicy, ReplicationPolicy
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, part, place, target, topic


@dataclass(frozen=True)
class Table(ReplicationPolicy):
    """Target names as a test lists them."""

    names: Mapping[str, str]

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self.names.get(topic, f"{source_alias}.{topic}")

    def topic_source(self, topic: str) -> None:
        return None

    def upstream_topic(self, topic: str) -> None:
        return None


IDENTITY = replace(RULES, policy=IdentityReplicationPolicy(source_alias="a"))
OTHER = "ferry-ledger.c.internal"


def facts(*names: str, end: int = 100) -> Facts:
    return facts_with(FACTS, source={"topics": {name: topic(name, part(end=end)) for name in names}})


def refused(plan: Plan) -> list[tuple[str, RefusalKind]]:
    return [(refusal.topic, refusal.kind) for refusal in plan.refusals]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b"])
def test_a_name_that_kafka_does_not_take_refuses_its_topic_alone(name: str, golden: Golden) -> None:
    rules = replace(RULES, policy=Table({"orders": name}), policy_name="mine.Table")
    plan = decide_plan(rules, facts("orders", "payments"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.INVALID_NAME)]
    golden(plan.refusals[0].message)
    assert [piece.source.topic for piece in plan.slices] == ["payments"]


def test_a_name_that_is_too_long_is_one_refusal(golden: Golden) -> None:
    rules = replace(RULES, policy=Table({"orders": "x" * 250}), policy_name="mine.Table")
    plan = decide_plan(rules, facts("orders"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.NAME_TOO_LONG)]
    golden(plan.refusals[0].message)


def test_two_topics_of_one_name_are_both_refused(golden: Golden) -> None:
    rules = replace(RULES, policy=Table({"orders": "all", "payments": "all"}))
    plan = decide_plan(rules, facts("orders", "payments", "users"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.NAME_CLASH), ("payments", RefusalKind.NAME_CLASH)]
    golden(plan.refusals[0].message)
    assert [piece.source.topic for piece in plan.slices] == ["users"]


RENAMED = replace(RULES, transform_of=lambda topic: Transform("eu", renames=True) if topic == "orders" else None)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a/b",
        "ferry-ledger.a.internal",
        "x.backfill.backfill-x",
        "__x",
    ],
)
def test_a_name_that_a_transform_may_not_give_refuses_its_topic_alone(name: str, golden: Golden) -> None:
    rules = replace(RENAMED, policy=Table({"orders": name}))
    plan = decide_plan(rules, facts("orders", "payments"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.INVALID_NAME)]
    golden(plan.refusals[0].message)
    assert [piece.source.topic for piece in plan.slices] == ["payments"]


def test_what_a_transform_names_too_long_or_twice_is_told_by_its_key(golden: Golden) -> None:
    plan = decide_plan(replace(RENAMED, policy=Table({"orders": "x" * 250})), facts("orders"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.NAME_TOO_LONG)]
    golden(plan.refusals[0].message, "too long")
    plan = decide_plan(replace(RENAMED, policy=Table({"orders": "a.users"})), facts("orders", "users"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.NAME_CLASH), ("users", RefusalKind.NAME_CLASH)]
    for one in plan.refusals:
        golden(one.message, f"twice, {one.topic}")


@pytest.mark.parametrize("partitions", [None, 3])
def test_a_topic_whose_records_name_its_copy_is_refused_alone(partitions: int | None, golden: Golden) -> None:
    by_time = Transform("day", partitions=partitions, why_unknown="TimestampRouter asks each record for its timestamp")
    rules = replace(RULES, transform_of=lambda topic: by_time if topic == "orders" else None)
    plan = decide_plan(rules, facts("orders", "payments"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.TRANSFORM)]
    golden(plan.refusals[0].message)
    assert [piece.source.topic for piece in plan.slices] == ["payments"]
    assert not plan.dealt
    assert [change.topic for change in plan.changes] == ["a.payments"]


@pytest.mark.parametrize("partitions", [None, 3])
def test_a_topic_whose_transform_cannot_be_carried_out_is_refused_alone(partitions: int | None, golden: Golden) -> None:
    lost = Transform("small", partitions=partitions, why_lost="ferry.transform.small.function: a:b cannot be imported")
    rules = replace(RULES, transform_of=lambda topic: lost if topic == "orders" else None)
    plan = decide_plan(rules, facts("orders", "payments"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.TRANSFORM)]
    golden(plan.refusals[0].message)
    assert [piece.source.topic for piece in plan.slices] == ["payments"]
    assert not plan.dealt


def test_of_two_topics_of_one_name_the_one_that_was_copied_goes_on() -> None:
    rules = replace(RULES, policy=Table({"orders": "all", "payments": "all"}))
    last = replace(RECEIPT, target=place("all"), target_topic_id="id-all")
    known = facts_with(
        facts("orders", "payments"),
        target={"topics": {"all": target("all", 41)}},
        lane={"receipts": {place("all"): last}},
    )
    plan = decide_plan(rules, known, "r", 1)
    assert refused(plan) == [("payments", RefusalKind.NAME_CLASH)]
    assert [piece.source.topic for piece in plan.slices] == ["orders"]


def test_a_policy_that_now_gives_a_copied_topics_name_to_another_is_refused() -> None:
    rules = replace(RULES, policy=Table({"payments": "a.orders", "orders": "elsewhere"}))
    known = facts_with(
        facts("orders", "payments"),
        target={"topics": {"a.orders": target("a.orders", 41)}},
        lane={"receipts": {place("a.orders"): RECEIPT}},
    )
    assert ("payments", RefusalKind.NAME_CLASH) in refused(decide_plan(rules, known, "r", 1))


def test_a_topic_that_would_come_back_is_refused_with_its_way(golden: Golden) -> None:
    way = (Flow(source="b", target="c"), Flow(source="c", target="a"))
    rules = replace(IDENTITY, way_back=lambda name: way if name == "orders" else ())
    plan = decide_plan(rules, facts("orders", "payments"), "r", 1)
    assert refused(plan) == [("orders", RefusalKind.LOOP)]
    golden(plan.refusals[0].message)
    assert "c->a.topics.exclude" in plan.refusals[0].message


@pytest.mark.parametrize(
    ("came", "start", "loops"),
    [
        ([(0, 100)], 0, True),
        ([(99, 100)], 0, True),
        ([(0, 40)], 40, False),
        ([(0, 40)], 39, True),
        ([(100, 140)], 0, False),
        ([], 0, False),
    ],
)
def test_offsets_that_came_from_the_target_do_not_go_back(came: list[Range], start: int, loops: bool) -> None:
    given = facts_with(
        facts("orders"),
        source={"topics": {"orders": topic("orders", part(start=start))}},
        lane={"first_run": True},
        others={"returned": {place("orders"): tuple(came)}},
    )
    plan = decide_plan(IDENTITY, given, "r", 1)
    assert [kind for _, kind in refused(plan)] == [RefusalKind.LOOP] * loops
    assert bool(plan.slices) is not loops


@pytest.mark.parametrize(
    ("there", "start", "kinds"),
    [
        ((40, 60), 0, [RefusalKind.LOOP]),
        ((40, 60), 59, [RefusalKind.LOOP]),
        ((40, 60), 60, []),
        ((100, 110), 0, []),
        ((40, 60, "its leader does not answer"), 0, [RefusalKind.NO_LEADER]),
        ((40, 60, "its leader does not answer"), 60, []),
    ],
)
@pytest.mark.parametrize("scratch", [False, True])
def test_what_an_identical_flow_wrote_without_a_receipt_does_not_go_back(
    there: tuple[int, int] | tuple[int, int, str], start: int, kinds: list[RefusalKind], scratch: bool
) -> None:
    begin, end, *why = there
    given = facts_with(
        facts("orders"),
        source={"topics": {"orders": topic("orders", part(start=start))}},
        lane={"first_run": True},
        others={"no_receipt": {place("orders"): NoReceipt(start=begin, end=end, writer="b->a", why="".join(why))}},
    )
    plan = decide_plan(replace(IDENTITY, scratch=scratch), given, "r", 1)
    assert [kind for _, kind in refused(plan)] == ([] if scratch else kinds)


def test_a_first_copy_behind_originals_asks_for_what_somebody_else_wrote_after_them() -> None:
    given = facts_with(
        facts("orders"),
        source={"topics": {"orders": topic("orders", part(start=40))}},
        target={"topics": {"orders": target("orders", 60)}},
        lane={"first_run": True},
        others={"returned": {place("orders"): ((0, 40),)}},
    )
    assert refused(decide_plan(IDENTITY, given, "r", 1)) == []
    strange = facts_with(given, others={"foreign": {place("orders"): 50}})
    assert [kind for _, kind in refused(decide_plan(IDENTITY, strange, "r", 1))] == [RefusalKind.FOREIGN_WRITER]


def other(*, claimed: str = "", shared: str = "") -> OtherFlow:
    return OtherFlow(ledger=OTHER, claimed=frozenset(claimed.split()), shared=frozenset(shared.split()), written={})


@pytest.mark.parametrize(
    ("merged", "neighbour", "owned"),
    [
        (False, other(), False),
        (True, other(), False),
        (False, other(claimed="orders"), True),
        (True, other(claimed="orders"), True),
        (False, other(claimed="orders", shared="orders"), True),
        (True, other(claimed="orders", shared="orders"), False),
    ],
    ids=[
        "not claimed",
        "not claimed, merged here",
        "claimed",
        "claimed, merged here",
        "merged there",
        "merged by both",
    ],
)
def test_a_topic_is_shared_only_when_all_of_its_flows_say_so(
    merged: bool, neighbour: OtherFlow, owned: bool, golden: Golden
) -> None:
    refusal = owned_elsewhere("orders", "orders", merged, [neighbour])
    assert (refusal is not None) is owned
    if refusal is not None:
        golden(refusal.message)
    rules: Rules = replace(IDENTITY, merges=lambda _: merged)
    plan = decide_plan(rules, facts_with(facts("orders"), others={"flows": (neighbour,)}), "r", 1)
    assert refused(plan) == ([("orders", RefusalKind.OWNED)] if owned else [])
    assert [piece.merged for piece in plan.slices] == ([] if owned else [merged])


def test_a_merged_partition_with_a_strangers_record_is_refused_and_the_others_copied(golden: Golden) -> None:
    two = facts_with(
        FACTS,
        source={"topics": {"orders": topic("orders", part(), part())}},
        others={"unaccounted": {place("orders", 1): 17}},
    )
    plan = decide_plan(replace(IDENTITY, merges=lambda _: True), two, "r", 1)
    assert [(r.partition, r.kind) for r in plan.refusals] == [(1, RefusalKind.FOREIGN_WRITER)]
    golden(plan.refusals[0].message)
    assert [piece.source.partition for piece in plan.slices] == [0]


@pytest.mark.parametrize(
    ("written", "start", "end", "left"),
    [
        ([], 0, 10, [(0, 10)]),
        ([(0, 10)], 0, 10, []),
        ([(2, 4), (6, 8)], 0, 10, [(0, 2), (4, 6), (8, 10)]),
        ([(6, 8), (2, 4), (3, 7)], 0, 10, [(0, 2), (8, 10)]),
        ([(0, 5), (20, 30)], 3, 10, [(5, 10)]),
        ([(0, 100)], 3, 10, []),
        ([], 10, 10, []),
    ],
)
def test_gaps_are_what_no_receipt_names(written: list[Range], start: int, end: int, left: list[Range]) -> None:
    assert gaps(written, start, end) == left


def test_what_was_written_behind_a_cut_is_not_ours_any_more() -> None:
    written = {place("orders"): ((0, 10), (20, 30), (40, 50)), place("users"): ((0, 9),)}
    left = uncut(written, {place("orders"): 25})
    assert left == {place("orders"): ((0, 10), (20, 25)), place("users"): ((0, 9),)}
    assert gaps(left[place("orders")], 0, 60) == [(10, 20), (25, 60)]
