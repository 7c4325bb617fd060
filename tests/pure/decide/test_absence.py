"""What the flow names and the source does not show is said: refused when it was copied before, noted when not."""

from dataclasses import replace

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.config.text.filters import PatternList
from ferry.errors import BadInput
from ferry.model import Pause, RefusalKind
from ferry.plan.rules.absence import absent_topics, unmatched_names
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.lag import is_behind, lag_of
from ferry.plan.rules.planning import decide_plan
from ferry.policy import DefaultReplicationPolicy
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, part, place, target, topic

SECOND = replace(RECEIPT, source=place("orders", 1), target=place("a.orders", 1), end=7)
USERS = topic("users", part())
GONE = facts_with(
    FACTS,
    source={"topics": {"users": USERS}, "absent": frozenset({"orders"})},
    lane={"receipts": {last.target: last for last in (RECEIPT, SECOND)}},
)
SKIPPING = replace(RULES, guards=Guards(topic_gone=GuardPolicy(default=OnGuard.SKIP)))
PAUSE = Pause(topic="orders", who="ann", why="it moves", since_ms=0)


def test_a_copied_topic_that_the_source_lists_no_more_is_refused_and_the_others_go_on() -> None:
    plan = decide_plan(RULES, GONE, "run", 7)
    (refused,) = plan.refusals
    assert (refused.topic, refused.partition, refused.kind) == ("orders", None, RefusalKind.TOPIC_GONE)
    for words in (
        "source topic orders",
        "2 partitions",
        "no longer on cluster a",
        "grant DESCRIBE",
        "topics.exclude",
    ):
        assert words in refused.message
    assert [piece.source.topic for piece in plan.slices] == ["users"]


def test_a_gone_topic_is_noted_where_the_guard_says_so(golden: Golden) -> None:
    plan = decide_plan(SKIPPING, GONE, "run", 7)
    assert (plan.refusals, plan.lifted) == ((), (RefusalKind.TOPIC_GONE,))
    (note,) = plan.notes
    golden(note)
    assert [piece.source.topic for piece in plan.slices] == ["users"]
    paused = decide_plan(SKIPPING, facts_with(GONE, lane={"pauses": {"orders": PAUSE}}), "run", 7)
    assert (paused.notes, paused.paused) == ((), ("orders",))


def test_a_gone_topic_may_be_paused_narrowed_to_or_left_out() -> None:
    paused = decide_plan(RULES, facts_with(GONE, lane={"pauses": {"orders": PAUSE}}), "run", 7)
    assert (paused.refusals, paused.paused) == ((), ("orders",))
    only = decide_plan(replace(RULES, only=frozenset({"orders"})), GONE, "run", 7)
    assert ([refusal.topic for refusal in only.refusals], only.slices) == (["orders"], ())
    assert decide_plan(replace(RULES, only=frozenset({"users"})), GONE, "run", 7).refusals == ()


def test_absent_is_what_was_copied_and_is_still_wanted() -> None:
    users = replace(RECEIPT, source=place("users"), target=place("a.users"))
    assert absent_topics([RECEIPT, SECOND, users], {"users"}, lambda _: True) == {"orders"}
    assert absent_topics([RECEIPT], {"users"}, lambda name: name != "orders") == frozenset()  # now excluded


def test_a_gone_topic_is_behind_whatever_the_limit() -> None:
    lags = lag_of(GONE, DefaultReplicationPolicy(), "a", {"orders"})
    assert [(lag.source, lag.target, lag.position, lag.source_end) for lag in lags] == [
        (place("orders"), place("a.orders"), 40, None),
        (place("orders", 1), place("a.orders", 1), 7, None),
    ]
    assert all(is_behind(lag, max_records=None, max_seconds=1e9) for lag in lags)
    assert all(is_behind(lag, max_records=10**9, max_seconds=None) for lag in lags)


def test_the_lag_of_a_topic_that_the_login_may_not_see_is_not_known() -> None:
    hidden = facts_with(GONE, source={"hidden": frozenset({"orders", "payments"})})
    lags = lag_of(hidden, DefaultReplicationPolicy(), "a")
    assert [(str(lag.source), lag.target.topic, lag.records, lag.seconds) for lag in lags if lag.records is None] == [
        ("orders-0", "a.orders", None, None),
        ("orders-1", "a.orders", None, None),
        ("payments-0", "a.payments", None, None),
    ]
    never = facts_with(GONE, source={"topics": {}, "absent": frozenset(), "hidden": frozenset({"orders"})})
    assert [lag.records for lag in lag_of(never, DefaultReplicationPolicy(), "a")] == [None]


def test_lag_of_a_topic_that_the_source_never_had_is_bad_input(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        lag_of(GONE, DefaultReplicationPolicy(), "a", {"ordres", "users"})
    golden(caught.value)


# A topic that came back with fewer partitions, on a cluster without topic ids to tell


def shrunk(*, leaderless: tuple[int, ...] = ()) -> Facts:
    return facts_with(
        GONE,
        source={
            "topics": {"orders": topic("orders", part(), topic_id="", leaderless=leaderless)},
            "absent": frozenset(),
        },
        target={"topics": {"a.orders": target("a.orders", 41, 8)}},
    )


def test_a_partition_that_is_no_more_is_refused_and_behind(golden: Golden) -> None:
    kinds = {(refusal.partition, refusal.kind) for refusal in decide_plan(RULES, shrunk(), "run", 7).refusals}
    assert kinds == {(None, RefusalKind.PARTITION_COUNT)}
    facts = facts_with(shrunk(), target={"topics": {"a.orders": target("a.orders", 41)}})
    (refused,) = decide_plan(RULES, facts, "run", 7).refusals
    assert (refused.partition, refused.kind) == (1, RefusalKind.TOPIC_RECREATED)
    golden(refused.message)
    lags = lag_of(facts, DefaultReplicationPolicy(), "a")
    assert [(lag.source.partition, lag.records) for lag in lags] == [(0, 60), (1, None)]


def test_a_partition_without_leader_is_not_lost() -> None:
    plan = decide_plan(RULES, shrunk(leaderless=(1,)), "run", 7)
    assert [(refusal.partition, refusal.kind) for refusal in plan.refusals] == [(1, RefusalKind.NO_LEADER)]


# Names that match nothing


@pytest.mark.parametrize(
    ("items", "unmatched"),
    [
        (("orders", "users"), ("orders",)),
        (("orders.eu",), ("orders.eu",)),
        (("user.",), ()),  # a dot is any character, as Java reads it
        (("orders.*", "ord(ers)?"), ()),  # patterns may wait for their topics
        ((), ()),
    ],
)
def test_a_name_that_matches_no_topic_is_told_from_a_pattern(
    items: tuple[str, ...], unmatched: tuple[str, ...]
) -> None:
    assert unmatched_names(PatternList(items=items), {"users", "events"}) == unmatched


def test_a_name_that_matches_nothing_is_noted_and_the_others_go_on(golden: Golden) -> None:
    facts = facts_with(FACTS, source={"topics": {"users": USERS}, "unmatched": ("ordres",)})
    plan = decide_plan(RULES, facts, "run", 7)
    (note,) = plan.notes
    golden(note)
    assert [piece.source.topic for piece in plan.slices] == ["users"]
    assert decide_plan(replace(RULES, only=frozenset({"users"})), facts, "run", 7).notes == ()


def test_a_gone_topic_is_refused_and_not_noted_as_well() -> None:
    assert decide_plan(RULES, facts_with(GONE, source={"unmatched": ("orders",)}), "run", 7).notes == ()


def test_a_named_topic_that_may_not_be_seen_is_refused_and_not_noted_as_well() -> None:
    facts = facts_with(
        FACTS, source={"topics": {"users": USERS}, "hidden": frozenset({"secret"}), "unmatched": ("secret",)}
    )
    plan = decide_plan(RULES, facts, "run", 7)
    [refusal] = plan.refusals
    assert (refusal.topic, refusal.kind) == ("secret", RefusalKind.NOT_AUTHORIZED)
    assert refusal.message.endswith("grant READ on it")
    assert plan.notes == ()
    assert decide_plan(replace(RULES, only=frozenset({"users"})), facts, "run", 7).refusals == ()
