"""Groups of a filtered topic that keeps its partitions: they go on exactly, however much was left out around them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import pytest
from kafka import KafkaAdminClient

from ferry.dev import RunningCluster
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.groups.acts.translate import translate, translate_group
from ferry.features.groups.rules.offset_map import Before, Exact, InGap
from ferry.model import GroupOutcome, TopicPartition
from tests.harness import (
    Lab,
    Row,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    producer,
    read_topic,
    send,
    watermark,
)
from tests.kafka.mirror.mirror_oracle import ask_words, encoded
from tests.kafka.run.test_kept_slot import Kept, keeps
from tests.pure.run.unit_flows import SOURCES, messages

STARTS = 50
"""Where the last partition's copy begins; of the others at their beginning."""
LAST = SOURCES - 1
COUNT = 1_500


@dataclass
class Readers:
    """Groups of a kept topic, and where a plain model of both logs says that they go on."""

    kept: Kept
    mark: str

    def name(self, offset: int) -> str:
        return f"at-{offset}-{self.mark}"

    def run(self) -> GroupOutcome:
        plan = self.kept.run()
        with self.kept.lab.runs() as runs:
            done = checkpoint(runs, plan.run)
        assert done is not None
        return done

    def assert_exact(self, offsets: list[int]) -> None:
        """What a group gets on the target is each record that it has not read at the source, once."""
        lab = self.kept.lab
        source = read_topic(lab.source.bootstrap, self.kept.topic)
        target = read_topic(lab.target.bootstrap, self.kept.target)
        for offset in offsets:
            stands = committed_offsets(lab.target, self.name(offset), self.kept.target, SOURCES)
            assert stands.keys() == source.keys()
            for partition, at in stands.items():
                wanted = [row for row in source[partition] if row[0] >= max(offset, begin(partition)) and keeps(row[0])]
                assert contents(target[partition], at) == contents(wanted, 0), (offset, partition)
                if not wanted:
                    assert at == watermark(lab.target, self.kept.target, partition), "who has read all has no lag"


def begin(partition: int) -> int:
    return STARTS if partition == LAST else 0


def contents(rows: list[Row], start: int) -> list[tuple[object, ...]]:
    return [row[1:] for row in rows if row[0] >= start]


@pytest.fixture
def readers(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Readers:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(COUNT))
    mark = new_alias()
    settings = {
        "ferry.chunk.bytes": "30000",
        "ferry.start": f"{topic}:{LAST}:{STARTS}",
        "ferry.transforms": "some",
        "ferry.transform.some.topics": topic,
        "ferry.transform.some.where": "offset % 3 != 1 AND offset < 290",
        "groups": f".*{mark}",
        "sync.group.offsets.enabled": "true",
        "emit.checkpoints.interval.seconds": "1",
    }
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    return Readers(Kept(lab, topic), mark)


def test_groups_go_on_exactly_in_a_filtered_topic_and_mirror_makers_client_reads_where(readers: Readers) -> None:
    lab, topic = readers.kept.lab, readers.kept.topic
    ends = {number: rows[-1][0] + 1 for number, rows in read_topic(lab.source.bootstrap, topic).items()}
    # The first record, one left out and the one behind it, before the first copied of the last partition, in the
    # middle, at the last kept one, and where nothing more is kept.
    offsets = [0, 1, 2, STARTS - 1, 100, 101, 288, 289, 290]
    for offset in offsets:
        commit_offsets(
            lab.source, readers.name(offset), {(topic, number): min(offset, ends[number]) for number in ends}
        )
    end = max(ends.values())
    commit_offsets(lab.source, readers.name(end), {(topic, number): at for number, at in ends.items()})

    assert readers.run().failed == ()
    readers.assert_exact([*(one for one in offsets if one <= min(ends.values())), end])

    def led(offset: int, partition: int = 0) -> object:
        return translate(lab.flow, TopicPartition(topic, partition), offset).outcome

    assert isinstance(led(100), InGap)
    assert isinstance(led(101), Exact)
    assert isinstance(led(STARTS - 1, LAST), Before)
    back = translate_group(lab.flow, readers.name(100), backward=True)
    assert {one.source.partition: one.outcome.offset for _, one in back.found}[0] == 101, "what it reads next there"

    # What Kafka's own MirrorClient makes of the checkpoints is what was committed.
    question = ["client", lab.target.bootstrap, "DefaultReplicationPolicy", lab.alias, "remoteConsumerOffsets"]
    told = ask_words(" ".join([*question, lab.alias, encoded(readers.name(100))]))
    stands = committed_offsets(lab.target, readers.name(100), readers.kept.target, SOURCES)
    assert sorted(line.split()[:3] for line in told) == sorted(
        [readers.kept.target, str(number), str(at)] for number, at in stands.items()
    )

    # They follow what they read on, and what comes: the same groups, further on, in a later run.
    send(producer(lab.source), topic, messages(100, start=COUNT))
    moved = {(topic, number): 150 for number in ends}
    commit_offsets(lab.source, readers.name(100), moved)
    readers.run()
    with closing(KafkaAdminClient(bootstrap_servers=lab.target.bootstrap)) as admin:
        name = readers.name(100)
        assert admin.list_group_offsets({name: None})[name]
    source = read_topic(lab.source.bootstrap, topic)
    target = read_topic(lab.target.bootstrap, readers.kept.target)
    stands = committed_offsets(lab.target, readers.name(100), readers.kept.target, SOURCES)
    for partition, at in stands.items():
        assert contents(target[partition], at) == contents([r for r in source[partition] if keeps(r[0])], 150)
