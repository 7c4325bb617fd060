"""Flows between three real clusters, from one file: every record arrives once, and none goes round twice."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from tests.harness import create_topic, numbered, producer, send
from tests.kafka.topologies.atlas import IDENTITY, Atlas
from tests.said import data_of
from tests.tiers import ANSWER_S

Three = dict[str, RunningCluster]


@pytest.fixture
def three(source_cluster: RunningCluster, target_cluster: RunningCluster, third_cluster: RunningCluster) -> Three:
    """Three clusters a, b and c."""
    return {"a": source_cluster, "b": target_cluster, "c": third_cluster}


def fill(cluster: RunningCluster, topic: str, count: int, *, start: int = 0, partitions: int = 2) -> None:
    """Records whose values no other cluster has; the topic is made when it is missing."""
    if topic not in AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics:
        create_topic(cluster, topic, partitions)
    send(producer(cluster), topic, numbered(count, partitions=partitions, start=start))


def topics_of(cluster: RunningCluster, part: str) -> set[str]:
    """The topics whose names hold `part`, without ledgers."""
    listed = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics
    return {name for name in listed if part in name and not name.startswith("ferry-ledger")}


def test_active_active(three: Three, topic: str) -> None:
    both = {name: three[name] for name in "ab"}
    atlas = Atlas(clusters=both, flows=("a->b", "b->a"), topics=f".*{topic}")
    fill(three["a"], topic, 100)
    fill(three["b"], topic, 60, start=1000)
    assert atlas.round() == {"a->b": 100, "b->a": 60}
    assert atlas.round() == {"a->b": 0, "b->a": 0}, "nothing goes round"
    fill(three["b"], topic, 10, start=2000)
    assert atlas.round() == {"a->b": 0, "b->a": 10}
    assert topics_of(three["a"], topic) == {topic, f"{atlas.alias('b')}.{topic}"}
    assert topics_of(three["b"], topic) == {topic, f"{atlas.alias('a')}.{topic}"}
    assert atlas.rows("b", f"{atlas.alias('a')}.{topic}") == atlas.rows("a", topic)
    assert atlas.rows("a", f"{atlas.alias('b')}.{topic}") == atlas.rows("b", topic)


def test_aggregation(three: Three, topic: str) -> None:
    atlas = Atlas(clusters=three, flows=("a->c", "b->c"), topics=topic)
    fill(three["a"], topic, 100)
    fill(three["b"], topic, 60, start=1000)
    assert atlas.round() == {"a->c": 100, "b->c": 60}
    assert atlas.round() == {"a->c": 0, "b->c": 0}
    for letter in "ab":
        assert atlas.rows("c", f"{atlas.alias(letter)}.{topic}") == atlas.rows(letter, topic)


def test_fan_out(three: Three, topic: str) -> None:
    settings = {"replication.policy.class": IDENTITY}
    atlas = Atlas(clusters=three, flows=("a->b", "a->c"), topics=topic, settings=settings)
    fill(three["a"], topic, 100)
    assert atlas.round() == {"a->b": 100, "a->c": 100}
    fill(three["a"], topic, 30, start=1000)
    assert atlas.round() == {"a->b": 30, "a->c": 30}
    assert atlas.round() == {"a->b": 0, "a->c": 0}
    assert atlas.rows("b", topic) == atlas.rows("c", topic) == atlas.rows("a", topic)


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_forwarding(three: Three, topic: str, policy: str) -> None:
    settings = {"replication.policy.class": policy}
    atlas = Atlas(clusters=three, flows=("a->b", "b->c"), topics=f".*{topic}", settings=settings)
    fill(three["a"], topic, 100)
    assert atlas.round() == {"a->b": 100, "b->c": 100}
    assert atlas.round() == {"a->b": 0, "b->c": 0}
    arrived = topic
    if policy == "DefaultReplicationPolicy":
        arrived = f"{atlas.alias('b')}.{atlas.alias('a')}.{topic}"
    assert topics_of(three["c"], topic) == {arrived}
    assert atlas.rows("c", arrived) == atlas.rows("a", topic)


def test_a_circle_of_three_ends_before_it_closes(three: Three, topic: str) -> None:
    atlas = Atlas(clusters=three, flows=("a->b", "b->c", "c->a"), topics=f".*{topic}")
    fill(three["a"], topic, 20)
    assert atlas.round() == {"a->b": 20, "b->c": 20, "c->a": 0}
    assert atlas.round() == {"a->b": 0, "b->c": 0, "c->a": 0}
    assert topics_of(three["a"], topic) == {topic}


def test_a_circle_that_names_do_not_show_is_refused_by_all_of_its_flows(three: Three, topic: str) -> None:
    settings = {"replication.policy.class": IDENTITY}
    atlas = Atlas(clusters=three, flows=("a->b", "b->c", "c->a"), topics=f"{topic}.*", settings=settings)
    for name in "abc":
        fill(three[name], topic, 5)
    for flow in atlas.flows:
        report = atlas.run(flow)
        assert [(r.topic, r.kind) for r in report.refusals] == [(topic, RefusalKind.LOOP)]
        assert report.records == 0
    open_end = {"c->a.topics.exclude": topic, "ferry.guard.foreign.writer": "skip"}  # each cluster has records already
    excluded = Atlas(clusters=three, flows=atlas.flows, topics=atlas.topics, settings={**settings, **open_end})
    assert excluded.refusals("a->b") == []


def test_what_came_from_the_target_is_not_sent_back_by_another_file(three: Three, topic: str) -> None:
    both = {name: three[name] for name in "ab"}
    settings = {"replication.policy.class": IDENTITY}
    there = Atlas(clusters=both, flows=("a->b",), topics=topic, settings=settings)
    fill(three["a"], topic, 40)
    assert there.run("a->b").records == 40
    back = Atlas(clusters=both, flows=("b->a",), topics=topic, settings=settings)
    report = back.run("b->a")
    assert {(r.partition, r.kind) for r in report.refusals} == {(0, RefusalKind.LOOP), (1, RefusalKind.LOOP)}
    assert report.records == 0
    fill(three["b"], topic, 6, start=500)
    ends = {receipt.target.partition: receipt.target_next for receipt in there.receipts("a->b")}
    begin = ",".join(f"{topic}:{number}:{end}" for number, end in sorted(ends.items()))
    behind = Atlas(clusters=both, flows=("b->a",), topics=topic, settings={**settings, "ferry.start": begin})
    report = behind.run("b->a")
    assert (report.state, report.records) == (RunState.SUCCESS, 6), report.refusals
    assert behind.run("b->a").records == 0
    assert {r.kind for r in there.refusals("a->b")} == {RefusalKind.LOOP}, "nor does that go back again"


def test_two_aliases_of_one_cluster_are_no_flow(source_cluster: RunningCluster, topic: str) -> None:
    atlas = Atlas(clusters={"a": source_cluster, "b": source_cluster}, flows=("a->b",), topics=topic)
    with pytest.raises(Refused) as refused:
        atlas.run("a->b")
    assert data_of(refused.value)[0] == "clusters.same"
    listed = AdminClient({"bootstrap.servers": source_cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics
    assert not [name for name in listed if atlas.mark in name], "nothing was written"
