"""A copy whose records are at other offsets than the source's is found, also by a reader with the offsets alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from tests.harness import (
    Lab,
    Message,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    wait_until,
    watermark,
)
from tests.kafka.run.test_verify import as_messages
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

RECORDS = 400
AT = 150
"""The offset from which records are shifted."""


class Copy:
    """A copy with identical offsets, in place of which a test puts another one."""

    def __init__(self, source: RunningCluster, target: RunningCluster, topic: str, folder: Path) -> None:
        settings = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}
        self.lab = Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=settings)
        self.name = self.lab.target_topic(topic)
        self.config = self.lab.write(folder)
        create_topic(source, topic)
        send(producer(source), topic, numbered(RECORDS))
        assert ferry("run", config=self.config).code == 0
        self.rows = read_topic(target.bootstrap, self.name)[0]

    def again(self, *, marker: bool = False, record: bool = False) -> None:
        """Create the topic again with the same records, after an aborted transaction or after a record at AT."""
        target = self.lab.target
        admin = AdminClient({"bootstrap.servers": target.bootstrap})
        admin.delete_topics([self.name])[self.name].result(ANSWER_S)
        wait_until(lambda: self.name not in admin.list_topics().topics, "the end of the deleted topic")
        create_topic(target, self.name)
        self._write(self.rows[:AT])
        if record:
            send(producer(target), self.name, [Message(value=b"foreign", partition=0)])
        if marker:
            writer = producer(target, **{"transactional.id": f"t-{self.lab.alias}"})
            writer.init_transactions(ANSWER_S)
            writer.begin_transaction()
            send(writer, self.name, [Message(value=b"aborted", partition=0)])
            writer.abort_transaction(ANSWER_S)
            wait_until(lambda: watermark(target, self.name, 0) == AT + 2, "the end of the log", ANSWER_S)
        self._write(self.rows[AT:])

    def _write(self, rows: Any) -> None:
        send(producer(self.lab.target), self.name, as_messages({0: rows}))

    def verified(self, *words: str) -> tuple[list[tuple[str, list[int], list[int]]], int | None]:
        """The differences by kind and offsets, and how many records were compared offset by offset."""
        answer = ferry("verify", "--json", *words, config=self.config)
        body = answer.json("verify")
        found = [(one["kind"], one["source_range"], one["target_range"]) for one in body["differences"]]
        assert answer.code == bool(found), answer.err
        return found, body["identical"]


@pytest.fixture
def copy(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path) -> Copy:
    return Copy(source_cluster, target_cluster, topic, tmp_path)


WAYS = [(), ("--independent",), ("--without-ledger",), ("--independent", "--without-ledger")]


def test_a_shifted_copy_is_found_by_its_offsets_alone(copy: Copy) -> None:
    for words in WAYS:
        assert copy.verified(*words) == ([], RECORDS), words
    copy.again()
    for words in WAYS:
        assert copy.verified(*words) == ([], RECORDS), words
    copy.again(marker=True)
    for words in WAYS:
        found, _ = copy.verified(*words)
        assert found, f"nothing but offsets differs ({words})"
        assert found[0][1][0] == AT, found
    copy.again(record=True)
    for words in WAYS:
        found, _ = copy.verified(*words)
        assert ("extra", [AT, AT], [AT, AT + 1]) in found, (words, found)
        assert len(found) > 1, "the foreign record alone is not all: those after it are shifted"
