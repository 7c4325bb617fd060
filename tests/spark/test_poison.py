"""Records that a transform cannot be applied to, by the copy job: refused, dead letters, or copied as they were."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka import KafkaProducer

from ferry.config.client_options import ENGINE_CHOOSES
from ferry.config.flow.clients import kafka_python_options
from ferry.dev import RunningCluster
from ferry.features.records.acts.cluster import connected
from ferry.features.records.acts.reading import ReadSpec, read_batches
from ferry.features.records.rules.ranges import ReadRange
from ferry.kafka.fetch.offsets import LATEST, list_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.model import RefusalKind, TopicPartition
from ferry.wire.content import contents
from ferry.wire.headers import Header, parse_headers
from tests.harness import Lab, Message, create_topic, new_alias, producer, send
from tests.said import facts_in, of_code
from tests.spark.jobs import plan, submit
from tests.spark.test_header_names import RawName
from tests.tiers import ANSWER_S

Raw = tuple[bytes | None, bytes | None, tuple[Header, ...], int]
"""Key, value, headers and time."""

POLICIES = ("fail", "skip", "pass")
GOOD, MASKED, POISON = b'{"card": "4111", "n": 1.50}', b'{"card": "", "n": 1.50}', b"no JSON"
HEADERS = (("h", b"1"), ("h", None))
NAMED: tuple[tuple[Header, ...], ...] = (((b"h", b"1"), (b"h", None)), ((RawName.data, b"2"),))
"""Of the records of a partition. The second one's name is no UTF-8."""
LATELY = 1_700_000_000_000
"""Older than a week: letters keep it, and stay."""


def values(partition: int) -> list[bytes | None]:
    """Of one partition: the second one has poison."""
    return [GOOD, None, b"", GOOD] if partition == 0 else [GOOD, None, POISON, GOOD]


def read_raw(cluster: RunningCluster, topic: str, partition: int) -> list[Raw]:
    """The records of a partition, headers as bytes: Kafka's clients for Python fail at such names."""
    piece = ReadRange(TopicPartition(topic, partition), 0, 100)
    connection = kafka_python_options({"bootstrap.servers": cluster.bootstrap})
    with connected("b", connection) as there:
        look = partial(list_offsets, there, {piece.place: LATEST}, isolation=READ_COMMITTED)
        end = there.loop.run(look)[piece.place]
    spec = ReadSpec(
        alias="b", connection=connection, fetch=ENGINE_CHOOSES, pieces=(piece._replace(end=end),), topic_ids={}
    )
    return [
        (one.key, one.value, tuple(parse_headers(one.headers)), one.timestamp)
        for _, batch in read_batches(spec)
        for one in contents(batch, 1 << 20)
    ]


def test_each_policy_does_what_it_says_and_stops_nothing_else(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    settings = {"ferry.transforms": ", ".join(POLICIES)}
    for policy in POLICIES:
        name = f"{topic}-{policy}"
        create_topic(source_cluster, name, 2, {"retention.ms": "-1"})
        send(
            producer(source_cluster),
            name,
            [
                Message(key=b"k", value=value, headers=HEADERS, timestamp=LATELY + at)
                for at, value in enumerate(values(0))
            ],
        )
        odd = [(RawName("?"), b"2")]
        with closing(KafkaProducer(bootstrap_servers=source_cluster.bootstrap)) as client:
            for at, value in enumerate(values(1)):
                client.send(name, value, b"k", odd, partition=1, timestamp_ms=LATELY + at).get(ANSWER_S)
        key = f"ferry.transform.{policy}"
        settings |= {f"{key}.topics": name, f"{key}.redact": "$.card", f"{key}.poison": policy}
        settings |= {f"{key}.where": "value IS NULL OR length(value) > 0"}
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=tuple(f"{topic}-{policy}" for policy in POLICIES),
        settings=settings,
    )
    letters = f"ferry-dead-letters.{lab.alias}.internal"

    made = plan(lab, "r-1")
    assert [facts_in(note) for note in of_code("letters.topic-created", made.notes)] == [{"topic": letters}]
    job = submit(lab, "r-1", tmp_path)
    assert job.wait(400) == 0, job.text()  # one worker for each step of each topic

    with lab.runs() as runs:
        report = runs.report("r-1")
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (f"{topic}-fail", 1, RefusalKind.POISON)
    assert refusal.message.startswith("ferry.transform.fail ")
    assert f" at offset 2 of {topic}-fail-1: its value " in refusal.message
    assert " not JSON from character 1 " in refusal.message
    assert f"ferry: refused: {refusal.message}" in job.text()
    assert report.dead_letters == 1

    def copied(policy: str, partition: int) -> list[Any]:
        found = read_raw(target_cluster, lab.target_topic(f"{topic}-{policy}"), partition)
        assert {row[2] for row in found} == {NAMED[partition]}
        return [row[1] for row in found]

    for policy in POLICIES:
        assert copied(policy, 0) == [MASKED, None, MASKED]
    assert copied("fail", 1) == [MASKED, None]
    assert copied("skip", 1) == [MASKED, None, MASKED]
    assert copied("pass", 1) == [MASKED, None, POISON, MASKED]

    ((letter_key, value, headers, time),) = read_raw(target_cluster, letters, 0)
    assert (letter_key, value, headers[:1], time) == (b"k", POISON, NAMED[1], LATELY + 2)
    headers_of = {name.decode(): (data or b"").decode() for name, data in headers[1:]}
    assert headers_of["__connect.errors.topic"] == f"{topic}-skip"
    assert (headers_of["__connect.errors.partition"], headers_of["__connect.errors.offset"]) == ("1", "2")
    assert "it is not JSON" in headers_of["__connect.errors.exception.message"]
    assert headers_of["ferry.errors.cluster"] == lab.alias
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    (config,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, letters)]).values()
    assert config.result(ANSWER_S)["retention.ms"].value == "-1"
