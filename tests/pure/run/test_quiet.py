"""Who counts as at work on the cluster that is left, and who lists nothing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.config.settings import parse_settings
from ferry.errors import Refused
from ferry.features.switch.acts import quiet
from ferry.features.switch.acts.quiet import groups_at_work
from ferry.kafka.groups.listing import ListedGroups
from ferry.model import GroupKind, ListedGroup, TopicPartition
from ferry.model.switch import SwitchOptions
from tests.golden import Golden
from tests.said import facts_in

FILE = """
clusters = primary, backup
primary.bootstrap.servers = p:9092
backup.bootstrap.servers = b:9092
primary->backup.enabled = true
groups = billing.*, audit
"""


def at_work(monkeypatch: pytest.MonkeyPatch, silent: dict[int, str], options: SwitchOptions) -> set[str]:
    """Of groups in all sorts of states, and of brokers that do not list theirs."""
    states = {
        "billing-1": "Stable",
        "billing-2": "Empty",
        "billing-3": "PreparingRebalance",
        "audit": "Assigning",
        "others": "Stable",
    }
    listed = ListedGroups(
        groups={
            name: ListedGroup(name=name, kind=GroupKind.CLASSIC, state=state, protocol_type="consumer")
            for name, state in states.items()
        },
        silent=silent,
    )

    async def list_groups(_: object) -> ListedGroups:
        return listed

    monkeypatch.setattr(quiet, "list_groups", list_groups)
    flow = parse_settings(FILE, "mm2.properties").flow("primary->backup")
    return asyncio.run(groups_at_work(flow, cast("Any", SimpleNamespace(alias="primary")), options))


def test_groups_with_members_are_at_work_but_for_those_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_work(monkeypatch, {}, SwitchOptions()) == {"billing-1", "billing-3", "audit"}
    assert at_work(monkeypatch, {}, SwitchOptions(leave_groups=("audit",))) == {"billing-1", "billing-3"}
    assert at_work(monkeypatch, {}, SwitchOptions(leave_active=True)) == set()


def test_a_broker_that_lists_nothing_does_not_pass_for_quiet(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    with pytest.raises(Refused) as refused:
        at_work(monkeypatch, {2: "no answer"}, SwitchOptions())
    golden(refused.value)


def test_what_is_not_quiet_names_the_partitions_that_grew_last_alone(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """A partition that rests for longer than the time that is asked for is no reason to wait."""
    flow = parse_settings(FILE, "mm2.properties").flow("primary->backup")
    rests, grows = TopicPartition(topic="t", partition=0), TopicPartition(topic="t", partition=1)
    clock, ends = SimpleNamespace(now=0.0), {rests: 0, grows: 0}
    members = {"billing-1"}

    async def source_ends(*_: object) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        return dict(ends), {}

    async def groups(*_: object) -> set[str]:
        return members

    monkeypatch.setattr(quiet, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(quiet, "source_ends", source_ends)
    monkeypatch.setattr(quiet, "groups_at_work", groups)
    waiting = quiet.Waiting(flow, cast("Any", SimpleNamespace(alias="primary")), SwitchOptions(quiet_seconds=5))

    def look(at: float, *grown: TopicPartition) -> None:
        clock.now = at
        for place in grown:
            ends[place] += 1
        asyncio.run(waiting.look())

    look(0)
    look(1, rests, grows)
    look(4, grows)
    said = waiting.sentence(10)
    facts = facts_in(said)
    assert (said.code, facts["cluster"], facts["partitions"]) == ("switch.not-quiet", "primary", "t-0, t-1")
    assert facts["groups"] == "billing-1"
    golden(said, "both grew")
    look(8)
    assert facts_in(waiting.sentence(10))["partitions"] == "t-1"
    golden(waiting.sentence(10), "one rests")
    look(20)
    golden(waiting.sentence(10), "both rest")


def test_what_is_waited_for_is_logged_when_it_changes_and_not_more_often_than_it_can_be_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flow = parse_settings(FILE, "mm2.properties").flow("primary->backup")
    place = TopicPartition(topic="t", partition=0)
    clock, ends = SimpleNamespace(now=0.0), {place: 0}
    members = {"billing-1", "audit"}

    async def source_ends(*_: object) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        return dict(ends), {}

    async def groups(*_: object) -> set[str]:
        return set(members)

    async def sleep(seconds: float) -> None:
        clock.now += seconds
        if clock.now < 30:
            ends[place] += 1
        if clock.now == 20:
            members.remove("audit")
        if clock.now == 31:
            members.clear()

    monkeypatch.setattr(quiet, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(quiet, "source_ends", source_ends)
    monkeypatch.setattr(quiet, "groups_at_work", groups)
    connections = cast(
        "Any", SimpleNamespace(source=SimpleNamespace(alias="primary"), loop=SimpleNamespace(sleep=sleep))
    )
    options = SwitchOptions(quiet_seconds=5, quiet_timeout_seconds=60)
    with caplog.at_level("INFO", logger="ferry"):
        found = asyncio.run(quiet.wait(flow, connections, options))
    assert found.ends == {place: ends[place]}
    assert 34 <= clock.now <= 36, "5 s after it grew last"
    said = [record.getMessage() for record in caplog.records]
    assert 3 <= len(said) <= 5, "one when it begins, then at most one in 10 s"
    assert "5 s" in said[0]
    assert "t-0" in said[1]
    assert "audit, billing-1" in said[1]
    assert any("billing-1" in line and "audit" not in line for line in said[2:])
    caplog.clear()
    with caplog.at_level("INFO", logger="ferry"):
        asyncio.run(quiet.wait(flow, connections, SwitchOptions(quiet_seconds=0)))
    assert caplog.records == [], "it is quiet at once"
