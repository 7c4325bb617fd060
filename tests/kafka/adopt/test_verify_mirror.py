"""What a real MirrorMaker 2 has copied, compared without a ledger: as it is, and with planted differences."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ferry.dev import RunningCluster
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topics, send
from tests.kafka.adopt.mirror_maker import SETTINGS, MirrorMaker
from tests.kafka.adopt.test_takeover import Scene
from tests.kafka.run.test_verify import RECENT_MS, Rows, altered, rewrite
from tests.tiers import ANSWER_S

RECORDS = 1_500
AT = 50
BACK = range(400, 700)


def messages(partition: int) -> list[Message]:
    return [
        Message(
            key=b"k%d" % (number % 11),
            value=b"value %d of %d" % (number, partition),
            headers=(("h", b"%d" % number),),
            timestamp=RECENT_MS + number,
            partition=partition,
        )
        for number in range(RECORDS)
    ]


def planted(rows: Rows) -> Rows:
    """In partition 0 a flipped bit, in 1 a lost record and a restart, in 2 a record of partition 1, swapped records."""
    one, two = rows[1], rows[2]
    value = rows[0][AT][2] or b""
    return {
        **altered(value=value[:-1] + bytes([value[-1] ^ 1]))(rows),
        1: [*one[:AT], *one[AT + 1 : BACK.stop], *one[BACK.start :]],
        2: [*two[:AT], one[AT], *two[AT : BACK.start], two[BACK.start + 1], two[BACK.start], *two[BACK.start + 2 :]],
    }


def test_a_mirror_of_mirrormaker_2_is_compared_by_what_it_holds(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "tasks.max": "1"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(source_cluster, topic, 3)
    scene = Scene(lab=lab, topic=topic, config=lab.write(tmp_path))
    for partition in range(3):
        # Other batches and another codec than the mirror writes, and control records in between.
        writer = producer(
            source_cluster, compression_type="lz4", batch_num_messages=70, transactional_id=f"{topic}-{partition}"
        )
        writer.init_transactions(ANSWER_S)
        for start in range(0, RECORDS, 500):
            writer.begin_transaction()
            send(writer, topic, messages(partition)[start : start + 500])
            writer.commit_transaction(ANSWER_S)
    scene.made = 3 * RECORDS
    committed = f"{lab.alias}.consumer.isolation.level = read_committed"
    with MirrorMaker(tmp_path, scene.config, committed, f"t{lab.alias}.producer.compression.type = zstd") as mirror:
        mirror.until(scene.copied)  # it is killed then: a MirrorMaker that stops while it starts may hang

    def verified(*words: str, code: int = 0) -> Any:
        return scene.asked("verify", "verify", "--without-ledger", "--topic", topic, *words, code=code)

    sound = verified()
    assert (sound["equal"], sound["records"], sound["partitions"]) == (True, 3 * RECORDS, 3), sound
    send(producer(source_cluster), topic, messages(0)[:40])
    ahead = verified()
    assert (ahead["equal"], [left["kind"] for left in ahead["not_compared"]]) == (True, ["not-copied"])
    first, last = (datetime.fromtimestamp((RECENT_MS + at) / 1000, UTC).isoformat() for at in (100, 200))
    window = verified("--from", first, "--to", last)
    assert (window["equal"], window["records"]) == (True, 3 * 100)

    name = scene.copy
    rewrite(target_cluster, {name: planted(read_topics(target_cluster.bootstrap, [name])[name])})
    found = verified(code=1)["differences"]

    def offset(number: int) -> int:
        """Where a record lies at the source: behind each 500 of them is a marker."""
        return number + number // 500

    at, back = offset(AT), BACK.start
    assert [(one["partition"], one["kind"], one["source_range"], one["target_partition"]) for one in found] == [
        (0, "value", [at, at + 1], 0),
        (1, "moved", [at, at + 1], 2),
        (1, "duplicate", [offset(BACK.start), offset(BACK.stop - 1) + 1], 1),
        (2, "order", [back, back + 2], 2),
    ]
    assert [one["target_range"] for one in found] == [
        [AT, AT + 1],
        [AT, AT + 1],
        [BACK.stop - 1, BACK.stop - 1 + len(BACK)],
        [BACK.start + 1, BACK.start + 3],
    ]

    for words, sentence in ((("--run", "r"), "needs the ledger's offset map"), (("--one-in", "2"), "omit it")):
        refused = scene.ferry("verify", "--without-ledger", *words)
        assert (refused.code, sentence in refused.err) == (2, True)


def test_what_cannot_be_aligned_without_a_ledger_is_said(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    names = {kind: f"{topic[-60:]}-{kind}" for kind in ("counts", "gone", "stamped", "other")}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(f"{topic[-60:]}-.*",))
    stamped = {"message.timestamp.type": "LogAppendTime"}
    for kind, name in names.items():
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, [replace(one, partition=0) for one in messages(0)[:100]])
        if kind != "gone":
            config = stamped if kind == "stamped" else {}
            create_topic(target_cluster, lab.target_topic(name), 2 if kind == "counts" else 1, config)
            send(producer(target_cluster), lab.target_topic(name), [Message(value=b"%d" % at) for at in range(100)])
    scene = Scene(lab=lab, topic=topic, config=lab.write(tmp_path))
    body = scene.asked("verify", "verify", "--without-ledger", code=1)
    said = {left["topic"]: left["kind"] for left in body["not_compared"]}
    assert said == {
        names["counts"]: "partition-count",
        names["gone"]: "target-gone",
        names["stamped"]: "unreadable",
        names["other"]: "nothing-in-common",
    }
