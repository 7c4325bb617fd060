"""Frames of somebody's own, written to Kafka from Spark: once, with all that they are, from notebooks and streams."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.run.spark.submit import submit_conf
from ferry.wire.partitioner import partition_of_key
from tests.harness import create_topic, new_alias, numbered, producer, read_topic, send, wait_until, watermark
from tests.spark.jobs import LOCAL, ROOT
from tests.spark.notebook import Failed, Notebook, notebook
from tests.tiers import ANSWER_S, share

EVERYTHING = """
SELECT * FROM VALUES
  ('{topic}', 2, 1700000000123L, X'00FF', X'76',
   CAST(array(struct('b', X'31'), struct('a', CAST(NULL AS BINARY)), struct('b', X''), struct('', X'FF00'),
              struct('Ünï', X'00')) AS ARRAY<STRUCT<key: STRING, value: BINARY>>)),
  ('{topic}', NULL, 1L, X'6B', CAST(NULL AS BINARY), NULL),
  ('{topic}', NULL, 253402300800000L, X'', X'', array()),
  ('{other}', 0, 0L, CAST(NULL AS BINARY), X'6F', NULL)
AS records(topic, partition, timestamp, key, value, headers)
"""
SIMPLE = "SELECT CAST(id AS STRING) AS key, CAST(id AS STRING) AS value, id AS timestamp FROM range(40)"


def to(cluster: RunningCluster) -> dict[str, Any]:
    return {"options": {"kafka.bootstrap.servers": cluster.bootstrap}}


def kept(cluster: RunningCluster, name: str, partitions: int) -> None:
    """A topic that takes any time and keeps all."""
    create_topic(cluster, name, partitions, {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})


def values(cluster: RunningCluster, topic: str) -> list[bytes]:
    return sorted(row[2] or b"" for rows in read_topic(cluster.bootstrap, topic).values() for row in rows)


@pytest.mark.parametrize("settings", [{}, {"spark.sql.execution.arrow.useLargeVarTypes": "true"}], ids=["", "large"])
def test_records_arrive_with_all_that_they_are(
    book: Notebook, target_cluster: RunningCluster, topic: str, settings: dict[str, str]
) -> None:
    other, application = f"{topic}-other", new_alias()
    kept(target_cluster, topic, 3)
    kept(target_cluster, other, 1)
    rows = EVERYTHING.format(topic=topic, other=other)
    asked = {**to(target_cluster), "topics": [topic, other], "application": application, "batch": 0, "rows": rows}
    asked |= {"settings": settings}
    told = book.delivered("given", **asked)
    found = read_topic(target_cluster.bootstrap, topic)
    by_key = {row[1]: (partition, *row[2:]) for partition, mine in found.items() for row in mine}
    headers = (("b", b"1"), ("a", None), ("b", b""), ("", b"\xff\x00"), ("Ünï", b"\x00"))
    assert by_key == {
        b"\x00\xff": (2, b"v", headers, 1_700_000_000_123),
        b"k": (partition_of_key(b"k", 3), None, (), 1),
        b"": (partition_of_key(b"", 3), b"", (), 253_402_300_800_000),
    }
    assert [row[1:] for row in read_topic(target_cluster.bootstrap, other)[0]] == [(None, b"o", (), 0)]
    lie = [[topic, number, mine[0][0], mine[-1][0], len(mine)] for number, mine in found.items() if mine]
    assert told == {"already": False, "parts": [*sorted(lie), [other, 0, 0, 0, 1]]}
    assert book.delivered("given", **asked) == {**told, "already": True}
    assert len(values(target_cluster, topic)) == 3


def test_a_topic_is_dealt_anew_in_the_order_of_its_offsets(
    book: Notebook, target_cluster: RunningCluster, topic: str
) -> None:
    """Keys go where Kafka's own partitioner puts them; what has none is spread."""
    create_topic(target_cluster, topic, 1)
    send(producer(target_cluster), topic, numbered(600))
    for name in ("murmur2", "again"):
        create_topic(target_cluster, f"{topic}-{name}", 5)
    client = producer(target_cluster, partitioner="murmur2_random")
    (source,) = read_topic(target_cluster.bootstrap, topic).values()
    for row in source:
        client.produce(f"{topic}-murmur2", key=row[1], value=row[2], timestamp=row[4], headers=list(row[3]))
    client.flush()
    asked = {"of": topic, "topics": [f"{topic}-again"], "application": new_alias(), "batch": 1}
    book.delivered("copied", **to(target_cluster), **asked)
    again, other = (read_topic(target_cluster.bootstrap, f"{topic}-{name}") for name in ("again", "murmur2"))
    assert {n: [row[1:] for row in rows] for n, rows in again.items()} == {
        n: [row[1:] for row in rows] for n, rows in other.items()
    }
    keyless = "SELECT CAST(id AS STRING) AS value, id AS timestamp FROM range(500)"
    create_topic(target_cluster, f"{topic}-keyless", 5)
    spread = {"rows": keyless, "topics": [f"{topic}-keyless"], "application": new_alias(), "batch": 1}
    told = book.delivered("given", **to(target_cluster), **spread)
    assert all(70 < part[4] < 130 for part in told["parts"]), told
    assert values(target_cluster, f"{topic}-keyless") == sorted(str(number).encode() for number in range(500))


def test_a_frame_that_changes_each_time_is_refused(book: Notebook, target_cluster: RunningCluster, topic: str) -> None:
    create_topic(target_cluster, topic, 2)
    asked = {**to(target_cluster), "topics": [topic], "application": new_alias(), "batch": 3}
    assert len(book.delivered("drawn", **asked)["parts"]) == 2
    with pytest.raises(Failed, match=r"^Refused\b.* 3 .*other"):
        book.delivered("drawn", **asked)
    # The markers of a commit come after its acknowledgement: on a busy machine seconds later.
    wait_until(lambda: len(values(target_cluster, topic)) == 50, "the records of the first frame alone", 60)


def test_a_driver_is_killed_and_another_session_goes_on(
    book: Notebook, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(target_cluster, topic, 4)
    asked = {"count": 150_000, "topics": [topic], "application": new_alias(), "batch": 1, **to(target_cluster)}
    conf = " ".join(f'--conf "{key}={value}"' for key, value in submit_conf().items())
    environment = {**LOCAL, "PYSPARK_SUBMIT_ARGS": f"--master local[2] {conf} pyspark-shell"}
    with notebook(tmp_path / "spark.log", environment) as dying, ThreadPoolExecutor(1) as pool:
        asking = pool.submit(dying.delivered, "large", **asked)
        try:
            wait_until(
                lambda: sum(watermark(target_cluster, topic, number) for number in range(4)) > 5_000,
                "5,000 records of the sink",
                240,
            )
        finally:
            dying.kill()
        with pytest.raises((AssertionError, BrokenPipeError, ValueError)):
            asking.result(2 * ANSWER_S)
    told = book.delivered("large", **asked)
    assert told["already"] is False, "it was killed in the middle"
    found = read_topic(target_cluster.bootstrap, topic)
    rows = [(row[1], row[2], row[4]) for mine in found.values() for row in mine]
    assert len(rows) == 150_000
    assert set(rows) == {
        (str(n).encode(), str(n).encode().ljust(1000, b"."), 1_700_000_000_000 + n) for n in range(150_000)
    }
    for mine in found.values():
        assert [row[4] for row in mine] == sorted(row[4] for row in mine)
    assert {part[1]: (part[2], part[3]) for part in told["parts"]} == {
        number: (mine[0][0], mine[-1][0]) for number, mine in found.items()
    }


def test_a_stream_that_fails_between_the_write_and_its_own_commit(
    book: Notebook, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(target_cluster, topic, 2)
    folder = tmp_path / "lines"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("".join(f"{number}-{line}\n" for line in range(20)))
    asked = {
        **to(target_cluster),
        "folder": str(folder),
        "checkpoint": str(tmp_path / "checkpoint"),
        "topic": topic,
        "application": new_alias(),
    }
    first = book.delivered("streamed", fails_behind=1, **asked)
    assert first["told"] == [[0, False, 20], [1, False, 20]]
    assert "STREAM_FAILED" in first["failed"]
    second = book.delivered("streamed", fails_behind=-1, **asked)
    assert second == {"told": [[1, True, 20], [2, False, 20]], "failed": ""}
    assert values(target_cluster, topic) == sorted(f"{n}-{line}".encode() for n in range(3) for line in range(20))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rows": "SELECT 'x' AS value"}, "BadInput: the frame has no column timestamp: add it, as milliseconds"),
    ({"rows": "SELECT 'x' AS value, now() AS timestamp"}, "BadInput: column timestamp of the frame is Timestamp"),
    ({"rows": "SELECT 1 AS value, 1L AS timestamp"}, "BadInput: column value of the frame is IntegerType"),
    ({"rows": "SELECT 'x' AS value, 1L AS timestamp, map('a', 'b') AS headers"}, "BadInput: column headers is map"),
    ({"rows": "SELECT 'x' AS value, CAST(NULL AS BIGINT) AS timestamp"}, "a record of batch 1 .* has no timestamp"),
    ({"rows": "SELECT 'x' AS value, -1L AS timestamp"}, "has timestamp -1, before 1970"),
    ({"rows": "SELECT 'x' AS value, 1L AS timestamp, 2 AS partition"}, "goes to partition 2 of .*, which has 2"),
    ({"rows": "SELECT 'x' AS value, 1L AS timestamp, 'nope' AS topic"}, "goes to topic nope, which is not among"),
    ({"rows": SIMPLE, "order_by": ["place"]}, "BadInput: the frame has no column place"),
    ({"rows": SIMPLE, "batch": -1}, "BadInput: batch is -1: write a number from 0 on"),
    ({"rows": SIMPLE, "application": "a/b"}, "BadInput: application is 'a/b': write letters, digits"),
    ({"rows": SIMPLE, "slots": 0}, "BadInput: slots is 0: write a number from 1 to 1000"),
    ({"rows": SIMPLE, "topics": []}, r"BadInput: topics is \[\]: write a list"),
    ({"rows": SIMPLE, "topics": ["not-there"]}, "BadInput: topic not-there on cluster kafka is not there"),
]
"""What cannot be written, and what is said of it."""


@pytest.mark.parametrize(("arguments", "words"), share(WRONG, 1, 4))
def test_what_cannot_be_written_is_one_sentence(
    book: Notebook, target_cluster: RunningCluster, topic: str, arguments: dict[str, Any], words: str
) -> None:
    create_topic(target_cluster, topic, 2)
    asked = {**to(target_cluster), "topics": [topic], "application": new_alias(), "batch": 1, **arguments}
    with pytest.raises(Failed, match=words) as told:
        book.delivered("given", **asked)
    assert "\n" not in str(told.value)
    assert not values(target_cluster, topic)


def test_options_that_would_break_it_are_refused(book: Notebook, target_cluster: RunningCluster, topic: str) -> None:
    create_topic(target_cluster, topic)
    asked = {"rows": SIMPLE, "topics": [topic], "application": new_alias(), "batch": 1}
    options = to(target_cluster)["options"]
    with pytest.raises(Failed, match=r"option kafka\.acks: "):
        book.delivered("given", options={**options, "kafka.acks": "1"}, **asked)
    with pytest.raises(Failed, match="topics"):
        book.delivered("given", options={**options, "topics": "x"}, **asked)
    with pytest.raises(Failed, match="writeStream"):
        book.delivered("not_in_foreach_batch", options=options, **asked)
    assert not values(target_cluster, topic)


def test_the_documents_example(book: Notebook, target_cluster: RunningCluster, topic: str) -> None:
    create_topic(target_cluster, topic, 3)
    text = (ROOT / "docs" / "write-any-dataframe.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    for word, value in (("backup-1:9092", target_cluster.bootstrap), ("enriched", topic)):
        assert word in code
        code = code.replace(word, value)
    told = book.delivered("documented", code=code)
    assert told["already"] is False
    assert len(values(target_cluster, topic)) == sum(part[4] for part in told["parts"]) > 0
