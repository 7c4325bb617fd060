"""Whether the target's disks hold what is to be copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ferry.model import RefusalKind
from ferry.model.observed import BrokerSpace
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RULES, facts_with, part, target, topic

CAREFUL = replace(RULES, free_percent=5, replication_factor=2)
GB = 1_000_000_000


def disks(**usable: int) -> dict[int, BrokerSpace]:
    """Usable GB of volumes of 100 GB, by broker: `b1=10`."""
    return {int(name[1:]): BrokerSpace(total=100 * GB, usable=count * GB) for name, count in usable.items()}


def facts(space: Mapping[int, BrokerSpace] | None, *, gigabytes: int = 10, there: bool = True) -> Facts:
    """Topic orders with a partition on brokers 1 and 2, if it is there; nothing of it is copied yet."""
    copy = replace(target("a.orders", 0), brokers={0: (1, 2)})
    return facts_with(
        FACTS,
        source={"topics": {"orders": topic("orders", part(size_bytes=gigabytes * GB))}},
        target={"topics": {"a.orders": copy} if there else {}, "space": space},
    )


@pytest.mark.parametrize(
    ("space", "there", "refused"),
    [
        (disks(b1=16, b2=16, b3=0), True, False),
        (disks(b1=14, b2=16, b3=90), True, True),  # 14 - 10 leaves less than 5
        (disks(b1=15, b2=15, b3=0), True, False),  # exactly 5 are left
        (disks(b2=50, b3=50), True, False),  # broker 1 does not tell
        ({}, True, False),
        (None, True, False),
        (disks(b1=90, b2=0, b3=0), False, False),  # a new topic may come to lie on broker 1
        (disks(b1=11, b2=11, b3=11), False, True),  # two thirds of 10 GB on each
        (disks(b1=12, b2=12, b3=12), False, False),
        (disks(b1=0, b2=0), False, False),  # broker 3 does not tell
    ],
)
def test_what_leaves_too_little_free_is_refused(
    space: dict[int, BrokerSpace] | None, there: bool, refused: bool
) -> None:
    plan = decide_plan(CAREFUL, facts(space, there=there), "run", 1)
    assert [refusal.kind for refusal in plan.refusals] == ([RefusalKind.NO_SPACE] if refused else [])
    assert len(plan.slices) == (0 if refused else 1)
    assert len(plan.changes) == (0 if refused or there else 1), "no topic is created that would stay empty"


def test_the_sentence_names_broker_sizes_and_remedy(golden: Golden) -> None:
    (refusal,) = decide_plan(CAREFUL, facts(disks(b1=14, b2=90, b3=90)), "run", 1).refusals
    assert (refusal.topic, refusal.partition) == ("orders", None)
    golden(refusal.message)


def test_partitions_that_find_room_are_copied() -> None:
    """Partitions 0 and 2 on a full broker, 1 elsewhere."""
    found = facts(disks(b1=14, b2=90, b3=90))
    copy = replace(target("a.orders", 0, 0, 0), brokers={0: (1, 2), 1: (2, 3), 2: (3, 1)})
    parts = [part(size_bytes=10 * GB) for _ in range(3)]
    found = facts_with(
        found, source={"topics": {"orders": topic("orders", *parts)}}, target={"topics": {"a.orders": copy}}
    )
    plan = decide_plan(CAREFUL, found, "run", 1)
    assert [piece.source.partition for piece in plan.slices] == [1]
    assert [(refusal.topic, refusal.partition) for refusal in plan.refusals] == [("orders", 0), ("orders", 2)]


def test_the_others_are_copied() -> None:
    found = facts(disks(b1=14, b2=90, b3=90))
    users = replace(target("a.users", 0), brokers={0: (2, 3)})
    found = facts_with(
        found,
        source={"topics": {**found.source.topics, "users": topic("users", part(size_bytes=GB))}},
        target={"topics": {**found.target.topics, "a.users": users}},
    )
    plan = decide_plan(CAREFUL, found, "run", 1)
    assert [piece.source.topic for piece in plan.slices] == ["users"]


@pytest.mark.parametrize("rules", [replace(CAREFUL, max_bytes=GB), replace(CAREFUL, free_percent=None)])
def test_a_smaller_run_or_nobody_who_looks_lets_it_pass(rules: Rules) -> None:
    assert len(decide_plan(rules, facts(disks(b1=14, b2=90, b3=90)), "run", 1).slices) == 1


def test_what_will_not_fit_later_is_noted_now(golden: Golden) -> None:
    plan = decide_plan(replace(CAREFUL, max_bytes=GB), facts(disks(b1=14, b2=12, b3=90)), "run", 1)
    (note,) = plan.notes
    golden(note)


def test_brokers_that_do_not_tell_are_noted_once_there_is_something_to_copy(golden: Golden) -> None:
    (note,) = decide_plan(CAREFUL, facts(disks(b1=90)), "run", 1).notes
    golden(note)
    assert decide_plan(CAREFUL, facts({}, gigabytes=0), "run", 1).notes == ()
