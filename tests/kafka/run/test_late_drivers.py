"""Drivers that are overtaken while they decide: what they still write does not count, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Superseded
from ferry.lane.pruning import Write
from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipt_codec import receipt_key
from ferry.ledger.receipts import receipts
from ferry.ledger.report import RunState
from ferry.ledger.runs import sealed_plan
from ferry.ledger.unit_codec import eras
from ferry.model import Record, TopicPartition
from ferry.plan import planner
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.starts import recorded_starts
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, read_topic, send, settled
from tests.kafka.run.test_topic_changes import configure, settings_of
from tests.pure.run.unit_flows import Units, lab_of

LIVE = "live"


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """Five partitions with 500 records."""
    create_topic(source_cluster, topic, 5)
    send(producer(source_cluster), topic, numbered(500, partitions=5))
    return Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))


def after_deciding(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen once after a driver has decided, and before it writes anything of that."""
    decide, left = decide_plan, [act]

    def slowly(rules: Any, facts: Any, run: str, generation: int) -> Any:
        plan = decide(rules, facts, run, generation)
        if generation >= 0 and left:
            left.pop()()
        return plan

    monkeypatch.setattr(planner, "decide_plan", slowly)


def before_looking(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen once after a driver has fenced, and before it looks at the clusters."""
    facts, left = planner.Planner.facts, [act]

    async def late(self: planner.Planner, *args: Any, **more: Any) -> Any:
        if left:
            left.pop()()
        return await facts(self, *args, **more)

    monkeypatch.setattr(planner.Planner, "facts", late)


def test_the_rule_of_an_overtaken_driver_does_not_copy_a_topic_again(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = Units(lab_of(lab, topic), topic)
    after_deciding(monkeypatch, units.run)
    with units.lab.runs() as runs, pytest.raises(Superseded):
        runs.open_run("slow", local_origin())
    units.run()
    assert units.assert_once() == 500
    with units.lab.runs() as runs:
        view = settled(runs)
    slow, quick, _ = view.runs
    assert sealed_plan(view, LIVE, "slow", slow.generation) is None
    assert {rule.since for rule in eras(view, LIVE).values()} == {quick.generation}


def test_the_start_of_an_overtaken_driver_skips_nothing(lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = replace(lab, settings={**lab.settings, "ferry.start": "latest"})

    def overtake() -> None:
        assert lab.micro_run().state is RunState.SUCCESS
        send(producer(lab.source), topic, numbered(50, partitions=5, start=500))

    before_looking(monkeypatch, overtake)
    with lab.runs() as runs, pytest.raises(Superseded):
        runs.open_run("slow", local_origin())
    assert lab.micro_run().state is RunState.SUCCESS
    copied = read_topic(lab.target.bootstrap, lab.target_topic(topic))
    assert sum(map(len, copied.values())) == 50
    with lab.runs() as runs:
        starts = recorded_starts(settled(runs), LIVE)
    assert starts.offsets == {TopicPartition(topic=topic, partition=number): 100 for number in range(5)}


def test_the_tombstones_of_an_overtaken_driver_take_no_receipt_away(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lab.micro_run()
    with lab.runs() as runs:
        before = [receipt_key(LIVE, one.target, one.start, one.since) for one in receipts(settled(runs), lane=LIVE)]
    assert len(before) == 5
    left = ["slow"]

    async def late(_: object, view: LedgerView, lane: str, most: int, write: Write) -> None:
        if left:
            left.clear()
            lab.micro_run()
            await write([Record(key=key, value=None) for key in before])

    monkeypatch.setattr(planner, "is_due", lambda _: True)
    monkeypatch.setattr(planner, "sweep", late)
    with lab.runs() as runs:
        runs.open_run("slow", local_origin())
        kept = list(receipts(settled(runs), lane=LIVE))
    assert not left
    assert {one.run for one in kept} == {first.plan.run}
    assert len(kept) == 5


def test_an_overtaken_driver_puts_no_older_setting_back(lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.micro_run().state is RunState.SUCCESS
    configure(lab.source, topic, retention_ms="86400000")

    def overtake() -> None:
        configure(lab.source, topic, retention_ms="172800000")
        assert lab.micro_run().state is RunState.SUCCESS

    after_deciding(monkeypatch, overtake)
    with lab.runs() as runs, pytest.raises(Superseded):
        runs.open_run("slow", local_origin())
    assert settings_of(lab.target, lab.target_topic(topic))["retention.ms"] == "172800000"


def test_an_overtaken_driver_deletes_no_copy(lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    follows = replace(lab, settings={**lab.settings, "ferry.sync.topic.deletes.enabled": "true"})
    assert follows.micro_run().state is RunState.SUCCESS
    delete_topic(lab.source, topic)
    after_deciding(monkeypatch, lab.micro_run)  # by a file that lets the copy stay
    with follows.runs() as runs, pytest.raises(Superseded):
        runs.open_run("slow", local_origin())
    copied = read_topic(lab.target.bootstrap, lab.target_topic(topic))
    assert sum(map(len, copied.values())) == 500
