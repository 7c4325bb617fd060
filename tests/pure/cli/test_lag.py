"""How far behind: the decision alone, over facts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ferry.cli.output import print_table
from ferry.model import Flow, Receipt, TopicPartition
from ferry.model.topic_settings import TopicSettings
from ferry.plan.rules.facts import Facts, LaneFacts, SourceFacts, SourcePartition, SourceTopic, TargetFacts
from ferry.plan.rules.lag import PartitionLag, TotalLag, is_behind, lag_of, total_of, with_ages
from ferry.plan.rules.progress import BytesFrom
from ferry.policy import DefaultReplicationPolicy
from ferry.wire.age import first_timestamp
from ferry.wire.batch import HEADER
from tests.pure.decide.values import facts_with

PLACE = TopicPartition(topic="a.orders", partition=0)
SOURCE = TopicPartition(topic="orders", partition=0)


def facts(
    part: SourcePartition | None, *, last_end: int | None = None, first_run: bool = False, start: int | None = None
) -> Facts:
    """One topic with one partition; without leader when `part` is None."""
    topic = SourceTopic(
        name="orders",
        topic_id="",
        partitions={} if part is None else {0: part},
        leaderless=(0,) if part is None else (),
        replication_factor=1,
        settings=TopicSettings(),
    )
    return Facts(
        now_ms=10_000,
        source=SourceFacts(cluster_id="s", topics={"orders": topic}),
        target=TargetFacts(cluster_id="t", brokers=1, topics={}),
        lane=LaneFacts(
            receipts={} if last_end is None else {PLACE: receipt(last_end)},
            positions={},
            starts={} if start is None else {SOURCE: start},
            first_run=first_run,
            claims={},
            pauses={},
        ),
    )


def receipt(end: int) -> Receipt:
    """A receipt up to `end`."""
    return Receipt(
        flow=Flow(source="a", target="b"),
        lane="live",
        run="r",
        generation=0,
        slot=0,
        source=SOURCE,
        target=PLACE,
        start=0,
        end=end,
        target_next=end,
        segments=(),
        records=end,
        bytes=7 * end,
        batches=1,
        digest="0",
        at_ms=0,
    )


def log(*, start: int = 0, end: int = 100, size: int | None = 1_000, wish: int = 0) -> SourcePartition:
    """A source partition; `wish` is where a first run would begin."""
    return SourcePartition(log_start=start, end=end, size_bytes=size, start=wish)


def held(part: SourcePartition) -> SourcePartition:
    """The same, with 50 offsets behind its last stable offset."""
    return replace(part, high_watermark=part.end + 50)


@pytest.mark.parametrize(
    ("given", "position", "records", "size"),
    [
        pytest.param(facts(log(), last_end=60), 60, 40, 400, id="behind the last receipt"),
        pytest.param(facts(log(), last_end=100), 100, 0, 0, id="caught up"),
        pytest.param(facts(log(wish=70), first_run=True), 70, 30, 300, id="never ran: the configured start"),
        pytest.param(facts(log(wish=70), start=20), 20, 80, 800, id="ran before: the recorded start"),
        pytest.param(facts(log(start=10), start=None), 10, 90, 1_000, id="came later: its beginning"),
        pytest.param(facts(log(start=80), last_end=60), 60, 20, 1_000, id="retention passed the position"),
        pytest.param(facts(log(end=50), last_end=60), 60, 0, 0, id="source truncated below the position"),
        pytest.param(facts(log(size=None), last_end=99), 99, 1, 7, id="size of the log not known: as the last chunk"),
        pytest.param(facts(log(size=None), start=99), 99, 1, 1_024, id="nothing known"),
        pytest.param(facts(held(log()), last_end=100), 100, 50, 333, id="an open transaction holds the rest back"),
        pytest.param(facts(held(log()), last_end=60), 60, 90, 600, id="some before an open transaction, and the rest"),
    ],
)
def test_lag(given: Facts, position: int, records: int, size: int) -> None:
    (lag,) = lag_of(given, DefaultReplicationPolicy(), "a")
    assert (lag.source, lag.target) == (SOURCE, PLACE)
    assert (lag.position, lag.records, lag.bytes) == (position, records, size)
    assert lag.read_at == (position if records else None)


def test_a_partition_without_leader_is_shown_as_not_known() -> None:
    (lag,) = lag_of(facts(None, last_end=60), DefaultReplicationPolicy(), "a")
    assert (lag.position, lag.source_end, lag.records, lag.bytes, lag.seconds) == (60, None, None, None, None)
    assert is_behind(lag, max_records=1_000, max_seconds=None)
    assert is_behind(lag, max_records=None, max_seconds=1_000)
    assert not is_behind(lag, max_records=None, max_seconds=None)


def test_ages_come_from_the_oldest_records() -> None:
    behind = lag_of(facts(log(), last_end=60), DefaultReplicationPolicy(), "a")
    done = lag_of(facts(log(), last_end=100), DefaultReplicationPolicy(), "a")

    def seconds(lags: list[PartitionLag], oldest: dict[TopicPartition, int]) -> list[float | None]:
        return [lag.seconds for lag in with_ages(lags, oldest, 10_000)]

    assert seconds(behind, {SOURCE: 7_500}) == [2.5]
    assert seconds(behind, {SOURCE: 10_000}) == [0]
    assert seconds(behind, {SOURCE: 10_001}) == [None], "a timestamp later than now shows no age"
    assert seconds(behind, {}) == [None]
    assert seconds(done, {}) == [0]


@pytest.mark.parametrize(
    ("given", "by"),
    [
        (facts(log(), last_end=60), BytesFrom.LOG_SIZE),
        (facts(log(size=None), last_end=60), BytesFrom.LAST_RECEIPT),
        (facts(log(size=None), start=60), BytesFrom.ASSUMED),
        (facts(None, last_end=60), None),
    ],
)
def test_an_estimate_says_what_it_is_made_from(given: Facts, by: BytesFrom | None) -> None:
    (lag,) = lag_of(given, DefaultReplicationPolicy(), "a")
    assert lag.bytes_from == by


def behind(records: int | None, seconds: float | None) -> PartitionLag:
    """A partition that is so far behind."""
    (lag,) = lag_of(facts(log(), last_end=60), DefaultReplicationPolicy(), "a")
    return replace(lag, records=records, bytes=None if records is None else 10 * records, seconds=seconds)


@pytest.mark.parametrize(
    ("lags", "behind_", "unknown", "records", "seconds"),
    [
        pytest.param([], 0, 0, 0, 0.0, id="no partition"),
        pytest.param([behind(0, 0.0), behind(0, 0.0)], 0, 0, 0, 0.0, id="caught up"),
        pytest.param([behind(5, 2.5), behind(7, 9.0), behind(0, 0.0)], 2, 0, 12, 9.0, id="the oldest counts"),
        pytest.param([behind(5, 2.5), behind(None, None)], 1, 1, 5, 2.5, id="one does not tell"),
        pytest.param([behind(5, None), behind(7, 9.0)], 2, 1, 12, 9.0, id="one does not tell how old"),
        pytest.param([behind(0, 0.0), behind(None, None)], 0, 1, 0, None, id="silence is not health"),
        pytest.param([behind(0, 0.0), behind(5, None)], 1, 1, 5, None, id="nobody tells how old"),
    ],
)
def test_the_total(lags: list[PartitionLag], behind_: int, unknown: int, records: int, seconds: float | None) -> None:
    assert total_of(lags) == TotalLag(
        partitions=len(lags), behind=behind_, unknown=unknown, records=records, bytes=10 * records, seconds=seconds
    )


def test_a_table_is_aligned_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["orders", 5, None], ["日本", 12_345, ""], ["a\x1b[2Jb\n", 1, "x"]]
    print_table(["topic", "count", "why"], rows, right=["count"])
    assert capsys.readouterr().out.splitlines() == [
        "topic        count  why",
        "orders           5  -",
        "日本         12345",
        r"a\x1b[2Jb\n      1  x",
    ]


def test_a_long_table_has_one_head_and_is_written_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def rows() -> Iterator[list[object]]:
        for number in range(4_500):
            seen.append(len(capsys.readouterr().out.splitlines()) if number == 4_000 else 0)
            yield ["orders", number]

    print_table(["topic", "partition"], rows(), right=["partition"])
    assert max(seen) == 4_001
    assert capsys.readouterr().out.splitlines()[-1].split() == ["orders", "4499"]


@pytest.mark.parametrize("width", [20, 60])
def test_a_table_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("os.isatty", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(["topic", "partition"], [["a-long-name-of-a-topic", 1]], right=["partition"])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    # Beside each other or one below the other, folded or not: no letter of a name is lost.
    assert "a-long-name-of-a-topic" in "".join("".join(lines).split())


def test_topics_narrow() -> None:
    given = facts(log())
    two = facts_with(
        given,
        source={"topics": {**given.source.topics, "payments": replace(given.source.topics["orders"], name="payments")}},
    )
    assert [lag.source.topic for lag in lag_of(two, DefaultReplicationPolicy(), "a", only={"payments"})] == ["payments"]


def header(attributes: int, base: int, largest: int) -> bytes:
    """A batch header, format v2, with these timestamps."""
    return HEADER.pack(0, 49, 0, 2, 0, attributes, 0, base, largest, -1, -1, -1, 1)


@pytest.mark.parametrize(
    ("buffer", "timestamp"),
    [
        pytest.param(header(0, 1_000, 2_000), 1_000, id="the first record's"),
        pytest.param(header(0x08, 1_000, 2_000), 2_000, id="log append time"),
        pytest.param(header(0x40, 9_000, 2_000), 2_000, id="the base is a delete horizon"),
        pytest.param(header(0, -1, -1), None, id="no timestamp"),
        pytest.param(header(0, 1_000, 2_000)[:-1], None, id="cut within the header"),
        pytest.param(struct.pack(">qiIbbq", 0, 0, 0, 1, 0, 3_000), 3_000, id="format v1"),
        pytest.param(struct.pack(">qiIbbq", 0, 0, 0, 0, 0, 3_000), None, id="format v0"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_first_timestamp_of_a_fetch(buffer: bytes, timestamp: int | None) -> None:
    assert first_timestamp(buffer) == timestamp
