"""Consumers that stop anywhere at the source, go on at the target, and come back: nothing twice, nothing missed."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka import Message as ConsumerMessage
from confluent_kafka.admin import ConfigResource

from ferry.dev import RunningCluster
from ferry.features.groups.acts.of_run import sync_groups
from ferry.features.groups.acts.table import find_groups
from ferry.features.groups.acts.translate import translate_group
from ferry.model import GroupOutcome
from ferry.run.micro_run import local_origin
from tests.harness import Lab, Message, create_topic, new_alias, numbered, producer, read_topics, send, wait_until
from tests.nasty import FOR_EVER, alter, busy_cleaner
from tests.tiers import ANSWER_S, IN_PART

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "retention.ms": "-1",
}
SEGMENT_MS = 60_000
"""Between the times of batches: a segment rolls by the times of its records, not by the clock."""
PATIENCE_S = 60.0
STOPPED_ANYWHERE = 1 if IN_PART else 4

Place = tuple[str, int]
"""Topic, by its name at the source, and partition."""
Values = dict[Place, list[bytes | None]]
"""What readers are given, in order."""


@contextmanager
def consumer(cluster: RunningCluster, group: str) -> Iterator[Consumer]:
    """A plain consumer that commits for itself; without a committed offset it fails."""
    client = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        yield client
    finally:
        client.close()


@dataclass(frozen=True, kw_only=True)
class Side:
    """One cluster with the topics of a flow, by the names that they have there."""

    cluster: RunningCluster
    sources: Mapping[str, str]
    """The name at the source of each topic."""

    def stand(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Put a group without members at these offsets."""
        names = {source: name for name, source in self.sources.items()}
        places = [TopicPartition(names[topic], number, offset) for (topic, number), offset in offsets.items()]
        with consumer(self.cluster, group) as client:
            client.commit(offsets=places, asynchronous=False)

    def read(self, group: str, counts: Mapping[Place, int | None]) -> Values:
        """Let the group read so many records of each partition (None: all), commit, and leave."""
        found: Values = {place: [] for place in counts}
        ended: set[Place] = set()
        with consumer(self.cluster, group) as client:
            client.subscribe(list(self.sources))

            def take(message: ConsumerMessage) -> None:
                topic, number, error = message.topic(), message.partition(), message.error()
                assert topic is not None, error
                assert number is not None, error
                place = self.sources[topic], number
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(place)
                elif place not in ended:
                    found[place].append(message.value())
                    if len(found[place]) == counts[place]:
                        client.commit(message=message, asynchronous=False)
                        ended.add(place)

            def done() -> bool:
                for message in client.consume(1_000, timeout=0.2):
                    take(message)
                return found.keys() <= ended

            wait_until(done, "the records that the group is to read", PATIENCE_S)
        return found

    def records(self) -> Values:
        """All that a read_committed reader is given from the beginning."""
        return {
            (self.sources[name], number): [row[2] for row in rows]
            for name, parts in read_topics(self.cluster.bootstrap, list(self.sources)).items()
            for number, rows in parts.items()
        }

    def ends(self, places: Mapping[Place, object]) -> dict[Place, int]:
        """High watermarks."""
        names = {source: name for name, source in self.sources.items()}
        with consumer(self.cluster, "nobody") as client:
            return {
                (topic, number): client.get_watermark_offsets(TopicPartition(names[topic], number), PATIENCE_S)[1]
                for topic, number in places
            }


class Sources:
    """A plain topic, one of transactions, every third of them aborted, and a compacted one."""

    def __init__(self, cluster: RunningCluster, prefix: str, rng: random.Random) -> None:
        self.plain, self.transactions, self.compacted = (f"{prefix}-{kind}" for kind in ("plain", "txn", "compacted"))
        self._cluster, self._rng = cluster, rng
        create_topic(cluster, self.plain, 2)
        create_topic(cluster, self.transactions)
        create_topic(cluster, self.compacted, 1, COMPACTED)
        self._client = producer(cluster, linger_ms=20)
        self._writer: Producer = producer(cluster, transactional_id=prefix)
        self._writer.init_transactions(ANSWER_S)
        self._numbers = iter(range(10**9))
        self._times = iter(range(SEGMENT_MS, 10**12, SEGMENT_MS))

    @property
    def names(self) -> tuple[str, ...]:
        return self.plain, self.transactions, self.compacted

    def write(self) -> None:
        """Some more of each."""
        for _ in range(4):
            start = next(self._numbers) * 1_000
            send(self._client, self.plain, numbered(self._rng.randint(1, 60), partitions=2, start=start))
            self._writer.begin_transaction()
            send(self._writer, self.transactions, numbered(self._rng.randint(1, 20), start=start))
            (self._writer.abort_transaction if self._rng.random() < 1 / 3 else self._writer.commit_transaction)(30)
            send(self._client, self.transactions, numbered(self._rng.randint(0, 3), start=start + 500))
            self._write_compacted(self._rng.randint(1, 20))

    def _write_compacted(self, count: int) -> None:
        now = next(self._times)
        keys = [f"{self._rng.randrange(30)}".encode() for _ in range(count)]
        values = [Message(key=key, value=f"{key!r}{now}{at}".encode(), timestamp=now) for at, key in enumerate(keys)]
        send(self._client, self.compacted, values)

    def compact(self) -> None:
        """Let the cleaner make holes, and stop it for good: what a reader was given must not change any more."""
        topic = self.compacted

        def offsets() -> list[int]:
            return [row[0] for row in read_topics(self._cluster.bootstrap, [topic])[topic][0]]

        def has_holes() -> bool:
            self._write_compacted(1)  # rolls the segment before it, which the cleaner then may touch
            found = offsets()
            return len(found) < found[-1] - 5

        with busy_cleaner(self._cluster):
            wait_until(has_holes, "holes in the log", PATIENCE_S)
            alter(self._cluster, ConfigResource.Type.TOPIC, [topic], "min.compaction.lag.ms", FOR_EVER)
            seen: list[list[int]] = [[]]

            def is_still() -> bool:
                seen.append(offsets())
                return seen[-1] == seen[-2]

            wait_until(is_still, "a log that the cleaner leaves alone", PATIENCE_S)


def test_consumers_go_on_at_the_target_and_come_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random
) -> None:
    sources = Sources(source_cluster, topic, rng)
    mark = secrets.token_hex(4)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=sources.names,
        settings={"groups": f"{mark}-.*"},
    )
    here = Side(cluster=source_cluster, sources={name: name for name in sources.names})
    there = Side(cluster=target_cluster, sources={lab.target_topic(name): name for name in sources.names})
    sources.write()
    sources.compact()
    lab.micro_run()
    first_run = here.ends(here.records())
    for _ in range(2):
        sources.write()
        with lab.runs() as runs:
            runs.open_run(f"killed-{secrets.token_hex(4)}", local_origin())  # a run that never copies
        lab.micro_run()
    assert lab.assert_equal() > 0

    every, ends = here.records(), here.ends(here.records())
    history, read_all, at_end = f"{mark}-history", f"{mark}-read-all", f"{mark}-at-end"
    begin = dict.fromkeys(every, 0)
    stops = {
        history: {
            place: rng.randint(1, max(1, min(first_run[place], len(rows)) // 2)) for place, rows in every.items()
        },
        read_all: {place: len(rows) for place, rows in every.items()},
        **{
            f"{mark}-anywhere-{number}": {place: rng.randint(1, len(rows)) for place, rows in every.items()}
            for number in range(STOPPED_ANYWHERE)
        },
    }
    before: dict[str, Values] = {}
    for group, counts in stops.items():
        here.stand(group, begin)
        before[group] = here.read(group, counts)
    here.stand(at_end, ends)  # as Java's consumer commits, behind the last marker

    with lab.runs() as runs:
        looked, done = sync_groups(runs, f"groups-{mark}")
    assert isinstance(done, GroupOutcome)
    assert done.left == (), looked
    for group in (read_all, at_end):
        (table,) = find_groups(lab.flow, groups=[group]).tables
        lags = [row.at_target.lag for row in table.rows if row.at_target is not None]
        assert lags == [0] * len(every), f"{group} is caught up"

    wish: dict[Place, int | None] = dict.fromkeys(every)
    for group in stops:
        after = there.read(group, wish)
        assert {place: before[group][place] + after[place] for place in every} == every, group

    # And back: they stop at the target, and the source's groups are put where that is.
    for group in [name for name in stops if name != read_all]:
        counts = {place: rng.randint(1, len(rows)) for place, rows in every.items()}
        there.stand(group, begin)
        over_there = there.read(group, counts)
        back = translate_group(lab.flow, group, backward=True)
        assert (back.uncopied, back.foreign) == ((), ())
        here.stand(group, {(one.source.topic, one.source.partition): one.outcome.offset for _, one in back.found})
        after = here.read(group, wish)
        assert {place: over_there[place] + after[place] for place in every} == every, group
