"""Drivers that are overtaken while they decide: what they still write does not count, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Superseded
from ferry.features.migrate.acts import adopting
from ferry.features.migrate.acts.adopting import AdoptionOptions, Mm1Place, adopt
from ferry.lane.pruning import Write
from ferry.ledger.adoption_codec import adoptions
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.receipt_codec import receipt_key
from ferry.ledger.receipts import receipts
from ferry.ledger.report import RunState
from ferry.ledger.runs import sealed_plan
from ferry.ledger.unit_codec import eras
from ferry.ledger.window_codec import recorded_windows
from ferry.model import OffsetWindow, Record, TopicPartition
from ferry.plan import planner, skipping
from ferry.plan.options import RunOptions
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.skipping import SkipRequest
from ferry.plan.rules.starts import recorded_starts
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import (
    Lab,
    commit_offsets,
    create_topic,
    delete_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    settled,
)
from tests.kafka.run.test_topic_changes import configure, settings_of
from tests.pure.run.unit_flows import LATELY, Units, lab_of
from tests.tiers import ANSWER_S

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


def once(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, act: Callable[[], object]) -> None:
    """Have something happen once before a function of a module is called."""
    call, left = getattr(module, name), [act]

    def late(*args: Any, **more: Any) -> Any:
        if left:
            left.pop()()
        return call(*args, **more)

    monkeypatch.setattr(module, name, late)


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


def test_the_gap_of_an_overtaken_skip_does_not_count(lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.micro_run().records == 500
    send(producer(lab.source), topic, numbered(50, partitions=5, start=500))
    once(monkeypatch, skipping, "keep_skip", lab.micro_run)
    wish = SkipRequest(source=TopicPartition(topic=topic, partition=0), to=105, who="ann", reason="damaged")
    with lab.runs() as runs, pytest.raises(Superseded):
        runs.skip(wish, "slow", local_origin())
    assert lab.assert_equal() == 550
    with lab.runs() as runs:
        assert not list(gaps(settled(runs), LIVE))


def test_the_window_of_an_overtaken_backfill_does_not_count(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = "backfill-late"

    def window(end: int) -> RunOptions:
        ranges = {TopicPartition(topic=topic, partition=0): (0, end)}
        return RunOptions(window=OffsetWindow(ranges=ranges))

    def copied(run: str, end: int) -> int:
        with MicroRuns(lab.flow, lane=lane, patience_s=ANSWER_S) as runs:
            return lab.copy(runs, runs.open_run(run, local_origin(), window(end))).records

    after_deciding(monkeypatch, lambda: copied("quick", 40))
    with MicroRuns(lab.flow, lane=lane, patience_s=ANSWER_S) as runs:
        with pytest.raises(Superseded):
            runs.open_run("slow", local_origin(), window(80))
        view = settled(runs)
    assert {one.run for one in recorded_windows(view, lane)} == {"quick"}
    assert {(one.run, one.start, one.end) for one in receipts(view, lane=lane)} == {("quick", 0, 40)}
    assert copied("next", 80) == 40


def test_the_adoption_of_an_overtaken_driver_copies_nothing_again(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second adoption, after the lane went on, would put its position back to where the predecessor was."""
    given = [replace(one, timestamp=LATELY + number) for number, one in enumerate(numbered(30))]
    one = f"{topic}-one"
    create_topic(lab.source, one)
    create_topic(lab.target, lab.target_topic(one))
    lab = replace(lab, topics=(one,))
    send(producer(lab.source), one, given)
    send(producer(lab.target), lab.target_topic(one), given[:20])
    place, options = Mm1Place(group=f"mirror-{lab.alias}"), AdoptionOptions(who="ann")
    commit_offsets(lab.source, place.group, {(one, 0): 20})

    def taken(run: str) -> None:
        with lab.runs() as runs:
            adopt(runs, place, options, run, local_origin())

    def overtake() -> None:
        taken("quick")
        assert lab.micro_run().records == 10

    once(monkeypatch, adopting, "adoptions_of", overtake)
    with pytest.raises(Superseded):
        taken("slow")
    assert lab.micro_run().records == 0
    assert [row[2] for row in read_topic(lab.target.bootstrap, lab.target_topic(one))[0]] == [
        message.value for message in given
    ]
    with lab.runs() as runs:
        assert {found.run for found in adoptions(settled(runs), LIVE)} == {"quick"}


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
