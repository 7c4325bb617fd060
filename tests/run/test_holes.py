"""A compacted source topic on a real broker: batches that lost records to the log cleaner."""

from __future__ import annotations

from confluent_kafka.admin import ConfigResource

from ferry.decide.report import RunState
from ferry.dev import RunningCluster
from tests.harness import Lab, Message, create_topic, new_alias, numbered, producer, read_topic, send, wait_until
from tests.nasty import FOR_EVER, alter, busy_cleaner

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
SEGMENT_MS = 60_000
"""Between the times of batches: a segment rolls by the times of its records, not by the clock."""


def test_batches_with_holes_are_transcoded_and_each_key_ends_with_the_same_value(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    holes, whole = f"{topic}-holes", f"{topic}-whole"
    create_topic(source_cluster, holes, 1, COMPACTED)
    create_topic(source_cluster, whole)
    client = producer(source_cluster, linger_ms=200)
    times = iter(range(SEGMENT_MS, 10_000 * SEGMENT_MS, SEGMENT_MS))

    def write_batch(*keys: str) -> None:
        now = next(times)
        send(client, holes, [Message(key=key.encode(), value=f"{key}{now}".encode(), timestamp=now) for key in keys])

    write_batch("a", "b", "c")
    write_batch("d", "e", "d")  # its first record, at offset 3, goes
    write_batch("f", "b")  # and so does the one at offset 1
    send(client, whole, numbered(100))
    with busy_cleaner(source_cluster):

        def cleaned() -> bool:
            write_batch("last")  # rolls the segment before it, which the cleaner then may touch
            return [row[0] for row in read_topic(source_cluster.bootstrap, holes)[0]][:6] == [0, 2, 4, 5, 6, 7]

        wait_until(cleaned)
    # Neither side is compacted further while they are compared: the copy is created with the same settings.
    alter(source_cluster, ConfigResource.Type.TOPIC, [holes], "min.compaction.lag.ms", FOR_EVER)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(holes, whole),
        settings={"tasks.max": "1"},
    )
    report = lab.micro_run()
    assert (report.state, report.refusals) == (RunState.SUCCESS, ())
    by_topic = {receipt.source.topic: receipt for receipt in report.receipts}
    assert by_topic[whole].transcoded == 0
    assert 2 <= by_topic[holes].transcoded < by_topic[holes].batches
    assert [(part.source_start, part.count) for part in by_topic[holes].segments][:2] == [(0, 1), (2, 1)]
    assert lab.assert_equal() == report.records
    assert latest(source_cluster, holes) == latest(target_cluster, lab.target_topic(holes))


def latest(cluster: RunningCluster, topic: str) -> dict[bytes | None, bytes | None]:
    """The value that each key ends with."""
    return {row[1]: row[2] for row in read_topic(cluster.bootstrap, topic)[0]}
