"""Pieces of partitions read on real brokers, for whoever takes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.config.record_source import record_source
from ferry.dev import RunningCluster
from ferry.errors import BadInput, Refused, Unreachable
from ferry.features.records.acts.reading import ReadSpec, read_batches
from ferry.features.records.acts.survey import Surveyed, survey
from ferry.features.records.rules.ranges import ReadRange
from ferry.model import TopicPartition
from ferry.wire.columns import columns
from tests.harness import create_topic, delete_topic, numbered, producer, send, wait_until
from tests.said import data_of
from tests.tiers import ANSWER_S


def surveyed(cluster: RunningCluster, topics: str, **options: str) -> Surveyed:
    return survey(record_source({"kafka.bootstrap.servers": cluster.bootstrap, "topics": topics, **options}))


def spec(found: Surveyed) -> ReadSpec:
    return ReadSpec(
        alias=found.alias,
        connection=found.connection,
        fetch=found.fetch,
        pieces=tuple(ReadRange(place, start, end) for place, (start, end) in found.ranges.items()),
        topic_ids=found.topic_ids,
        patience_s=ANSWER_S,
    )


def test_pieces_are_read_to_their_ends(source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic, 3)
    send(producer(source_cluster, batch_num_messages=10), topic, numbered(900, partitions=3))
    found = surveyed(source_cluster, topic, **{"from": f"{topic}:1:7", "to": f"{topic}:2:293"})
    read: dict[TopicPartition, list[int]] = {}
    for piece, batch in read_batches(spec(found)):
        read.setdefault(piece.place, []).extend(columns(batch, 1 << 20, piece.start, piece.end).offsets)
    wanted = {0: range(300), 1: range(7, 300), 2: range(293)}
    assert read == {TopicPartition(topic, number): list(part) for number, part in wanted.items()}


def test_whoever_has_seen_enough_may_go(source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster, batch_num_messages=10), topic, numbered(500))
    reading = read_batches(spec(surveyed(source_cluster, topic)))
    _, batch = next(reading)
    assert batch.base_offset == 0
    assert isinstance(reading, Generator)
    reading.close()  # ends the thread that reads, or this never returns


def test_records_that_go_between_looking_and_reading_are_missed(source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(100))
    found = surveyed(source_cluster, topic)
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    place = Place(topic, 0, 60)
    admin.delete_records([place])[place].result(ANSWER_S)
    with pytest.raises(Refused) as refused:
        list(read_batches(spec(found)))
    code, facts = data_of(refused.value)
    assert (code, facts["source"], facts["at"]) == ("source.unreadable", f"{topic}-0", 0)
    assert facts["of"] == "source.retention-passed.since-plan"
    with pytest.raises(Refused, match=f" 59 .*{topic}-0 .* 60"):
        surveyed(source_cluster, topic, **{"from": f"{topic}:0:59"})


def test_a_topic_that_is_another_one_by_now_is_not_read(source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    found = surveyed(source_cluster, topic)
    delete_topic(source_cluster, topic)
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    wait_until(lambda: topic not in admin.list_topics(timeout=ANSWER_S).topics, "the end of the deleted topic")
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    with pytest.raises(Refused) as refused:
        list(read_batches(spec(found)))
    code, facts = data_of(refused.value)
    assert (code, facts["of"]) == ("source.unreadable", "source.recreated.since-plan")


def test_a_cluster_that_does_not_answer(source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    found = surveyed(source_cluster, topic)
    nowhere = dataclasses.replace(found.connection, bootstrap_servers=("127.0.0.1:1",))
    with pytest.raises(Unreachable, match="kafka"):
        list(read_batches(dataclasses.replace(spec(found), connection=nowhere, patience_s=1)))
    with pytest.raises(BadInput, match="topics"):
        surveyed(source_cluster, "a(")
