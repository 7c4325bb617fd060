"""What an adoption reads on real brokers where no MirrorMaker runs: Kafka Connect's topics, MirrorMaker 1's group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from ferry.dev import RunningCluster
from ferry.errors import BadInput, Refused
from ferry.features.migrate.acts.adopting import AdoptionOptions, Mm1Place, PredecessorPlace, adopt, preview_adoption
from ferry.features.migrate.acts.at_rest import Mm2Place
from ferry.features.migrate.acts.hand_back import HandBackOptions, hand_back
from ferry.features.migrate.rules.adoption import Row, Takeover, Verdict
from ferry.features.migrate.rules.connect_offsets import format_key, format_value
from ferry.run.micro_run import local_origin
from tests.harness import (
    Feeder,
    Lab,
    Message,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    wait_until,
)
from tests.program import warm_ferry as ferry
from tests.pure.decide.values import place
from tests.tiers import ANSWER_S

OPTIONS = AdoptionOptions(who="ann@desk-7")


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow of which a part is copied."""
    return copied_in_part(source_cluster, target_cluster, topic)


def copied_in_part(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """Make a flow of which 20 of 30 records are on the target already, copied by another program."""
    made = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic)
    create_topic(target_cluster, made.target_topic(topic))
    stamped = [(message, 1_000 + number) for number, message in enumerate(numbered(30))]
    send(producer(source_cluster), topic, [with_time(message, at) for message, at in stamped])
    send(producer(target_cluster), made.target_topic(topic), [with_time(message, at) for message, at in stamped[:20]])
    return made


def with_time(message: Message, at_ms: int) -> Message:
    return replace(message, timestamp=1_795_168_791_000 + at_ms)


def preview(lab: Lab, at: PredecessorPlace) -> Takeover:
    with lab.runs() as runs:
        return preview_adoption(runs, at, OPTIONS)


def rows(lab: Lab) -> list[bytes | None]:
    (name,) = lab.topics
    return [row[2] for row in read_topic(lab.target.bootstrap, lab.target_topic(name))[0]]


def refused(lab: Lab, at: PredecessorPlace, words: str, kind: type[Exception] = Refused) -> None:
    with pytest.raises(kind, match=words):
        preview(lab, at)


def test_a_dedicated_one_has_the_names_that_mirrormaker_2_gives() -> None:
    at = Mm2Place.of("a")
    assert (at.offsets_topic, at.connector, at.group, at.status_topic, at.dedicated) == (
        "mm2-offsets.a.internal",
        "MirrorSourceConnector",
        "a-mm2",
        "mm2-status.a.internal",
        True,
    )
    assert not Mm2Place.of("a", offsets_topic="connect-offsets").dedicated


def test_a_connector_is_adopted_when_its_workers_say_that_it_is_stopped(lab: Lab) -> None:
    (topic,) = lab.topics
    offsets, status = f"offsets-{lab.alias}", f"status-{lab.alias}"
    at = Mm2Place.of(lab.alias, offsets_topic=offsets, connector="mirror", status_topic=status)
    client = producer(lab.target)

    def say(where: str, key: bytes, value: bytes) -> None:
        send(client, where, [Message(key=key, value=value)])

    def state(word: str) -> None:
        say(status, b"status-connector-mirror", json.dumps({"state": word, "worker_id": "w:8083"}).encode())

    refused(lab, at, f"there is no topic {status} .* --status-topic", BadInput)
    create_topic(lab.target, status, 3)
    create_topic(lab.target, offsets, 3)
    refused(lab, at, f"{status} on cluster t{lab.alias} knows no connector mirror", BadInput)
    for word in ("RUNNING", "PAUSED", "FAILED"):
        state(word)
        refused(lab, at, f"connector mirror is {word} by {status}: stop it")
    state("STOPPED")
    refused(lab, at, "has no position of connector mirror for source cluster", BadInput)

    key = format_key("mirror", lab.alias, place(topic))
    say(offsets, key, format_value(20))
    with transaction(lab.target, offsets, key, format_value(25)):
        refused(lab, at, "in a transaction that is still open")
    row = only(preview(lab, at))
    assert (row.verdict, row.position, row.seam.state.value, row.doubled) == (Verdict.ADOPT, 20, "clean", 0)

    # Another connector on the same workers moves on; it is none of this one's business. This one's copy growing is.
    with Feeder(lab.target, lab.target_topic(topic), partitions=1):
        refused(lab, at, "MirrorMaker 2 still runs, because .* grew from offset")


def test_mirrormaker_1_is_adopted_by_its_group_when_that_is_empty(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    at = Mm1Place(group=f"mirror-{lab.alias}")
    refused(lab, at, "has no position on a topic of flow", BadInput)
    consumer = Consumer(
        {
            "bootstrap.servers": lab.source.bootstrap,
            "group.id": at.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) is not None, "a first record for the consumer")
        consumer.commit(offsets=[TopicPartition(topic, 0, 20)], asynchronous=False)
        refused(lab, at, f"MirrorMaker 1 still runs: group {at.group} on cluster {lab.alias} is Stable with 1 member")
    finally:
        consumer.close()
    assert only(preview(lab, at)).position == 20
    with lab.runs() as runs:
        done = adopt(runs, at, OPTIONS, "adopt-1", local_origin())
        assert [row.verdict for row in done.rows] == [Verdict.ADOPT]
        # A run that is at work may copy on, so nobody takes over or hands back meanwhile.
        plan = runs.open_run("at-work", local_origin())
        with pytest.raises(Refused, match="at-work"):
            adopt(runs, at, OPTIONS, "adopt-2", local_origin())
        with pytest.raises(Refused, match="at-work"):
            hand_back(runs, Mm2Place.of(lab.alias), HandBackOptions(who="ann@desk-7"), "back-1", local_origin())
        assert lab.copy(runs, plan).records == 10
    assert rows(lab) == [message.value for message in numbered(30)]

    # To a MirrorMaker 2 that was never here it goes by a file.
    config, file = lab.write(tmp_path), tmp_path / "positions.jsonl"
    answer = ferry("migrate", "hand-back", config=config)
    assert (answer.code, " with --output" in answer.err) == (2, True), answer.err
    answer = ferry("migrate", "hand-back", "--output", file, config=config)
    assert answer.code == 0, answer.err
    (line,) = file.read_text().splitlines()
    partition = {"cluster": lab.alias, "partition": 0, "topic": topic}
    assert json.loads(line) == {"key": ["MirrorSourceConnector", partition], "value": {"offset": 29}}


def only(found: Takeover) -> Row:
    (row,) = found.rows
    return row


@contextmanager
def transaction(cluster: RunningCluster, topic: str, key: bytes, value: bytes) -> Iterator[None]:
    """A record in a transaction that is open inside of the block and aborted behind it."""
    client = producer(cluster, transactional_id=f"tx-{topic}")
    client.init_transactions(ANSWER_S)
    client.begin_transaction()
    send(client, topic, [Message(key=key, value=value)])
    try:
        yield
    finally:
        client.abort_transaction(ANSWER_S)
