"""A filter that takes no topic: refused as a slip or a missing permission, noted where a flow has reason to wait."""

from dataclasses import replace

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.ledger.report import GuardCount, RunState, guard_counts
from ferry.ledger.run_report import report_of
from ferry.model import Pause, RefusalKind
from ferry.plan.rules.empty_filter import idle_reason, is_bare, unfound
from ferry.plan.rules.facts import Unfound
from ferry.plan.rules.planning import decide_plan
from tests.golden import Golden, brief
from tests.pure.decide.values import FACTS, RULES, facts_with, part, topic
from tests.said import codes

FOUND = Unfound(patterns=("ordres.*",), empty=False, shown=12, excluded=())
FACTS_IN_VAIN = facts_with(FACTS, source={"unfound": FOUND})
SKIPPING = replace(RULES, guards=Guards(topics_none=GuardPolicy(default=OnGuard.SKIP)))


def flow(name: str, *lines: str, topics: str = ".*") -> FlowConfig:
    text = [
        "clusters = a, b, c",
        *(f"{alias}.bootstrap.servers = {alias}:9092" for alias in "abc"),
        f"{name}.enabled = true",
        f"topics = {topics}",
        *lines,
    ]
    return parse_settings("\n".join(text), "x.properties").flow(name)


# What the filter was held against


@pytest.mark.parametrize(
    ("topics", "lines", "found"),
    [
        ("ordres.*", [], Unfound(patterns=("ordres.*",), empty=False, shown=2, excluded=())),
        ("ordres", [], Unfound(patterns=(), empty=False, shown=2, excluded=())),
        ("", [], Unfound(patterns=(), empty=True, shown=2, excluded=())),
        ("orders", ["topics.exclude = ord.*"], Unfound(patterns=(), empty=False, shown=2, excluded=("orders",))),
        ("o.*, us.*", [], None),
        (".*", [], None),
    ],
)
def test_a_filter_is_held_against_what_the_source_shows(topics: str, lines: list[str], found: Unfound | None) -> None:
    listed = ["users", "orders", "__consumer_offsets", "ferry-ledger.a.internal"]
    assert unfound(flow("a->b", *lines, topics=topics).topics.selection, listed) == found


def test_heartbeats_do_not_hide_a_slip() -> None:
    for topics, listed in (("ordres.*", ["heartbeats", "orders"]), (".*", ["heartbeats", "b.heartbeats"])):
        selection = flow("a->b", topics=topics).topics.selection
        assert selection.takes("heartbeats")
        assert unfound(selection, listed) is not None
    assert unfound(flow("a->b", topics="heartbeats").topics.selection, ["heartbeats"]) is None, (
        "somebody wants just them"
    )


# A slip, or nothing to do yet?

PAIR = ("b->a.enabled = true",)


@pytest.mark.parametrize(
    ("topics", "listed", "at_target", "may"),
    [
        # Before anything was copied, and after: of two opposite flows the second has nothing of its own.
        ("orders.*", [], ["orders"], True),
        ("orders.*", ["b.orders"], ["orders"], True),
        (".*", ["b.orders"], ["orders"], True),
        # The same slip in both directions.
        ("ordres.*", [], ["orders"], False),
        ("ordres.*", ["b.orders"], ["orders"], False),
        ("orders.*", ["a.b.users"], [], False),
        (".*", ["heartbeats", "b.heartbeats"], ["heartbeats"], False),  # every cluster has them
    ],
    ids=brief,
)
def test_one_of_two_opposite_flows_may_have_nothing_to_copy(
    topics: str, listed: list[str], at_target: list[str], may: bool, golden: Golden
) -> None:
    both = flow("a->b", *PAIR, topics=topics)
    assert both.topics.back is not None
    why = idle_reason(both.topics.selection, both.topics.back, listed, at_target)
    assert bool(why) is may
    if may:
        golden(why)


@pytest.mark.parametrize(
    ("there", "is_idle"), [("odrers.*, users", True), ("users, odrers.*", True), ("users", False), ("odrers.*", False)]
)
def test_an_opposite_flow_with_another_list_proves_nothing_of_this_one(there: str, is_idle: bool) -> None:
    both = flow("a->b", *PAIR, f"b->a.topics = {there}", topics="odrers.*, users")
    at_target = ["users", "odrers-old"]
    assert both.topics.back is not None
    assert unfound(both.topics.back, at_target) is None, "it has topics to copy"
    assert bool(idle_reason(both.topics.selection, both.topics.back, ["orders"], at_target)) is is_idle


def test_a_flow_that_goes_one_way_only_waits_for_nothing() -> None:
    one = flow("a->b", topics="orders.*")
    assert one.topics.back is None
    assert idle_reason(one.topics.selection, one.topics.back, [], ["orders"]) == ""


def test_the_opposite_flow_is_known_also_where_only_local_clusters_are_run() -> None:
    text = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"
    settings = parse_settings(text + "b->a.enabled = true\n", "x.properties").near(("b",))
    (here,) = settings.flows
    assert (here.topics.back is not None and here.topics.back.flow) == here.flow.back


@pytest.mark.parametrize(
    ("listed", "bare"),
    [
        ([], True),
        (["__consumer_offsets", "ferry-ledger.b.internal", "mm2-offset-syncs.b.internal", "heartbeats"], True),
        (["orders"], False),
    ],
)
def test_a_cluster_with_internal_topics_alone_is_bare(listed: list[str], bare: bool) -> None:
    assert is_bare(flow("a->b").topics.selection, listed) is bare


# What the plan says


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(FOUND, id="no match"),
        pytest.param(replace(FOUND, shown=0), id="no topic is shown"),
        pytest.param(replace(FOUND, excluded=("x", "y")), id="all are excluded"),
        pytest.param(replace(FOUND, patterns=(), empty=True), id="an empty list"),
    ],
)
def test_a_filter_that_matches_nothing_makes_the_run_red(found: Unfound, golden: Golden) -> None:
    plan = decide_plan(RULES, facts_with(FACTS, source={"unfound": found}), "run", 7)
    (refused,) = plan.refusals
    assert (refused.topic, refused.partition, refused.kind) == ("", None, RefusalKind.TOPICS_NONE)
    golden(refused.message)
    assert plan.notes == ()
    assert report_of(plan, 0, [], {}, None).state is RunState.FAILED
    assert guard_counts(plan.refusals, plan.gaps) == {"topics-none": GuardCount(refused=1)}


def test_each_name_is_a_refusal_of_its_own_and_the_patterns_together_one(golden: Golden) -> None:
    facts = facts_with(FACTS_IN_VAIN, source={"unmatched": ("ordres", "users")})
    assert [refused.topic for refused in decide_plan(RULES, facts, "run", 7).refusals] == ["", "ordres", "users"]
    facts = facts_with(facts, source={"unfound": replace(FOUND, patterns=())})
    named = decide_plan(RULES, facts, "run", 7).refusals
    assert [refused.topic for refused in named] == ["ordres", "users"]
    golden(named[0].message)


def test_where_the_guard_says_skip_it_is_noted(golden: Golden) -> None:
    plan = decide_plan(SKIPPING, facts_with(FACTS_IN_VAIN, source={"unmatched": ("users",)}), "run", 7)
    assert plan.refusals == ()
    assert guard_counts(plan.refusals, plan.gaps, plan.lifted) == {"topics-none": GuardCount(skipped=2)}
    assert len(plan.notes) == 2
    golden("\n".join(plan.notes))


def test_a_flow_that_may_wait_says_why_and_names_stay_notes(golden: Golden) -> None:
    facts = facts_with(
        FACTS, source={"unfound": replace(FOUND, idle="the opposite flow b->a has topics"), "unmatched": ("users",)}
    )
    plan = decide_plan(RULES, facts, "run", 7)
    assert plan.refusals == ()
    assert codes(plan.notes) == ["topics.none.one", "topics.idle"]


def test_who_knows_better_what_is_missing_speaks_alone(golden: Golden) -> None:
    """A topic that is gone, one that may not be seen, a paused flow, a run that is narrowed to what there is not."""
    gone = decide_plan(RULES, facts_with(FACTS_IN_VAIN, source={"absent": frozenset({"orders"})}), "run", 7)
    hidden = decide_plan(RULES, facts_with(FACTS_IN_VAIN, source={"hidden": frozenset({"orders"})}), "run", 7)
    assert [plan.refusals[0].kind for plan in (gone, hidden)] == [RefusalKind.TOPIC_GONE, RefusalKind.NOT_AUTHORIZED]
    assert [len(plan.refusals) for plan in (gone, hidden)] == [1, 1]
    paused = facts_with(FACTS_IN_VAIN, lane={"pauses": {"": Pause(topic="", who="ann", why="it moves", since_ms=0)}})
    assert decide_plan(RULES, paused, "run", 7).refusals == ()
    with pytest.raises(BadInput) as caught:
        decide_plan(replace(RULES, only=frozenset({"orders"})), FACTS_IN_VAIN, "run", 7)
    golden(caught.value)


def test_heartbeats_are_copied_beside_the_refusal() -> None:
    plan = decide_plan(
        RULES, facts_with(FACTS_IN_VAIN, source={"topics": {"heartbeats": topic("heartbeats", part())}}), "run", 7
    )
    assert [piece.source.topic for piece in plan.slices] == ["heartbeats"]
    assert [refused.kind for refused in plan.refusals] == [RefusalKind.TOPICS_NONE]
