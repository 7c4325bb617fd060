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
from ferry.features.migrate.acts.adopting import Mm1Place, adopt
from ferry.lane import upkeep
from ferry.lane.pruning import Write
from ferry.ledger.ledger import LedgerView, skips
from ferry.ledger.receipt_codec import receipt_key
from ferry.ledger.receipts import receipts
from ferry.ledger.report import RunState
from ferry.ledger.runs import sealed_plan
from ferry.ledger.summary import SUMMARY
from ferry.ledger.unit_codec import eras
from ferry.model import Record, TopicPartition
from ferry.plan import gather, gather_all, plan_run, skipping
from ferry.plan.options import RunOptions
from ferry.plan.rules.skipping import SkipRequest
from ferry.plan.rules.starts import recorded_starts
from ferry.run.micro_run import local_origin
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
from tests.kafka.adopt.test_at_rest import OPTIONS, copied_in_part
from tests.kafka.run.test_backfill import History
from tests.kafka.run.test_topic_changes import configure, settings_of
from tests.pure.run.unit_flows import Units, lab_of

LIVE = "live"


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """Five partitions with 500 records."""
    create_topic(source_cluster, topic, 5)
    send(producer(source_cluster), topic, numbered(500, partitions=5))
    return Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))


def after_deciding(
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[], object],
    where: ModuleType = plan_run,
    rule: str = "decide_plan",
) -> None:
    """Have something happen once after a driver has decided by a rule, and before it writes anything of that."""
    decide, left = getattr(where, rule), [act]

    def slowly(*facts: Any) -> Any:
        decided = decide(*facts)
        if facts[-1] != -1 and left:  # that generation decides before any fence, or for a dry run
            left.pop()()
        return decided

    monkeypatch.setattr(where, rule, slowly)


def before_looking(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen once after a driver has fenced, and before it looks at the clusters."""
    facts, left = gather.gather_facts, [act]

    async def late(*args: Any, **more: Any) -> Any:
        if left:
            left.pop()()
        return await facts(*args, **more)

    monkeypatch.setattr(gather_all, "gather_facts", late)


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


def test_the_gap_of_an_overtaken_driver_passes_over_nothing(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lab.micro_run().records == 500
    send(producer(lab.source), topic, numbered(50, partitions=5, start=500))
    source = TopicPartition(topic=topic, partition=0)

    def pass_to(offset: int, run: str) -> None:
        with lab.runs() as runs:
            wish = SkipRequest(source=source, to=offset, who="ann@desk-7", reason="bad records")
            runs.skip(wish, run, local_origin(), interrupt=True)

    after_deciding(monkeypatch, lambda: pass_to(102, "quick"), skipping, "skip_gap")
    with pytest.raises(Superseded):
        pass_to(105, "slow")
    assert lab.micro_run().records == 48
    with lab.runs() as runs:
        (gap,) = skips(settled(runs), LIVE)[source]
    assert (gap.run, gap.start, gap.end) == ("quick", 100, 102)


def test_the_window_of_an_overtaken_driver_leaves_no_record_out(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(source_cluster, target_cluster, topic)
    history.record(0.5)
    window = history.hours(0, 1)

    def overtake() -> None:
        history.record(0.7)  # the slow one has settled that the window ends before it
        assert history.copy(window, max_records=1).records == 1

    after_deciding(monkeypatch, overtake)
    with history.runs() as runs, pytest.raises(Superseded):
        runs.open_run("slow", local_origin(), RunOptions(window=window))
    assert history.copy(window).records == 1
    assert history.scratch()[0] == ["0.5", "0.7"]


def test_the_adoption_of_an_overtaken_driver_takes_the_lane_nowhere_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = copied_in_part(source_cluster, target_cluster, topic)
    at = Mm1Place(group=f"mirror-{lab.alias}")
    commit_offsets(source_cluster, at.group, {(topic, 0): 20})

    def adopted(run: str) -> None:
        with lab.runs() as runs:
            adopt(runs, at, OPTIONS, run, local_origin())

    def overtake() -> None:
        with lab.runs() as runs:
            assert lab.copy(runs, runs.open_run("ends-slow", local_origin())).records == 0
        adopted("quick")
        assert lab.micro_run().records == 10

    after_deciding(monkeypatch, overtake, adopting, "adoptions_of")
    with pytest.raises(Superseded):
        adopted("slow")
    send(producer(source_cluster), topic, numbered(10, start=30))
    report = lab.micro_run()
    assert (report.records, report.refusals) == (10, ())
    copied = read_topic(target_cluster.bootstrap, lab.target_topic(topic))
    assert [row[2] for row in copied[0]] == [message.value for message in numbered(40)]


def test_an_overtaken_driver_writes_no_summary(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    after_sealing, left = upkeep.keep_short, [lab.micro_run]

    async def late(*sealed: Any) -> None:
        if left:
            left.pop()()
        await after_sealing(*sealed)

    monkeypatch.setattr(upkeep, "is_due", lambda _: True)
    monkeypatch.setattr(plan_run, "keep_short", late)
    with lab.runs() as runs:
        runs.open_run("slow", local_origin())
        view = settled(runs)
    slow, quick = view.runs
    assert slow.record.run == "slow"
    assert {key[1] for key, _ in view.of_kind(SUMMARY)} == {quick.generation}


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

    monkeypatch.setattr(upkeep, "is_due", lambda _: True)
    monkeypatch.setattr(upkeep, "sweep", late)
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
