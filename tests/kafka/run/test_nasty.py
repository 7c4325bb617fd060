"""Random nasty topics of a real broker: whatever is in them is copied, and an independent reader finds each record."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from ferry.dev import RunningCluster
from ferry.ledger.report import Report, RunState, missing_notes
from ferry.model import Codec
from ferry.plan.options import RunOptions
from ferry.wire.batch import obstacle
from tests.harness import Lab, new_alias
from tests.nasty import (
    HORIZON,
    HUGE_VALUE,
    KINDS,
    Topic,
    Writers,
    compact,
    create,
    delete_records,
    stored,
    topics,
    write_old_formats,
)


def copy_nasty_topics(
    source: RunningCluster, target: RunningCluster, prefix: str, rng: random.Random, count: int
) -> None:
    """Write, compact and delete; copy in micro-runs while more comes; after each compare all, record by record."""
    found = topics(rng, prefix, count)
    create(source, {topic.name: (topic.partitions, topic.configs) for topic in found})
    own = {"config.properties.exclude": "message.timestamp.type, max.message.bytes"}  # of the target
    lab = Lab(source=source, target=target, alias=new_alias(), topics=(f"{prefix}.*",), settings=own)
    given = [topic for topic in found if topic.target_configs]
    create(target, {lab.target_topic(topic.name): (topic.partitions, topic.target_configs) for topic in given})
    write_old_formats(source, rng, found)
    with closing(Writers(source, rng, found)) as writers:
        writers.write(3)
        compact(source, found)
        delete_records(source, rng, found)
        assert_all_kinds(source, found)
        assert_transcoded_where_it_must_be(compared(lab), found)
        writers.write(2)
        compared(lab, RunOptions(max_records=rng.randint(count, 50 * count)))  # ends inside batches
        with writers.open_transaction():
            compared(lab)
    compared(lab)
    assert lab.assert_equal() > 20 * count
    some = tuple(topic.name for topic in found[: len(KINDS)])
    committed = sum(receipt.records for receipt in lab.receipts() if receipt.source.topic in some)
    alias = new_alias()
    own = {**own, f"{alias}.consumer.isolation.level": "read_uncommitted"}
    lab = Lab(source=source, target=target, alias=alias, topics=some, settings=own)
    given = [topic for topic in found if topic.huge]
    create(target, {lab.target_topic(topic.name): (topic.partitions, topic.target_configs) for topic in given})
    success(lab, RunOptions(max_records=rng.randint(len(some), 300)))
    assert lab.assert_equal(isolation="read_uncommitted") > 0
    success(lab)
    assert lab.assert_equal(isolation="read_uncommitted") > committed


def assert_all_kinds(source: RunningCluster, found: Sequence[Topic]) -> None:
    """What the brokers' files hold is as nasty as it is meant to be."""
    codecs, formats, obstacles, sizes = set(), set(), set(), [0]
    for batch in stored(source, (topic.name for topic in found)):
        codecs.add(batch.codec)
        formats.add(batch.magic)
        obstacles.add((obstacle(batch) or "").translate(str.maketrans("", "", "0123456789")))
        sizes.append(len(batch.data))
    assert codecs == set(Codec)
    assert formats == {0, 1, 2}
    assert HORIZON in obstacles
    for word in ("log append times", "compaction"):
        assert any(word in one for one in obstacles), word
    assert max(sizes) > HUGE_VALUE // 2


def compared(lab: Lab, options: RunOptions | None = None) -> Report:
    """A micro-run, after which an independent reader finds each record where the segments say."""
    report = success(lab, options)
    lab.assert_equal()
    return report


def success(lab: Lab, options: RunOptions | None = None) -> Report:
    """A micro-run that copies all there is, or all that its budget allows."""
    report = lab.micro_run(options)
    assert (report.state, report.refusals) == (RunState.SUCCESS, ())
    assert not missing_notes(report.plan, report.receipts), "only compaction leaves offsets without a record"
    return report


def assert_transcoded_where_it_must_be(report: Report, found: Sequence[Topic]) -> None:
    """By the topics' kinds; a receipt counts batches."""
    written: Counter[str] = Counter()
    anew: Counter[str] = Counter()
    for receipt in report.receipts:
        written[receipt.source.topic] += receipt.batches
        anew[receipt.source.topic] += receipt.transcoded
    assert all(anew[topic.name] == written[topic.name] for topic in found if topic.append_time)
    assert any(anew[topic.name] for topic in found if topic.compacted)
    assert any(anew[topic.name] for topic in found if topic.small_target)
    assert any(anew[topic.name] for topic in found if topic.deletes_records)
    assert all(anew[topic.name] for topic in found if topic.old_formats)
    assert not any(anew[topic.name] for topic in found if topic.is_plain)
    assert report.missing
    assert report.transcoded == sum(anew.values()) < sum(written.values())


def test_forty_nasty_topics(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random
) -> None:
    copy_nasty_topics(source_cluster, target_cluster, topic[-20:], rng, 40)
