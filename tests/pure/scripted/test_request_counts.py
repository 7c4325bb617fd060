"""What a chunk costs: how many requests of each kind it adds to those of its slot. A run without records, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from ferry.protocol.names import ledger_topic
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world_after
from tests.pure.identical.test_slot import Identical
from tests.pure.protocol.world import FLOW, TOPIC
from tests.pure.scripted.delivery import DELIVERY_LEDGER, Frame
from tests.pure.scripted.delivery import TOPIC as FRAMES
from tests.pure.scripted.faults import Asked
from tests.pure.scripted.lane import Lane, at_work
from tests.pure.scripted.row_lane import LETTERS, Dealt, rows_port
from tests.pure.scripted.wire import scripted

NAMES = {
    TOPIC: "records",
    f"a.{TOPIC}": "records",
    FRAMES: "records",
    LETTERS: "letters",
    ledger_topic(FLOW.source): "ledger",
    ledger_topic("a"): "ledger",
    DELIVERY_LEDGER: "ledger",
}
BY_TOPIC = {"Produce", "Fetch"}
both_versions = pytest.mark.parametrize("version", [1, 2])


def counted(asked: Iterable[Asked]) -> Counter[str]:
    """Requests by kind, and Produce and Fetch by topic."""
    return Counter(
        " ".join([one.api, *sorted({NAMES.get(name, "mirror") for name in one.topics if one.api in BY_TOPIC})])
        for one in asked
    )


def of_both(lane: Lane) -> Counter[str]:
    """The requests to the target; those to the source are named so."""
    source = {f"source's {name}": count for name, count in counted(lane.source.asked).items()}
    return counted(lane.target.asked) + Counter(source)


def of_copy(version: int, chunks: int) -> Counter[str]:
    """The requests of a slot that copies so many chunks."""
    return of_lane(Lane([[1] * chunks], version=version), chunks)


def of_rows(version: int, chunks: int) -> Counter[str]:
    """The requests of a slot of transformed rows."""
    lane = Lane([[1] * chunks], version=version)
    lane.port = rows_port(lane)
    return of_lane(lane, chunks)


def of_identical(version: int, chunks: int) -> Counter[str]:
    """The requests of a slot whose records keep their offsets."""
    return of_lane(Identical([[1] * chunks], version=version), chunks)


def of_lane(lane: Lane, chunks: int) -> Counter[str]:
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.source.asked.clear()
        lane.target.asked.clear()
        result = lane.copy(attempt, chunk_bytes=1)
        assert (result.retries, lane.is_whole(), len(result.receipts)) == (0, True, chunks)
        return of_both(lane)


def of_dealt(version: int, chunks: int) -> Counter[str]:
    """The requests of a slot of repartitioned records, with one dead letter."""
    lane = Lane([[1] * chunks], version=version)
    dealt = Dealt(lane, 1)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.source.asked.clear()
        lane.target.asked.clear()
        result = lane.copy(attempt, chunk_bytes=1)
        assert (result.retries, dealt.is_whole()) == (0, True)
        return of_both(lane)


def of_sink(version: int, chunks: int) -> Counter[str]:
    """The requests of a slot of the sink."""
    frame = Frame((chunks,), version=version)
    with scripted(frame.brokers) as (_, (cluster,)):
        delivering = frame.open(cluster)
        delivering.settle(frame.due)
        spec = delivering.slot_specs()[0]
        frame.brokers.asked.clear()
        frame.write(cluster, spec, length=1)
        assert frame.is_whole()
        return counted(frame.brokers.asked)


ADDED = {"AddPartitionsToTxn": 2}
"""What a chunk adds in version 1 of transactions: its records' partition, and the ledger."""
OF_CHUNK = {"Produce records": 1, "Produce ledger": 1, "Fetch ledger": 1, "EndTxn": 1}
"""The last look at the ledger is one Fetch."""
COPIED = {**OF_CHUNK, "TxnOffsetCommit": 1, "OffsetForLeaderEpoch": 1}
BEGIN = {"InitProducerId": 1, "Fetch ledger": 2}
"""A slot reads the ledger before and after it fences older writers."""
OF_LANE = {**BEGIN, "Metadata": 5, "ListOffsets": 4, "DescribeConfigs": 1, "FindCoordinator": 1}
OF_BYTES = {"source's Metadata": 1, "source's Fetch records": 1}
OF_ROWS = {"source's Metadata": 1, "source's OffsetForLeaderEpoch": 1}
"""Spark has read the records; the slot asks where their leader epochs end."""
SENDING = {"InitProducerId": 1, "Produce ledger": 1, "Fetch ledger": 2, "Metadata": 1, "ListOffsets": 3}
"""A slot that keeps offsets notes in the ledger that it will send, and reads the ledger and the target's ends again."""
LETTER = {"Produce letters": 1, "Produce records": -1, "OffsetForLeaderEpoch": -1}
"""A chunk of the test has a dead letter and no record."""
COSTS = {
    "copy": (of_copy, COPIED, {**ADDED, "AddOffsetsToTxn": 1}, [OF_LANE, OF_BYTES]),
    "rows": (of_rows, COPIED, {**ADDED, "AddOffsetsToTxn": 1}, [OF_LANE, OF_ROWS]),
    "identical": (
        of_identical,
        COPIED,
        {"AddPartitionsToTxn": 1, "AddOffsetsToTxn": 1},  # the records are in no transaction
        [OF_LANE, OF_BYTES, SENDING],
    ),
    "dealt": (
        of_dealt,
        {**OF_CHUNK, "OffsetForLeaderEpoch": 1},
        ADDED,
        [{**BEGIN, **LETTER, "Metadata": 6, "ListOffsets": 4, "DescribeConfigs": 2}, OF_ROWS],
    ),
    "sink": (of_sink, OF_CHUNK, ADDED, [{**BEGIN, "Metadata": 3, "ListOffsets": 2, "DescribeConfigs": 1}]),
}


@both_versions
@pytest.mark.parametrize("path", COSTS)
def test_a_chunk_makes_these_requests_and_no_others(path: str, version: int) -> None:
    count, of_chunk, in_version_1, of_slot = COSTS[path]
    for chunks in (2, 5):
        wanted: Counter[str] = Counter()
        for one in of_slot:
            wanted.update(one)
        for one in (of_chunk, in_version_1 if version == 1 else {}):
            wanted.update({name: number * chunks for name, number in one.items()})
        assert count(version, chunks) == wanted, chunks


def copied_all(made: World) -> None:
    """A flow that has copied all that there is."""
    begun(made, topics={TOPIC: 2})
    assert made.ask("run", "a->b", "--id", "r1").code == 0


def test_a_run_without_records_makes_these_requests_and_no_others() -> None:
    with world_after(copied_all) as made:
        assert made.ask("run", "a->b", "--id", "r2").code == 0
        assert counted(made.a.asked) == {
            "ApiVersions": 3,
            "Metadata": 8,
            "ListOffsets": 3,
            "DescribeConfigs": 1,
            "DescribeLogDirs": 1,
            "ListGroups": 1,
        }
        assert counted(made.b.asked) == {
            "ApiVersions": 3,
            "Metadata": 20,
            "ListOffsets": 15,
            "DescribeConfigs": 3,
            "FindCoordinator": 3,
            "InitProducerId": 5,
            "Produce ledger": 5,
            "Fetch ledger": 8,
            "EndTxn": 2,
            "DescribeLogDirs": 1,
            "ListGroups": 1,
            "OffsetFetch": 1,
        }
