"""Offsets without a record on a real broker: lost to the log cleaner, or to damage that no checksum covers."""

from __future__ import annotations

import re

from confluent_kafka.admin import ConfigResource

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from ferry.wire.batch import batches
from tests.harness import Lab, Message, create_topic, new_alias, numbered, producer, read_topic, send, wait_until
from tests.nasty import FOR_EVER, alter, busy_cleaner
from tests.said import codes, facts_in

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "retention.ms": "-1",
}
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

        wait_until(cleaned, "holes in the log")
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
    missing = by_topic[holes].missing
    assert missing == by_topic[holes].end - by_topic[holes].records >= 2
    assert (by_topic[whole].missing, report.missing, report.notes) == (0, missing, report.plan.notes)

    # What was compacted once has its holes for ever; that it was, nobody tells any more.
    alter(source_cluster, ConfigResource.Type.TOPIC, [holes], "cleanup.policy", "delete")
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(holes,))
    report = lab.micro_run()
    assert (report.state, report.missing, lab.assert_equal()) == (RunState.SUCCESS, missing, report.records)
    assert (codes(report.notes)[-1], facts_in(report.notes[-1])["missing"]) == ("copy.holes", missing)


def test_a_key_ends_with_the_same_value_when_the_cleaner_was_at_work_between_two_runs(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 1, {**COMPACTED, "min.compaction.lag.ms": FOR_EVER})
    client = producer(source_cluster, linger_ms=200)
    times = iter(range(SEGMENT_MS, 10_000 * SEGMENT_MS, SEGMENT_MS))

    def write_batch(**values: str | None) -> None:
        now = next(times)
        send(
            client,
            topic,
            [
                Message(key=key.encode(), value=None if value is None else value.encode(), timestamp=now)
                for key, value in values.items()
            ],
        )

    write_batch(a="1", b="1", c="1", d="1")
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().state is RunState.SUCCESS
    write_batch(a="2", b="2", c=None)
    write_batch(a="3", e="3")
    alter(source_cluster, ConfigResource.Type.TOPIC, [topic], "min.compaction.lag.ms", "0")
    with busy_cleaner(source_cluster):

        def cleaned() -> bool:
            write_batch(last="")  # rolls the segment before it, which the cleaner then may touch
            kept = [row[1] for row in read_topic(source_cluster.bootstrap, topic)[0]]
            return (kept.count(b"a"), kept.count(b"b")) == (1, 1)

        wait_until(cleaned, "holes in the log")
    report = lab.micro_run()
    assert (report.state, report.refusals) == (RunState.SUCCESS, ())
    assert report.missing, "the second run met holes"
    ends = latest(target_cluster, lab.target_topic(topic))
    assert {key: ends[key] for key in (b"a", b"b", b"c", b"d", b"e")} == {
        b"a": b"3",
        b"b": b"2",
        b"c": None,
        b"d": b"1",
        b"e": b"3",
    }
    assert ends == latest(source_cluster, topic)


def test_a_batch_whose_base_offset_leads_back_is_refused_and_not_passed_over(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    client = producer(source_cluster, linger_ms=200)
    for start in (0, 10, 20):
        send(client, topic, numbered(10, start=start))
    log = source_cluster.brokers[0].data / f"{topic}-0" / f"{0:020}.log"
    first, _, _ = batches(log.read_bytes())
    with log.open("r+b") as file:
        file.seek(len(first.data))
        file.write(bytes(8))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    report = lab.micro_run()
    assert (report.state, report.records, report.missing) == (RunState.PARTIAL, 10, 0)
    (refusal,) = report.refusals
    assert refusal.kind is RefusalKind.CORRUPT
    assert re.search(rf"{topic}-0 .* offset 10 .* offset 0\b", refusal.message)
    assert "ferry skip (--to 20" in refusal.message


def test_a_last_batch_whose_base_offset_leads_behind_the_logs_end_is_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    client = producer(source_cluster, linger_ms=200)
    for start in (0, 10):
        send(client, topic, numbered(10, start=start))
    log = source_cluster.brokers[0].data / f"{topic}-0" / f"{0:020}.log"
    first, _ = batches(log.read_bytes())
    with log.open("r+b") as file:
        file.seek(len(first.data))
        file.write((15).to_bytes(8, "big"))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 10)
    (refusal,) = report.refusals
    assert refusal.kind is RefusalKind.CORRUPT
    assert re.search(r" 15 to 24, .* 19 ", refusal.message)


def latest(cluster: RunningCluster, topic: str) -> dict[bytes | None, bytes | None]:
    """The value that each key ends with."""
    return {row[1]: row[2] for row in read_topic(cluster.bootstrap, topic)[0]}
