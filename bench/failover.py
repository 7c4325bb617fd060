"""Consumer groups that fail over: how many records they read again, after MirrorMaker 2 and after Ferry.

Both copy the same topic and write the offsets of the same groups to the target. A plain consumer reads there from the
written offset on. What it gets before the first record that its group had not read is counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from contenders import configuration, delete_topic, run_command
from data import Shape
from mirror_maker import mirror


class Titled(Protocol):
    """A scenario."""

    @property
    def title(self) -> str:
        """Return the title of its table."""


MM2, FERRY = "MirrorMaker 2", "Ferry"
LEFT_AT_END = 10
SETTLED_SECONDS = 20.0
"""Four of MirrorMaker 2's rounds of checkpoints: an offset that has not changed for this time does not change any
more."""
PATIENCE_S = 120.0

Offsets = dict[int, int]
"""By partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The position of a group at the source: a word for it, and its offset in each partition."""

    name: str
    offsets: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """Records that a group reads again on the target, and records that it misses, of all partitions together."""

    again: int
    missed: int


Outcome = dict[str, dict[str, Reread]]
"""By contender and by the position of the group."""


def fail_over(folder: Path, label: str, source: str, target: str, shape: Shape) -> Outcome:
    """Let MirrorMaker 2, then Ferry, copy a topic and its groups."""
    stands = _stands(source, shape)
    groups = {stand.name: f"failover-{label}-{number}" for number, stand in enumerate(stands)}
    for stand in stands:
        _commit(source, groups[stand.name], shape.topic, stand.offsets)
    found: Outcome = {}

    alias = f"mm-{label}"

    def settled() -> None:
        _wait_until_settled(target, list(groups.values()), f"{alias}.{shape.topic}", shape.partitions)

    mirror(
        folder / alias,
        alias,
        source,
        target,
        topic=shape.topic,
        partitions=shape.partitions,
        records=shape.records,
        tasks=min(4, shape.partitions),
        groups=f"failover-{label}-.*",
        before_end=settled,
    )
    found[MM2] = _judged(source, target, shape, f"{alias}.{shape.topic}", stands, groups)
    delete_topic(target, f"{alias}.{shape.topic}")

    alias = f"f-{label}"
    path = configuration(folder, alias, source, target, shape.topic, 1)
    path.write_text(f"{path.read_text()}groups = failover-{label}-.*\n")
    run_command(path, f"{alias}->target")
    found[FERRY] = _judged(source, target, shape, f"{alias}.{shape.topic}", stands, groups)
    delete_topic(target, f"{alias}.{shape.topic}")
    return found


def _stands(source: str, shape: Shape) -> list[Stand]:
    admin = AdminClient({"bootstrap.servers": source})
    asked = {TopicPartition(shape.topic, number): OffsetSpec.latest() for number in range(shape.partitions)}
    ends = {place.partition: answer.result().offset for place, answer in admin.list_offsets(asked).items()}
    return [
        Stand(name="at 50 %", offsets={number: end // 2 for number, end in ends.items()}),
        Stand(name="at 96 %", offsets={number: end * 96 // 100 for number, end in ends.items()}),
        Stand(name="ten from the end", offsets={number: end - LEFT_AT_END for number, end in ends.items()}),
        Stand(name="at the end", offsets=dict(ends)),
    ]


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )


def _commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    client = _consumer(bootstrap, group)
    client.commit(offsets=[TopicPartition(topic, *place) for place in offsets.items()], asynchronous=False)
    client.close()


def _written(admin: AdminClient, group: str, topic: str) -> Offsets:
    """Return the offsets of a group on the target."""
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    return {
        place.partition: place.offset for place in answer.topic_partitions if place.topic == topic and place.offset >= 0
    }


def _wait_until_settled(bootstrap: str, groups: Sequence[str], topic: str, partitions: int) -> None:
    """Wait until all groups have an offset in each partition, and none has changed for SETTLED_SECONDS."""
    until = time.monotonic() + PATIENCE_S
    admin = AdminClient({"bootstrap.servers": bootstrap})
    before: list[Offsets] = []
    since = time.monotonic()
    while len(before) < len(groups) or any(len(each) < partitions for each in before) or _age(since) < SETTLED_SECONDS:
        assert time.monotonic() < until, f"the groups on {topic} do not settle: {before}"
        now = [_written(admin, group, topic) for group in groups]
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(1.0)


def _age(since: float) -> float:
    return time.monotonic() - since


def _judged(
    source: str, target: str, shape: Shape, copy: str, stands: Sequence[Stand], groups: Mapping[str, str]
) -> dict[str, Reread]:
    admin = AdminClient({"bootstrap.servers": target})
    return {
        stand.name: _reread(source, target, shape, copy, stand, _written(admin, groups[stand.name], copy))
        for stand in stands
    }


def _reread(source: str, target: str, shape: Shape, copy: str, stand: Stand, written: Offsets) -> Reread:
    """Read from the group's offsets on the target, and compare with what it had not read yet."""
    again = missed = 0
    for partition, offset in stand.offsets.items():
        expected = next(_numbers(source, shape.topic, partition, offset), None)
        first: int | None = None
        for number in _numbers(target, copy, partition, written.get(partition, OFFSET_BEGINNING)):
            first = number if first is None else first
            if expected is not None and number >= expected:
                break
            again += 1
        if expected is not None and first != expected:
            missed += sum(1 for _ in _until(_numbers(source, shape.topic, partition, offset), first))
    return Reread(again=again, missed=missed)


def _until(numbers: Iterator[int], end: int | None) -> Iterator[int]:
    """Return the numbers before `end`; all when it is None."""
    return takewhile(lambda number: end is None or number < end, numbers)


def _numbers(bootstrap: str, topic: str, partition: int, offset: int) -> Iterator[int]:
    """Iterate over the numbers of a partition's records from an offset on; they are their keys, and ascend."""
    client = _consumer(bootstrap, "reader")
    try:
        client.assign([TopicPartition(topic, partition, offset)])
        while True:
            message = client.poll(10.0)
            assert message is not None, f"{topic}-{partition} is silent at offset {offset}"
            error = message.error()
            if error is None:
                yield int(message.key() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name for it
                return
            else:
                raise AssertionError(error)
    finally:
        client.close()


def table(scenario: Titled, pairs: Sequence[Outcome]) -> str:
    """Make a table of counts: they do not depend on the machine's load. MirrorMaker 2's differ from run to run."""
    lines = [
        f"### {scenario.title[0].upper()}{scenario.title[1:]}",
        "",
        f"| the group was | {MM2} reads again | and misses | {FERRY} reads again | and misses |",
        "|---|---|---|---|---|",
    ]
    for name in pairs[0][MM2]:
        cells = [
            ", ".join(f"{getattr(pair[contender][name], what):,}" for pair in pairs)
            for contender in (MM2, FERRY)
            for what in ("again", "missed")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
