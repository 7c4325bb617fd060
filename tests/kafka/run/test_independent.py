"""Two real clusters compared by librdkafka: planted differences, transactions, compaction, times, and much at once."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.errors import Unreachable
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.kafka.fetch.source import SourceReader
from ferry.kafka.librdkafka import first_record
from ferry.model import NotComparedKind, TopicPartition, Verified
from tests.clusters import repair
from tests.harness import (
    Lab,
    Message,
    committed_offsets,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topics,
    send,
)
from tests.kafka.run.test_verify import (
    ALL,
    AT,
    KEYS,
    LOST,
    PLANTED,
    RECORDS,
    Kind,
    copied,
    copied_keys,
    found_in,
    messages,
    rewrite,
    take_keys,
)
from tests.nasty import Writers, compact, create, delete_records, topics, write_old_formats
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S


def verified(lab: Lab, wanted: Wanted = ALL, *, patience_s: float = 20, memory: int | None = None) -> Verified:
    """Compare with librdkafka; Ferry's own fetch must not be used while records are compared."""
    flow = lab.flow if memory is None else replace(lab.flow, copy=replace(lab.flow.copy, task_memory_bytes=memory))
    with Verifier(flow, wanted, independent=True, patience_s=patience_s) as verifier:
        found = verifier.survey()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SourceReader, "start", _not_used)
            compared = verifier.compare(found)
        return verifier.sum_up(found, compared)


async def _not_used(_: SourceReader) -> None:
    raise AssertionError("Ferry's own fetch is used")


def test_planted_differences_are_found_where_they_are(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    topics = {name: f"{topic[-40:]}-{name}" for name in PLANTED}
    lab = copied(source_cluster, target_cluster, topics, codec="zstd")
    config = lab.write(tmp_path)
    answer = ferry("verify", "--independent", "--json", config=config)
    body = answer.json("verify")
    assert (answer.code, body["equal"], body["complete"], body["differences"]) == (0, True, True, [])
    assert body["records"] == RECORDS * (len(PLANTED) + 1)
    assert body["reader"].startswith("librdkafka 2.")
    assert ferry("verify", "--json", config=config).json("verify")["reader"] == "ferry"

    names = {name: lab.target_topic(one) for name, one in topics.items()}
    copies = read_topics(target_cluster.bootstrap, list(names.values()))
    rewrite(target_cluster, {names[name]: plant(copies[names[name]]) for name, (plant, _) in PLANTED.items()})
    result = verified(lab)
    assert {name: found_in(result, one) for name, one in topics.items()} == {
        name: expected for name, (_, expected) in PLANTED.items()
    }
    assert not result.is_equal
    assert result.records == RECORDS * (len(PLANTED) + 1)

    flow = ("verify", "--independent", "--topic", topics["flipped"])
    shown = ferry(*flow, "--show-values", config=config)
    assert (shown.code, f"value {AT}" in shown.out, "1 difference;" in shown.out) == (1, True, True)
    assert "by librdkafka 2." in shown.out
    sound = ferry(*flow, "--partition", "0", "--from", f"{AT + 1}", "--quiet", config=config)
    assert (sound.code, "equal; 1 partition" in sound.out) == (0, True)

    rewrite(target_cluster, {names["nothing"]: {0: []}, names["key"]: {0: copies[names["key"]][0][:AT]}})
    lost = verified(lab, Wanted(topics=[topics["nothing"], topics["key"]], sample=1))
    assert (found_in(lost, topics["nothing"]), found_in(lost, topics["key"])) == (
        [(Kind.MISSING, 0, (0, RECORDS), 0, (0, 0))],
        [(Kind.MISSING, 0, (AT, RECORDS), 0, (AT, AT))],
    )


def test_a_doubled_record_is_found(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, messages())
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == RECORDS
    name = lab.target_topic(topic)
    rows = read_topics(target_cluster.bootstrap, [name])[name]
    rewrite(target_cluster, {name: {0: [*rows[0][: AT + 1], rows[0][AT], *rows[0][AT + 1 :]]}})
    assert found_in(verified(lab), topic) == [
        (Kind.EXTRA, 0, (AT + 1, AT + 1), 0, (AT + 1, AT + 2)),
        (Kind.DISPLACED, 0, (AT + 1, RECORDS), 0, (AT + 2, RECORDS + 1)),
    ]


def test_fields_and_times_of_every_kind_are_equal(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    stamped = f"{topic}-stamped"
    create_topic(source_cluster, topic)
    create_topic(source_cluster, stamped, 1, {"message.timestamp.type": "LogAppendTime"})
    headers: tuple[tuple[str, bytes | None], ...] = (("a", None), ("a", b""), ("", b"x"), ("ü", b"\xff" * 200))
    odd = [
        Message(key=None, value=None),
        Message(key=b"", value=b""),
        Message(key=b"k", value=b"v", headers=headers),
        Message(key=b"k", value=b"v" * 70_000, timestamp=1),
    ]
    for one in (topic, stamped):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            send(producer(source_cluster, compression_type=codec), one, odd)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic, stamped))
    assert lab.micro_run().records == 40
    result = verified(lab)
    assert (result.is_equal, result.records, result.differences) == (True, 40, ())
    name = lab.target_topic(topic)
    rows = read_topics(target_cluster.bootstrap, [name])[name][0]
    first = rows[2]
    for changed in (
        (*first[:3], (("a", b""), *first[3][1:]), first[4]),
        (first[0], first[1], None, *first[3:]),
        (first[0], b"", *first[2:]),
    ):
        rewrite(target_cluster, {name: {0: [*rows[:2], changed, *rows[3:]]}})
        assert len(found_in(verified(lab), topic)) == 1


def test_aborted_transactions_are_left_out_where_the_flow_leaves_them_out(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    writer = producer(source_cluster, transactional_id=topic)
    writer.init_transactions(ANSWER_S)
    for number, commits in enumerate((False, True, False, True, False)):
        writer.begin_transaction()
        send(writer, topic, numbered(5, start=number * 5))
        (writer.commit_transaction if commits else writer.abort_transaction)(30)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 10
    result = verified(lab)
    assert (result.is_equal, result.records, result.differences) == (True, 10, ())
    every = replace(
        lab, alias=(alias := new_alias()), settings={f"{alias}.consumer.isolation.level": "read_uncommitted"}
    )
    assert every.micro_run().records == 25
    result = verified(every)
    assert (result.is_equal, result.records, result.differences) == (True, 25, ())


def test_what_compaction_took_on_one_side_is_no_difference_and_what_it_could_not_is(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = copied_keys(source_cluster, target_cluster, topic)
    assert verified(lab).is_equal
    take_keys(lab, topic)
    result = verified(lab)
    assert found_in(result, topic) == [(Kind.MISSING, 0, (6, 7), 0, (6, 6))]
    assert result.records == len(KEYS)
    (shown,) = result.differences[0].source_records
    assert (shown.offset, shown.key_size, shown.value_size) == (6, len(LOST), 1)


def test_many_partitions_are_compared_in_little_memory_and_what_was_deleted_is_said(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    partitions, each = 12, 60
    create_topic(source_cluster, topic, partitions)
    send(
        producer(source_cluster, compression_type="lz4"),
        topic,
        numbered(partitions * each, partitions=partitions, size=20_000),
    )
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == partitions * each
    result = verified(lab, memory=4 << 20)
    assert (result.is_equal, result.records) == (True, partitions * each)
    assert result.bytes > 2 * partitions * each * 20_000
    sample = verified(lab, Wanted(sample=2, seed=1), memory=4 << 20)
    assert (sample.is_equal, sample.records) == (True, partitions * each), "each partition has one segment"
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    admin.delete_records([Place(topic, 3, 40)])[Place(topic, 3, 40)].result(ANSWER_S)
    left = verified(lab)
    assert left.records == partitions * each - 40
    assert [(one.source, one.why, one.start, one.end) for one in left.not_compared] == [
        (TopicPartition(topic, 3), NotComparedKind.SOURCE_DELETED, 0, 40)
    ]


def test_a_mirror_without_a_ledger_is_compared_by_content(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic)
    create_topic(target_cluster, lab.target_topic(topic))
    send(producer(source_cluster), topic, messages())
    copied = messages()
    send(producer(target_cluster), lab.target_topic(topic), [*copied[:AT], *copied[AT - 5 :]])
    result = verified(lab, Wanted(without_ledger=True))
    assert [(one.kind, one.target_range) for one in result.differences] == [(Kind.DUPLICATE, (AT, AT + 5))]
    assert result.records == RECORDS


def test_a_cluster_that_goes_silent_is_named(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, messages())
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == RECORDS
    with Verifier(lab.flow, ALL, independent=True, patience_s=2) as verifier:
        found = verifier.survey()
        target_cluster.broker(1).pause()
        try:
            with pytest.raises(Unreachable, match="librdkafka"):
                verifier.compare(found)
        finally:
            repair(target_cluster)


def test_a_log_without_a_record_gives_no_first_record(target_cluster: RunningCluster, topic: str) -> None:
    create_topic(target_cluster, topic)
    options: dict[str, str | int] = {"bootstrap.servers": target_cluster.bootstrap}
    group, starts = f"measured-{topic}", {TopicPartition(topic, 0): 0}
    found = first_record("target", options, group, starts, seconds=4)
    assert (found.at_ms, group in found.why) == (None, True)
    send(producer(target_cluster), topic, numbered(3))
    assert first_record("target", options, group, starts, seconds=ANSWER_S).at_ms is not None
    there = {(record.key or b"", record.value or b"") for record in numbered(3)}
    whole = first_record("target", options, group, starts, seconds=ANSWER_S, wanted=there)
    assert (set(whole.records), whole.why) == (there, "")
    lacking = first_record("target", options, group, starts, seconds=4, wanted={*there, (b"never", b"sent")})
    assert (lacking.at_ms is not None, set(lacking.records), group in lacking.why) == (True, there, True)
    assert committed_offsets(target_cluster, group, topic, 1) == {}


def test_nasty_topics_are_equal(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random
) -> None:
    """Compacted logs, old formats, records without time, log append times, ten megabytes in a record, deleted heads."""
    prefix = topic[-20:]
    found = topics(rng, prefix, 40)
    create(source_cluster, {one.name: (one.partitions, one.configs) for one in found})
    alias = new_alias()
    own = {"config.properties.exclude": "message.timestamp.type, max.message.bytes"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(f"{prefix}.*",), settings=own)
    other = new_alias()
    every = replace(lab, alias=other, settings={**own, f"{other}.consumer.isolation.level": "read_uncommitted"})
    for one in (lab, every):
        given = [each for each in found if each.target_configs]
        create(target_cluster, {one.target_topic(each.name): (each.partitions, each.target_configs) for each in given})
    write_old_formats(source_cluster, rng, found)
    with closing(Writers(source_cluster, rng, found)) as writers:
        writers.write(3)
        compact(source_cluster, found)
        delete_records(source_cluster, rng, found)
    for one in (lab, every):
        records = one.micro_run().records
        with Verifier(one.flow, ALL) as verifier:
            survey = verifier.survey()
            mine = verifier.sum_up(survey, verifier.compare(survey))
        result = verified(one)
        assert (result.differences, result.not_compared) == (mine.differences, mine.not_compared) == ((), ())
        assert result.records == mine.records == records > 200
