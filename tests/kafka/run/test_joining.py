"""Partitions of several brokers join one transaction at the same time: two of these ask its coordinator at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec, RunningCluster, up
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send
from tests.kafka.run.deliverer import PARTITIONS, deliver, frame, spec_of

IMPATIENT = ClusterSpec(
    name="impatient", brokers=3, heap_mb=384, properties={"add.partitions.to.txn.retry.backoff.max.ms": "0"}
)
"""Its brokers hand CONCURRENT_TRANSACTIONS on at once; unless set they repeat for 100 ms, which load outlasts."""


@pytest.fixture(scope="module")
def impatient(cluster_home: Path) -> Iterator[RunningCluster]:
    cluster = up(IMPATIENT, home=cluster_home)
    yield cluster
    cluster.stop()


def test_partitions_that_join_at_the_same_time_are_no_failure(
    source_cluster: RunningCluster, impatient: RunningCluster
) -> None:
    topic = f"joining-{secrets.token_hex(4)}"
    create_topic(source_cluster, topic, 12)
    client = producer(source_cluster)
    for start in range(0, 2_400, 300):  # several batches for each partition
        send(client, topic, numbered(300, partitions=12, start=start, size=500))
    lab = Lab(
        source=source_cluster,
        target=impatient,
        alias=new_alias(),
        topics=(topic,),
        settings={"tasks.max": "1", "replication.factor": "3", "ferry.chunk.bytes": str(64 << 10)},
    )
    with lab.runs() as runs:
        result = lab.copy_slot(runs, runs.open_run("one", local_origin()), 0)
    assert sum(receipt.records for receipt in result.receipts) == 2_400
    assert len({receipt.at_ms for receipt in result.receipts}) > 5  # as many transactions
    assert result.retries == 0
    assert lab.assert_equal() == 2_400


def test_a_frame_for_partitions_of_several_brokers_is_no_failure(impatient: RunningCluster) -> None:
    topic = f"joining-{secrets.token_hex(4)}"
    create_topic(impatient, topic, PARTITIONS, {"retention.ms": "-1"}, replicas=3)
    application = new_alias()
    for batch in range(1, 11):
        told = deliver(spec_of(impatient.bootstrap, application, batch), topic, frame(3, f"v{batch}"), slots=1)
        assert [part.records for part in told.parts] == [3] * PARTITIONS
    found = read_topic(impatient.bootstrap, topic)
    for partition, rows in found.items():
        written = [row.value for batch in range(1, 11) for row in frame(3, f"v{batch}") if row.partition == partition]
        assert [row[2] for row in rows] == written
