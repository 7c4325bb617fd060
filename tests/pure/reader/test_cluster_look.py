"""What brokers show of their cluster, over scripted brokers: which answer, versions, controller, partitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ferry.config.settings import load
from ferry.errors import Refused
from ferry.features.doctor.acts import brokers as asking
from ferry.features.doctor.acts.brokers import Asked
from ferry.features.doctor.rules.clusters import (
    BrokerFacts,
    Load,
    ShortPartition,
    health_of,
    release_of,
    with_absent,
    written_level,
)
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, PartitionInfo
from ferry.model import TopicPartition
from ferry.plan.lag import lag_over
from ferry.plan.rules.lag import PartitionLag
from ferry.reader import cluster_look
from ferry.reader import watch as watching
from ferry.reader.watch import FlowWatch
from tests.pure.answers.stories import begun
from tests.pure.answers.world import FILE, World, world
from tests.pure.scripted.faults import At, Fault


def place(partition: int) -> TopicPartition:
    return TopicPartition(topic="orders", partition=partition)


def info(partition: int, leader: int, replicas: tuple[int, ...], in_sync: tuple[int, ...]) -> PartitionInfo:
    return PartitionInfo(partition=partition, leader=leader, leader_epoch=1, replicas=replicas, in_sync=in_sync)


def test_partitions_without_a_leader_are_offline_and_are_named_first() -> None:
    parts = [info(0, 1, (1, 2), (1, 2)), info(1, 2, (2, 3), (2,)), info(2, -1, (3,), (3,))]
    found = health_of((place(one.partition), one) for one in parts)
    assert (found.partitions, found.offline, found.under_replicated) == (3, 1, 1)
    assert found.short == (
        ShortPartition(place=place(2), offline=True, in_sync=1, replicas=1),
        ShortPartition(place=place(1), offline=False, in_sync=1, replicas=2),
    )
    assert found.loads == (
        Load(broker=1, leads=1, replicas=1),
        Load(broker=2, leads=1, replicas=2),
        Load(broker=3, leads=0, replicas=2),
    )


def test_a_broker_with_replicas_that_is_not_listed_is_down() -> None:
    listed = BrokerFacts(id=2, address="h:1")
    found = with_absent([listed], [Load(broker=1, replicas=4), Load(broker=2, replicas=4)])
    assert [(one.id, one.answers, one.address) for one in found] == [(1, False, ""), (2, True, "h:1")]


@pytest.mark.parametrize(
    ("level", "release"),
    [(0, None), (1, (3, 0)), (7, (3, 3)), (20, (3, 8)), (25, (4, 0)), (29, (4, 2)), (30, (4, 3)), (31, None)],
)
def test_a_level_of_metadata_has_a_release_and_a_later_one_is_not_known(
    level: int, release: tuple[int, int] | None
) -> None:
    assert release_of(level) == release
    assert str(level) in written_level(level)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as one:
        begun(one, topics={"users": 2})
        one.b.nodes = (1, 2)
        assert one.ask("run", "a->b").code == 0
        yield one


@pytest.fixture
def watch(made: World) -> Iterator[FlowWatch]:
    with closing(FlowWatch(load(made.folder / FILE).flow("a->b"), patience_s=1.0)) as one:
        yield one


def test_each_cluster_shows_its_brokers_its_controller_and_the_copies_of_the_flow(
    made: World, watch: FlowWatch
) -> None:
    made.b.features = {"metadata.version": 29}
    made.b.quorum_leader = 3000
    made.a.settings |= {"inter.broker.protocol.version": "2.8"}
    watch.look()
    found = watch.clusters()
    assert found.source.facts
    assert found.source.steering
    assert found.target.facts
    assert found.target.steering
    assert (found.source.why, found.target.why, found.source.not_known) == ("", "", "")
    assert [one.id for one in found.target.facts.brokers] == [1, 2]
    assert [one.answers for one in found.target.facts.brokers] == [True, True]
    assert found.source.facts.cluster_id == made.a.alias
    assert all(one.version for one in found.source.facts.brokers)
    assert (found.source.steering.controller, found.target.steering.controller) == (1, 3000)
    assert found.source.steering.protocol == "inter.broker.protocol.version 2.8"
    assert found.target.steering.protocol.startswith("metadata.version 4.2")
    assert found.source.health
    assert found.target.health
    assert found.source.health.partitions == 2
    assert found.target.health.partitions == 3  # the ledger's is one of them
    assert found.target.health.short == ()
    assert found.source.asked_ms == made.now_ms


@pytest.mark.slow
def test_figures_of_a_poll_are_as_old_as_its_questions(
    made: World, watch: FlowWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = made.now_ms

    async def slow(*asked: Any) -> list[PartitionLag]:
        found = await lag_over(*asked)
        made.now_ms += 60_000
        return found

    monkeypatch.setattr(watching, "lag_over", slow)
    assert watch.look().lags
    assert watch.clusters().source.asked_ms == began


@pytest.mark.slow
def test_a_dead_broker_is_counted_and_its_partitions_are_under_replicated(made: World, watch: FlowWatch) -> None:
    made.b.lost = (7,)
    watch.look()
    target = watch.clusters().target
    assert target.facts
    assert target.health
    assert (target.facts.answering, len(target.facts.brokers)) == (2, 3)
    assert (target.health.under_replicated, target.health.offline) == (3, 0)


@pytest.mark.slow
def test_a_broker_that_is_listed_and_does_not_answer_is_named(made: World, watch: FlowWatch) -> None:
    watch.look()
    watch.clusters()
    made.b.faults.append(Fault(api="ApiVersions", held=True, times=9, only=lambda asked: asked.node == 2))
    target = watch.clusters().target
    assert target.facts
    assert [(one.id, one.answers) for one in target.facts.brokers] == [(1, True), (2, False)]
    assert target.why == ""


def test_the_controller_that_metadata_names_is_not_shown_while_no_broker_answers(made: World, watch: FlowWatch) -> None:
    made.b.features = {"metadata.version": 29}
    watch.look()
    watch.clusters()
    made.b.faults.append(Fault(api="ApiVersions", held=True, times=9))
    target = watch.clusters().target
    assert target.facts
    assert target.steering
    assert (target.facts.answering, target.steering.controller) == (0, None)
    assert len(target.steering.not_known) == 2


def test_what_may_not_be_asked_is_not_known_and_says_why(made: World, watch: FlowWatch) -> None:
    made.b.features = {"metadata.version": 29}
    made.b.faults.append(Fault(api="DescribeQuorum", code=codes.CLUSTER_AUTHORIZATION_FAILED, at=At.OUTER, times=9))
    made.a.undescribed = {"1": codes.CLUSTER_AUTHORIZATION_FAILED}
    watch.look()
    found = watch.clusters()
    for story in (found.source, found.target):
        assert story.steering
        assert len(story.steering.not_known) == 1
    assert found.target.steering
    assert found.target.steering.controller is None
    assert found.source.steering
    assert found.source.steering.protocol == ""


@pytest.mark.slow
def test_a_cluster_that_is_gone_keeps_what_it_showed_last(made: World, watch: FlowWatch) -> None:
    watch.look()
    before = watch.clusters()
    made.b.nodes = ()
    made.now_ms += 1
    watch.look()
    after = watch.clusters()
    assert after.target.why
    assert after.target.facts == before.target.facts
    assert after.target.asked_ms == before.target.asked_ms < after.source.asked_ms


def test_a_refused_request_is_no_outage(made: World, watch: FlowWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.look()
    watch.clusters()
    monkeypatch.setattr(cluster_look, "ask_brokers", refused)
    found = watch.clusters()
    for story in (found.source, found.target):
        assert (story.why, story.not_asked) == ("", "not allowed")
        assert story.facts, "what it showed last"
    monkeypatch.undo()
    assert {one.not_asked for one in (watch.clusters().source, watch.clusters().target)} == {""}


async def refused(_: Cluster) -> Asked:
    raise Refused("not allowed")


@pytest.mark.slow
def test_an_error_of_a_broker_at_its_settings_leaves_the_others_known(
    made: World, watch: FlowWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused_there(*_: object) -> dict[str, str]:
        raise Refused("not allowed")

    monkeypatch.setattr(asking, "settings_of_broker", refused_there)
    watch.look()
    source = watch.clusters().source
    assert source.facts
    assert source.steering
    assert (source.steering.protocol, len(source.steering.not_known)) == ("", 1)


@pytest.mark.parametrize("gone", ["a", "b"])
def test_a_cluster_that_never_answered_is_not_known_and_the_other_is_shown(
    made: World, watch: FlowWatch, gone: str
) -> None:
    made.lost = {"a": made.a, "b": made.b}[gone]
    watch.look()
    found = watch.clusters()
    stories = {one.alias: one for one in (found.source, found.target)}
    lost, there = stories.pop(gone), stories.popitem()[1]
    assert (lost.facts, lost.health, lost.asked_ms) == (None, None, 0)
    assert lost.why
    assert there.facts
    assert there.why == ""
    assert (there.health is None) == bool(there.not_known) == (gone == "a")
