"""Two real clusters compared: planted differences, and what cannot be compared."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.errors import BadInput, Unreachable
from ferry.features.verify.acts.verifier import NOTHING, Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.ledger.report import Report, RunState
from ferry.model import DifferenceKind, NotComparedKind, TopicPartition, Verified
from ferry.plan.options import RunOptions
from tests.harness import (
    Feeder,
    Lab,
    Message,
    Row,
    create_topic,
    create_topics,
    delete_topic,
    new_alias,
    numbered,
    producer,
    read_topics,
    send,
    wait_until,
)
from tests.program import warm_ferry as ferry
from tests.pure.run import unit_flows
from tests.pure.run.unit_flows import SOURCES, TARGETS, Units, lab_of
from tests.tiers import ANSWER_S

RECORDS = 120
RECENT_MS = wall_ms() - 3_600_000
"""Times that no broker's retention has passed."""
AT = 50
Rows = dict[int, list[Row]]
Kind = DifferenceKind
ALL = Wanted()
Found = tuple[DifferenceKind, int, tuple[int, int], int, tuple[int, int]]


def verified(lab: Lab, wanted: Wanted = ALL, *, values: bool = False, patience_s: float = 20) -> Verified:
    with Verifier(lab.flow, wanted, values=values, patience_s=patience_s) as verifier:
        found = verifier.survey()
        return verifier.sum_up(found, verifier.compare(found))


def found_in(result: Verified, topic: str) -> list[Found]:
    return [
        (one.kind, one.source.partition, one.source_range, one.target.partition, one.target_range)
        for one in result.differences
        if one.source.topic == topic
    ]


def messages(count: int = RECORDS) -> list[Message]:
    return [
        Message(
            key=b"k%d" % (number % 11),
            value=b"value %d" % number,
            headers=(("h", b"%d" % number),),
            timestamp=RECENT_MS + number,
        )
        for number in range(count)
    ]


def changed(row: Row, **fields: object) -> Row:
    names = ("offset", "key", "value", "headers", "timestamp")
    return cast("Row", tuple(fields.get(name, field) for name, field in zip(names, row, strict=True)))


def altered(**fields: object) -> Callable[[Rows], Rows]:
    return lambda rows: {0: [*rows[0][:AT], changed(rows[0][AT], **fields), *rows[0][AT + 1 :]]}


def flipped(rows: Rows) -> Rows:
    value = rows[0][AT][2] or b""
    return altered(value=value[:-1] + bytes([value[-1] ^ 1]))(rows)


def swapped(rows: Rows) -> Rows:
    row = rows[0]
    return {0: [*row[:AT], row[AT + 1], row[AT], *row[AT + 2 :]]}


def moved(rows: Rows) -> Rows:
    return {0: [*rows[0][:-1]], 1: [*rows[1][:AT], rows[0][-1], *rows[1][AT:]]}


TOMBSTONE, LOST = b"tombstone", b"lost"
LAST = RECORDS - 1
PLANTED: dict[str, tuple[Callable[[Rows], Rows], list[Found]]] = {
    "nothing": (lambda rows: rows, []),
    "flipped": (flipped, [(Kind.VALUE, 0, (AT, AT + 1), 0, (AT, AT + 1))]),
    "key": (altered(key=None), [(Kind.KEY, 0, (AT, AT + 1), 0, (AT, AT + 1))]),
    "header": (altered(headers=[("h", b"x")]), [(Kind.HEADERS, 0, (AT, AT + 1), 0, (AT, AT + 1))]),
    "time": (altered(timestamp=1_600_000_000_000), [(Kind.TIMESTAMP, 0, (AT, AT + 1), 0, (AT, AT + 1))]),
    "swapped": (swapped, [(Kind.ORDER, 0, (AT, AT + 2), 0, (AT, AT + 2))]),
    "missing": (
        lambda rows: {0: [*rows[0][:AT], *rows[0][AT + 1 :]]},
        [
            (Kind.MISSING, 0, (AT, AT + 1), 0, (AT, AT)),
            (Kind.DISPLACED, 0, (AT + 1, RECORDS), 0, (AT, LAST)),
        ],
    ),
    "extra": (
        lambda rows: {0: [*rows[0][:AT], changed(rows[0][0], value=b"extra"), *rows[0][AT:]]},
        [
            (Kind.EXTRA, 0, (AT, AT), 0, (AT, AT + 1)),
            (Kind.DISPLACED, 0, (AT, RECORDS), 0, (AT + 1, RECORDS + 1)),
        ],
    ),
    "moved": (
        moved,
        [
            (Kind.MOVED, 0, (LAST, RECORDS), 1, (AT, AT + 1)),
            (Kind.DISPLACED, 1, (AT, RECORDS), 1, (AT + 1, RECORDS + 1)),
        ],
    ),
}


def copied(source: RunningCluster, target: RunningCluster, topics: Mapping[str, str], *, codec: str) -> Lab:
    """A topic for each row of PLANTED, copied by one run."""
    client = producer(source, compression_type=codec)
    for name, one in topics.items():
        create_topic(source, one, 2 if name == "moved" else 1)
        send(client, one, messages())
        if name == "moved":
            send(
                client,
                one,
                [Message(value=b"other %d" % n, partition=1, timestamp=RECENT_MS + n) for n in range(RECORDS)],
            )
    lab = Lab(
        source=source,
        target=target,
        alias=new_alias(),
        topics=tuple(topics.values()),
        settings={"tasks.max": "1"},  # one transaction, so that the copies can be written again offset by offset
    )
    assert lab.micro_run().state is RunState.SUCCESS
    return lab


def test_planted_differences_are_found_where_they_are(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    topics = {name: f"{topic[-40:]}-{name}" for name in PLANTED}
    lab = copied(source_cluster, target_cluster, topics, codec="lz4")
    config = lab.write(tmp_path)
    answer = ferry("verify", "--json", config=config)
    body = answer.json("verify")
    assert (answer.code, body["equal"], body["complete"], body["differences"]) == (0, True, True, [])
    assert body["records"] == RECORDS * (len(PLANTED) + 1)

    names = {name: lab.target_topic(one) for name, one in topics.items()}
    copies = read_topics(target_cluster.bootstrap, list(names.values()))
    rewrite(target_cluster, {names[name]: plant(copies[names[name]]) for name, (plant, _) in PLANTED.items()})
    result = verified(lab)
    assert {name: found_in(result, one) for name, one in topics.items()} == {
        name: expected for name, (_, expected) in PLANTED.items()
    }
    assert not result.is_equal
    assert result.records == RECORDS * (len(PLANTED) + 1)
    assert len(result.notes) == len(names)
    for name in names.values():
        assert any(f"target topic {name} was created again" in note for note in result.notes)

    flow = ("verify", "--topic", topics["flipped"])
    answer = ferry(*flow, "--json", config=config)
    (difference,) = answer.json("verify")["differences"]
    assert answer.code == 1
    assert {key: difference[key] for key in ("topic", "partition", "source_range", "target_range", "kind")} == {
        "topic": topics["flipped"],
        "partition": 0,
        "source_range": [AT, AT + 1],
        "target_range": [AT, AT + 1],
        "kind": "value",
    }
    assert f"value {AT}" not in answer.out, "values are shown only when they are asked for"
    (here,), (there,) = difference["source_records"], difference["target_records"]
    assert here["key_digest"] == there["key_digest"]
    assert here["value_digest"] != there["value_digest"]
    shown = ferry(*flow, "--show-values", config=config)
    assert (shown.code, f"value {AT}" in shown.out, "1 difference;" in shown.out) == (1, True, True)
    sound = ferry(*flow, "--partition", "0", "--from", f"{AT + 1}", "--quiet", config=config)
    assert (sound.code, "equal; 1 partition" in sound.out) == (0, True)

    rewrite(target_cluster, {names["nothing"]: {0: []}, names["key"]: {0: copies[names["key"]][0][:AT]}})
    lost = verified(lab, Wanted(topics=[topics["nothing"], topics["key"]], sample=1))
    assert (found_in(lost, topics["nothing"]), found_in(lost, topics["key"])) == (
        [(Kind.MISSING, 0, (0, RECORDS), 0, (0, 0))],
        [(Kind.MISSING, 0, (AT, RECORDS), 0, (AT, AT))],
    ), "a sample leaves out nothing that the target has lost"


def test_what_cannot_be_compared_is_said_and_the_rest_is_compared(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    deleted, gone, tail, moving = (f"{topic[-40:]}-{name}" for name in ("deleted", "gone", "tail", "moving"))
    client = producer(source_cluster, linger_ms=200)
    for one in (deleted, gone, tail, moving):
        create_topic(source_cluster, one)
        for _ in range(2):  # two batches
            send(client, one, messages(40))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(f"{topic[-40:]}-.*",))
    run = lab.micro_run().plan.run
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    admin.delete_records([Place(deleted, 0, 40)])[Place(deleted, 0, 40)].result(ANSWER_S)
    delete_topic(target_cluster, lab.target_topic(gone))
    send(producer(target_cluster), lab.target_topic(tail), [Message(value=b"somebody else's")])
    send(client, moving, messages(40))

    result = verified(lab)
    assert not result.is_complete
    assert result.records == 40 + 80 + 80
    (extra,) = result.differences
    assert (extra.kind, extra.source, extra.source_range) == (Kind.EXTRA, TopicPartition(tail, 0), (80, 80))
    assert extra.target_range == (81, 82), "behind the commit marker"
    assert [(left.source.topic, left.why, left.start, left.end, left.asked) for left in result.not_compared] == [
        (deleted, NotComparedKind.SOURCE_DELETED, 0, 40, False),
        (gone, NotComparedKind.TARGET_GONE, 0, 80, True),
    ]

    whole = verified(lab, Wanted(topics=[moving]))
    assert (whole.is_equal, whole.records) == (True, 80), "what is not copied yet was not asked for"
    late = verified(lab, Wanted(topics=[moving], since_ms=RECENT_MS + 1_000_000))
    assert (late.is_equal, late.is_nothing, late.notes) == (True, True, (NOTHING,)), "no record is as late"
    ahead = verified(lab, Wanted(topics=[moving], partition=0, start=70, end=100))
    assert (ahead.is_equal, ahead.differences, ahead.records) == (False, (), 10)
    assert [(left.why, left.start, left.end) for left in ahead.not_compared] == [(NotComparedKind.NOT_COPIED, 80, 100)]
    later = lab.micro_run(RunOptions(only=frozenset([moving]))).plan.run
    assert verified(lab, Wanted(topics=[moving], run=run)).records == 80
    assert verified(lab, Wanted(topics=[moving], run=later)).records == 40
    sample = Wanted(topics=[moving], sample=2, seed=3)
    assert (verified(lab, sample).is_equal, verified(lab, sample).records) == (True, verified(lab, sample).records)
    assert 0 < verified(lab, sample).records < 120

    for wanted, name in (
        (Wanted(topics=["other"]), "other"),
        (Wanted(topics=[moving], partition=7), f"{moving}-7"),
        (Wanted(run="none"), "none"),
    ):
        with pytest.raises(BadInput, match=f" {name}: "):
            verified(lab, wanted)
    target_cluster.broker(1).pause()
    with pytest.raises(Unreachable):
        verified(lab, patience_s=1)


def test_what_was_copied_of_aborted_transactions_is_compared_also_when_the_flow_reads_committed_now(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    writer = producer(source_cluster, transactional_id=topic)
    writer.init_transactions(ANSWER_S)

    def write(start: int, *, commits: bool) -> None:
        writer.begin_transaction()
        send(writer, topic, numbered(5, start=start))
        (writer.commit_transaction if commits else writer.abort_transaction)(30)

    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    uncommitted = replace(lab, settings={f"{lab.alias}.consumer.isolation.level": "read_uncommitted"})
    write(0, commits=False)
    write(5, commits=True)
    assert uncommitted.micro_run().records == 10
    write(10, commits=False)
    write(15, commits=True)
    assert lab.micro_run().records == 5
    result = verified(lab)
    assert (result.is_equal, result.records, result.differences) == (True, 15, ())


def test_each_partition_says_where_its_lane_began_and_what_lies_before(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 2)
    sending = producer(source_cluster)
    send(sending, topic, [*numbered(5), Message(value=b"at rest", partition=1)])
    settings = {"ferry.start": "latest"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    assert lab.micro_run().state is RunState.SUCCESS
    send(sending, topic, numbered(10, start=5))
    assert lab.micro_run().records == 10
    result = verified(lab)
    assert (result.is_equal, result.records, result.is_whole) == (True, 10, False)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert {one.source: (one.offset, one.log_start, one.unaccounted) for one in result.begins} == {
        first: (5, 0, ((0, 5),)),
        second: (1, 0, ((0, 1),)),
    }
    told = ferry("verify", "--json", config=lab.write(tmp_path)).json("verify")
    assert (told["equal"], told["whole"]) == (True, False)
    whole = replace(lab, alias=new_alias(), settings={})
    assert whole.micro_run().records == 16
    result = verified(whole, Wanted(topics={topic}, partition=0))
    assert (result.is_whole, [one.source for one in result.begins]) == (True, [first])


def test_what_a_rule_before_has_dealt_is_not_called_unaccounted(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, unit_flows.messages(115))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    units = Units(lab_of(lab, topic), topic)
    units.run()
    other = units.with_rule(units.kept, TARGETS + 2)
    other.run()
    send(producer(source_cluster), topic, unit_flows.messages(115, start=115))
    (rule, *_) = other.run().eras
    assert all(begin > 0 for begin in rule.begins), "the second rule begins where the first had come to"
    with Verifier(other.lab.flow, ALL) as verifier:
        begun = verifier.survey().begins
    assert [(one.source.partition, one.offset, one.unaccounted) for one in begun] == [
        (number, 0, ()) for number in range(SOURCES)
    ]


def test_a_flow_may_be_at_work_meanwhile(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(200, partitions=2))
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.seconds": "1", "tasks.max": "1"},
    )
    lab.micro_run()
    stop = threading.Event()
    reports: list[Report] = []

    def at_work() -> None:
        while not stop.is_set():
            reports.append(lab.micro_run())

    thread = threading.Thread(target=at_work)
    with Feeder(source_cluster, topic, partitions=2, rate=5_000):
        thread.start()
        try:
            results: list[Verified] = []
            while len(results) < 5 or len(reports) < 3:
                results.append(verified(lab))
        finally:
            stop.set()
            thread.join(2 * ANSWER_S)
    assert [(one.differences, one.not_compared) for one in results if not one.is_equal] == []
    assert sorted(one.records for one in results) == [one.records for one in results]
    assert results[-1].records > 200
    assert verified(lab).records == 200 + sum(report.records for report in reports)


KEYS = [b"a", b"b", b"a", b"b", TOMBSTONE, b"c", LOST, b"d"]
KEPT = {"cleanup.policy": "compact", "min.compaction.lag.ms": "9223372036854775807"}


def copied_keys(source: RunningCluster, target: RunningCluster, topic: str) -> Lab:
    """A compacted topic with a record for each of KEYS, copied by one run."""
    create_topic(source, topic, 1, KEPT)
    send(
        producer(source),
        topic,
        [Message(key=key, value=b"%d" % at if key != TOMBSTONE else None) for at, key in enumerate(KEYS)],
    )
    lab = Lab(source=source, target=target, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == len(KEYS)
    return lab


def take_keys(lab: Lab, topic: str) -> None:
    """Write the copy of KEYS again, without what compaction may take and without LOST, at the same offsets."""
    name = lab.target_topic(topic)
    rows = read_topics(lab.target.bootstrap, [name])[name][0]
    delete_topic(lab.target, name)
    wait_until(
        lambda: name not in AdminClient({"bootstrap.servers": lab.target.bootstrap}).list_topics().topics,
        "the end of the deleted topic",
    )
    create_topic(lab.target, name, 1, KEPT)
    writer = producer(lab.target, transactional_id=name)
    writer.init_transactions(ANSWER_S)
    # An aborted record and its marker lie in the places of the first a and b, markers in those of the other two.
    for some, commits in ((rows[:1], False), (rows[2:4], True), (rows[5:6], True), (rows[7:], True)):
        writer.begin_transaction()
        send(writer, name, as_messages({0: some}))
        (writer.commit_transaction if commits else writer.abort_transaction)(30)


def test_what_compaction_took_on_one_side_is_no_difference_and_what_it_could_not_is(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = copied_keys(source_cluster, target_cluster, topic)
    assert verified(lab).is_equal
    take_keys(lab, topic)
    result = verified(lab)
    assert found_in(result, topic) == [(Kind.MISSING, 0, (6, 7), 0, (6, 6))]
    assert result.records == len(KEYS)
    (missing,) = result.differences
    (shown,) = missing.source_records
    assert (shown.offset, shown.key_size, shown.value_size, shown.key_text) == (6, len(LOST), 1, ""), "not its content"
    assert missing.target_records == ()


def rewrite(cluster: RunningCluster, topics: dict[str, Rows]) -> None:
    """Put other records in the place of topics, all in one transaction, as Ferry does."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for done in admin.delete_topics(list(topics)).values():
        done.result(ANSWER_S)
    wait_until(lambda: not set(topics) & set(admin.list_topics().topics), "the end of the deleted topics")
    create_topics(cluster, [NewTopic(name, len(rows), 1) for name, rows in topics.items()])
    writer = producer(cluster, transactional_id=f"rewrite-{secrets.token_hex(4)}")
    writer.init_transactions(ANSWER_S)
    writer.begin_transaction()
    for name, rows in topics.items():
        send(writer, name, as_messages(rows))
    writer.commit_transaction(ANSWER_S)


def as_messages(rows: Rows) -> Sequence[Message]:
    return [
        Message(key=row[1], value=row[2], headers=tuple(row[3]), timestamp=row[4], partition=partition)
        for partition, some in rows.items()
        for row in some
    ]
