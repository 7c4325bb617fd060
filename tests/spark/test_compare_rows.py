"""What a Spark task does with a range of a compacted topic that a transform made: on real brokers, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
from confluent_kafka import Producer

from ferry.dev import RunningCluster
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.spark.compare_rows import COMPARE_COLUMNS, NAMING, compare_tasks
from ferry.model import DifferenceKind, Segment, TopicPartition
from tests.harness import Lab, Message, create_topic, new_alias, producer, send, wait_until, watermark
from tests.pure.run.unit_flows import LATELY
from tests.tiers import ANSWER_S

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = (
    pa.int32(),
    pa.int32(),
    pa.int32(),
    pa.int32(),
    pa.int64(),
    pa.int64(),
    pa.binary(),
    pa.binary(),
    PAIRS,
    pa.string(),
)


def hole(cluster: RunningCluster, topic: str, key: bytes) -> None:
    """A record, and after it an offset without one: the marker of its transaction, which comes after the answer."""
    end = watermark(cluster, topic, 0) + 2
    client = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": new_alias()})
    client.init_transactions(ANSWER_S)
    client.begin_transaction()
    client.produce(topic, key=key, value=key, partition=0, timestamp=LATELY)
    client.commit_transaction(ANSWER_S)
    wait_until(lambda: watermark(cluster, topic, 0) == end, "the end of the log")


def plain(cluster: RunningCluster, topic: str, *pairs: tuple[bytes, bytes]) -> None:
    send(producer(cluster), topic, [Message(key=key, value=value, timestamp=LATELY) for key, value in pairs])


def rows(*found: tuple[int, bytes, bytes]) -> Iterator[pa.RecordBatch]:
    """What the transform makes of the source, behind the row that names the range."""
    every = [(NAMING, None, None), *found]
    columns = zip(*((0, 0, 0, 0, at, LATELY, key, value, [], None) for at, key, value in every), strict=True)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, KINDS, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names=list(COMPARE_COLUMNS))


def test_what_the_log_cleaner_took_of_a_transformed_copy_is_no_difference(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    copy = lab.target_topic(topic)
    for cluster, name in ((source_cluster, topic), (target_cluster, copy)):
        create_topic(cluster, name)
    plain(source_cluster, topic, (b"a", b"1"), (b"left out by now", b"1"), (b"b", b"1"))
    hole(source_cluster, topic, b"never kept")
    plain(source_cluster, topic, (b"c", b"1"), (b"c", b"2"))
    plain(target_cluster, copy, (b"a", b"1"))
    hole(target_cluster, copy, b"x")
    hole(target_cluster, copy, b"gone at the source")
    plain(target_cluster, copy, (b"c", b"2"))
    # Where there is a hole one side has lost its record since it was copied.
    places = {0: 0, 1: 1, 2: 2, 4: 3, 5: 4, 6: 5}
    span = CompareRange(
        source=TopicPartition(topic, 0),
        target=TopicPartition(copy, 0),
        source_range=(0, 7),
        target_range=(0, 6),
        segments=tuple(Segment(source_start=at, target_start=to, count=1) for at, to in places.items()),
        covered_until=6,
        compacted=True,
        transform="d",
    )
    with Verifier(lab.flow, Wanted()) as verifier:
        spec = verifier.spec([span])
    (answer,) = compare_tasks(spec, rows((0, b"a", b"1"), (2, b"b", b"1"), (5, b"c", b"1"), (6, b"c", b"2")))
    found: Compared = pickle.loads(answer.column("body")[0].as_py())
    assert found.not_compared == []
    assert [(one.kind, one.source_range, one.target_range) for one in found.differences] == [
        (DifferenceKind.MISSING, (2, 3), (2, 2)),  # nothing with its key follows on the target
        (DifferenceKind.EXTRA, (1, 1), (1, 2)),  # the source still has what it was made of
    ]
