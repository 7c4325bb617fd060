"""Programs that the documents have for readers, run against a real cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from confluent_kafka import Consumer, Message, TopicPartition

from ferry.dev import RunningCluster
from ferry.features.switch.acts.stranded import record_json, unopened_json
from ferry.kafka.fetch.committed import ReadRecord, UnopenedBatch
from ferry.model import TopicPartition as Place
from tests.harness import create_topic
from tests.tiers import ANSWER_S
from tests.world.documents.commands import ROOT, blocks

RECORDS = (
    ReadRecord(offset=7, timestamp_ms=1_769_839_200_000, key=None, value=b"0", headers=()),
    ReadRecord(offset=8, timestamp_ms=1_769_839_200_001, key="k\u00e9".encode(), value=None, headers=()),
    ReadRecord(
        offset=9,
        timestamp_ms=1_769_839_200_002,
        key=b"\xff\x00",
        value=b"\xfe",
        headers=((b"trace", b"1"), (b"trace", None), (b"bytes", b"\x80")),
    ),
)
UNOPENED = UnopenedBatch(offset=10, end=12, data=b"damaged", why="its checksum is wrong")


def program_of(document: str) -> str:
    """The one program of a document."""
    (text,) = [body for language, body in blocks((ROOT / document).read_text()) if language == "python"]
    return dedent(text)


def test_stranded_records_are_sent_again(source_cluster: RunningCluster, topic: str, tmp_path: Path) -> None:
    create_topic(source_cluster, topic, 3)
    place = Place(topic, 1)
    rows = [*(record_json(place, record) for record in RECORDS), unopened_json(place, UNOPENED)]
    (tmp_path / "again.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    text = program_of("docs/runbooks/failback.md").replace("primary-1:9092", source_cluster.bootstrap)
    done = subprocess.run([sys.executable, "-"], input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {topic, "1", "10"} <= set(done.stdout.split())
    sent = _read(source_cluster, TopicPartition(topic, 1, 0), len(RECORDS))
    assert [(one.key(), one.value(), one.timestamp()[1], one.headers() or []) for one in sent] == [
        (one.key, one.value, one.timestamp_ms, [(name.decode(), value) for name, value in one.headers])
        for one in RECORDS
    ]


def _read(cluster: RunningCluster, place: TopicPartition, count: int) -> list[Message]:
    """The first records of a partition; fails if there are more or fewer."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.partition.eof": True})
    try:
        assert consumer.get_watermark_offsets(place, timeout=ANSWER_S) == (0, count)
        consumer.assign([place])
        return list(consumer.consume(count, timeout=ANSWER_S))
    finally:
        consumer.close()
