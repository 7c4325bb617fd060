"""Compression on the way: kept as it is, or as the file asks; Kafka's own DumpLogSegments judges."""

from __future__ import annotations

import re

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.pure.wire.capture import dumped
from tests.pure.wire.captured import CODECS


def stored(cluster: RunningCluster, topic: str) -> list[tuple[str, int]]:
    """Codec and record count of each data batch of partition 0, as Kafka's tool prints them."""
    found = [dict(re.findall(r"(\w+): (\S+)", line)) for line in dumped(cluster, topic) if not line.startswith("|")]
    return [(line["compresscodec"], int(line["count"])) for line in found if line["isControl"] == "false"]


def test_batches_keep_their_compression_unless_the_file_asks_for_another(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    for codec in (*CODECS, "zstd"):
        send(producer(source_cluster, compression_type=codec, linger_ms=500), topic, numbered(20))
    before = stored(source_cluster, topic)
    assert before == [(codec, 20) for codec in (*CODECS, "zstd")]
    alias = new_alias()
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,))
    assert (lab.micro_run().state, lab.assert_equal()) == (RunState.SUCCESS, 120)
    assert stored(target_cluster, lab.target_topic(topic)) == before
    alias = new_alias()
    asked = {f"t{alias}.producer.compression.type": "zstd", f"t{alias}.producer.compression.zstd.level": "9"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=asked)
    report = lab.micro_run()
    assert (report.state, report.transcoded, report.batches, lab.assert_equal()) == (RunState.SUCCESS, 4, 6, 120)
    assert stored(target_cluster, lab.target_topic(topic)) == [("zstd", 20)] * 6
