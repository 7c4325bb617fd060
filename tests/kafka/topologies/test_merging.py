"""Several sources into one topic of the same name, on real clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from ferry.dev import RunningCluster
from ferry.features.groups.acts.of_run import sync_groups
from ferry.ledger.report import RunState
from ferry.model import Receipt, RefusalKind, Why
from tests.harness import Message, commit_offsets, committed_offsets, create_topic, numbered, producer, read_topic, send
from tests.kafka.topologies.atlas import IDENTITY, Atlas
from tests.tiers import ANSWER_S

MERGED = {"replication.policy.class": IDENTITY, "a->c.ferry.merge.topics": ".*", "b->c.ferry.merge.topics": ".*"}


def atlas_of(
    source: RunningCluster, target: RunningCluster, third: RunningCluster, topic: str, settings: Mapping[str, str]
) -> Atlas:
    """`a->c` and `b->c` over one topic with two partitions, which both sources have."""
    atlas = Atlas(
        clusters={"a": source, "b": target, "c": third}, flows=("a->c", "b->c"), topics=topic, settings=settings
    )
    for cluster in (source, target):
        create_topic(cluster, topic, 2)
    return atlas


@pytest.fixture
def merged(
    source_cluster: RunningCluster, target_cluster: RunningCluster, third_cluster: RunningCluster, topic: str
) -> Atlas:
    """Both flows agree."""
    return atlas_of(source_cluster, target_cluster, third_cluster, topic, MERGED)


def assert_merged(atlas: Atlas, topic: str) -> None:
    """Every record of both sources is on the target once, in its source's order, where its flow's receipts say."""
    arrived = {
        (number, row[0]): row[1:]
        for number, rows in read_topic(atlas.clusters["c"].bootstrap, topic).items()
        for row in rows
    }
    named: Counter[tuple[int, int]] = Counter()
    for letter in "ab":
        source = read_topic(atlas.clusters[letter].bootstrap, topic)
        places = [where for receipt in atlas.receipts(f"{letter}->c") for where in _places(receipt)]
        named.update((number, at) for number, _, at in places)
        by_source = {(number, offset): at for number, offset, at in places}
        for number, rows in source.items():
            assert [arrived[number, by_source[number, row[0]]] for row in rows] == [row[1:] for row in rows]
            offsets = [by_source[number, row[0]] for row in rows]
            assert offsets == sorted(offsets)
    assert set(named) == set(arrived)
    assert max(named.values()) == 1


def _places(receipt: Receipt) -> list[tuple[int, int, int]]:
    """Partition, source offset and target offset of every record of a receipt."""
    return [
        (receipt.target.partition, part.source_start + index, part.target_start + index)
        for part in receipt.segments
        for index in range(part.count)
    ]


def test_two_sources_become_one_topic(merged: Atlas, topic: str) -> None:
    for turn in range(2):
        for letter, start in (("a", 0), ("b", 100_000)):
            client = producer(merged.clusters[letter])
            send(client, topic, numbered(100, partitions=2, start=start + turn * 1000))
        assert merged.round() == {"a->c": 100, "b->c": 100}
    assert merged.round() == {"a->c": 0, "b->c": 0}
    assert_merged(merged, topic)
    group = f"app-{merged.mark}"
    commit_offsets(merged.clusters["a"], group, {(topic, 0): 7})
    with merged.runs("a->c") as runs:
        done = sync_groups(runs, "groups-merged", only=frozenset({group}), force=True)[1]
    assert done is not None
    assert [(one.group, one.why) for one in done.left] == [(group, Why.MERGED)]
    assert committed_offsets(merged.clusters["c"], group, topic, 2) == {}, "it says nothing of records from b"


def test_chunks_of_two_flows_lie_between_each_other(merged: Atlas, topic: str) -> None:
    """Both runs copy at the same time, in many small requests: neither takes the other for a stranger."""
    for letter, start in (("a", 0), ("b", 100_000)):
        send(producer(merged.clusters[letter]), topic, numbered(10, partitions=2, start=start))
    assert merged.round() == {"a->c": 10, "b->c": 10}
    for letter, start in (("a", 1_000), ("b", 101_000)):
        client = producer(merged.clusters[letter], batch_num_messages=5)
        send(client, topic, numbered(4_000, partitions=2, start=start))
    with ThreadPoolExecutor(2) as threads:
        reports = list(threads.map(merged.run, merged.flows))
    assert [report.records for report in reports] == [4_000, 4_000], [report.refusals for report in reports]
    assert merged.round() == {"a->c": 0, "b->c": 0}
    assert_merged(merged, topic)


def test_a_stranger_in_a_merged_topic_stops_its_partition(merged: Atlas, topic: str) -> None:
    for letter in "ab":
        send(producer(merged.clusters[letter]), topic, numbered(20, partitions=2))
    merged.round()
    stranger = producer(merged.clusters["c"], transactional_id=topic)
    stranger.init_transactions(ANSWER_S)
    stranger.begin_transaction()
    send(stranger, topic, [Message(value=b"stranger", partition=1)])
    send(producer(merged.clusters["a"]), topic, numbered(20, partitions=2, start=200))
    assert merged.run("a->c").records == 20, "it might be the other flow's"
    stranger.commit_transaction(ANSWER_S)  # it lies before what was copied meanwhile
    for letter in "ab":
        send(producer(merged.clusters[letter]), topic, numbered(20, partitions=2, start=500))
        report = merged.run(f"{letter}->c")
        assert report.state is RunState.PARTIAL
        assert [(r.partition, r.kind) for r in report.refusals] == [(1, RefusalKind.FOREIGN_WRITER)]
        assert report.records == 10, "the other partition goes on"


def test_a_crashed_chunk_in_a_merged_topic_is_no_stranger(merged: Atlas, topic: str) -> None:
    for letter in "ab":
        send(producer(merged.clusters[letter]), topic, numbered(20, partitions=2))
    merged.round()
    writer = producer(merged.clusters["c"], transactional_id=topic)
    writer.init_transactions(ANSWER_S)
    writer.begin_transaction()
    send(writer, topic, numbered(7, partitions=2))
    writer.abort_transaction(ANSWER_S)
    assert merged.round() == {"a->c": 0, "b->c": 0}
    send(producer(merged.clusters["a"]), topic, numbered(20, partitions=2, start=500))
    assert merged.round() == {"a->c": 20, "b->c": 0}
    assert_merged(merged, topic)


def test_a_second_flow_that_did_not_agree_is_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, third_cluster: RunningCluster, topic: str
) -> None:
    settings = {"replication.policy.class": IDENTITY}
    alone = atlas_of(source_cluster, target_cluster, third_cluster, topic, settings)
    for letter in "ab":
        send(producer(alone.clusters[letter]), topic, numbered(20, partitions=2))
    assert alone.run("a->c").records == 20
    report = alone.run("b->c")
    assert [(r.topic, r.kind) for r in report.refusals] == [(topic, RefusalKind.OWNED)]
    assert report.records == 0
    both = Atlas(
        clusters=alone.clusters, flows=alone.flows, topics=topic, settings={**settings, **MERGED}, mark=alone.mark
    )
    assert "ferry.merge.topics" in both.refusals("b->c")[0].message
    send(producer(both.clusters["a"]), topic, numbered(2, partitions=2, start=900))
    assert both.round() == {"a->c": 2, "b->c": 20}
    assert_merged(both, topic)
