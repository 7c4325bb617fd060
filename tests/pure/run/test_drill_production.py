"""What a drill must leave alone: every change that nobody else explains is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ferry.config.settings import parse_settings
from ferry.features.drill.acts.production import Production, untouched
from ferry.model import TopicPartition

FLOW = parse_settings(
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n", "f.properties"
).flow("a->b")
PLACE = TopicPartition("a.orders", 0)
BEFORE = Production(
    topics={"a.orders": "id-1", "other": "id-2"},
    ends={PLACE: 100},
    groups={"billing": {PLACE: 40}, "search": {PLACE: 90}},
    active=frozenset(),
    unread={},
    newest_run="run-1",
    written=100,
)
LIVE_RUN = {"newest_run": "run-2", "written": 120}


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({}, [True, True]),
        ({"topics": {"a.orders": "id-3", "other": "id-2"}}, [False, True]),
        ({"topics": {"other": "id-2"}}, [False, True]),
        ({"topics": {**BEFORE.topics, "new": "id-4"}}, [True, True]),
        ({"ends": {PLACE: 101}}, [False, True]),
        ({"ends": {}}, [False, True]),
        ({"groups": {"billing": {PLACE: 41}, "search": {PLACE: 90}}}, [True, False]),
        ({"groups": {"billing": {PLACE: 40}}}, [True, False]),
        ({"groups": {**BEFORE.groups, "fresh": {PLACE: 1}}}, [True, False]),
        # Members move their own offsets.
        ({"groups": {"billing": {PLACE: 41}, "search": {PLACE: 90}}, "active": frozenset({"billing"})}, [True, True]),
        ({"groups": {"billing": {PLACE: 41}, "search": {PLACE: 91}}, "active": frozenset({"billing"})}, [True, False]),
        # What was not read may have moved.
        ({"unread": {"group billing": "no coordinator"}}, [True, False]),
        ({**LIVE_RUN, "unread": {"broker 1": "no answer"}}, [True, False]),
        # A live run explains what grew and which groups moved, and never a topic that was created again.
        ({**LIVE_RUN, "ends": {PLACE: 121}, "groups": {"billing": {PLACE: 60}}}, [True, True]),
        ({**LIVE_RUN, "topics": {"a.orders": "id-3", "other": "id-2"}}, [False, True]),
    ],
)
def test_a_change_that_nobody_else_explains_is_the_drills(change: Mapping[str, Any], held: list[bool]) -> None:
    checks = untouched(BEFORE, replace(BEFORE, **change), FLOW)
    assert [check.ok for check in checks] == held
    unread = change.get("unread", {})
    assert all(why in checks[1].message for why in unread.values())
    assert all(("run-2" in check.message) == (check.ok and "newest_run" in change) for check in checks)
