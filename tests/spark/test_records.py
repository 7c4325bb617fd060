"""Records read in Spark: all that they are, the ranges that were asked for, and a sentence where that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ferry.dev import RunningCluster
from tests.clusters import PASSWORDS, SASL, USER
from tests.harness import Message, create_topic, numbered, producer, read_topic, send
from tests.spark.notebook import NO_RECORDS, Failed, Notebook, Read
from tests.tiers import ANSWER_S

LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{{}}";'
DAY_MS = 86_400_000
KEPT = {"retention.ms": "-1"}
"""For records whose times are long past."""


def brokers(cluster: RunningCluster, **options: str) -> dict[str, str]:
    """Options for the cluster; underscores stand for dots."""
    named = {name.strip("_").replace("_", "."): value for name, value in options.items()}
    return {"kafka.bootstrap.servers": cluster.bootstrap, **named}


def by_partition(rows: Sequence[dict[str, Any]]) -> dict[int, list[tuple[Any, ...]]]:
    """Rows as the tests' independent reader has them."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in sorted(rows, key=lambda one: (one["partition"], one["offset"])):
        found.setdefault(row["partition"], []).append(
            (row["offset"], row["key"], row["value"], tuple(row["headers"]), row["timestamp"])
        )
    return found


def offsets(found: Read) -> list[tuple[int, int]]:
    """Partition and offset of the rows, sorted."""
    return sorted((row["partition"], row["offset"]) for row in found.rows)


ODD = [
    Message(value=b"v", key=b"k", timestamp=1_700_000_000_123),
    Message(value=None, key=b"tombstone", timestamp=1),
    Message(value=b"", key=b"", timestamp=1_700_000_000_001),
    Message(value=b"no key", timestamp=253_402_300_800_000),
    Message(value=b"\x00\xff" * 40_000, key=b"large", timestamp=9_000_000_000_000_000),
    Message(
        value=b"headers",
        timestamp=1_700_000_000_999,
        headers=(("b", b"1"), ("a", None), ("b", b""), ("", b"\xff\x00"), ("Ünï", b"x" * 300)),
    ),
]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_come_with_all_that_they_are(
    book: Notebook, source_cluster: RunningCluster, topic: str, codec: str
) -> None:
    create_topic(source_cluster, topic, 3, {**KEPT, "message.timestamp.after.max.ms": str(2**63 - 1)})
    client = producer(source_cluster, compression_type=codec)
    send(client, topic, [Message(value=m.value, key=m.key, partition=p, headers=m.headers, timestamp=m.timestamp)
                         for p in (0, 2) for m in ODD])  # fmt: skip
    found = book.read(topic, brokers(source_cluster))
    wanted = {partition: rows for partition, rows in read_topic(source_cluster.bootstrap, topic).items() if rows}
    assert by_partition(found.rows) == wanted
    assert {(row["topic"], row["timestampType"]) for row in found.rows} == {(topic, 0)}
    assert len(wanted[0]) == len(ODD)


def test_times_of_the_broker_are_marked_as_such(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic, 1, {"message.timestamp.type": "LogAppendTime"})
    send(producer(source_cluster), topic, [Message(value=b"v", timestamp=5)])
    found = book.read(topic, brokers(source_cluster))
    assert by_partition(found.rows) == read_topic(source_cluster.bootstrap, topic)
    assert [row["timestampType"] for row in found.rows] == [1]


def test_only_committed_records_are_read(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    clients = [producer(source_cluster, transactional_id=f"{topic}-{end}") for end in ("commit", "abort", "open")]
    for client in clients:
        client.init_transactions(ANSWER_S)
    for client, end in zip(clients, ("commit", "abort", "open"), strict=True):
        client.begin_transaction()
        send(client, topic, [Message(value=end.encode())] * 3)
    clients[1].abort_transaction(ANSWER_S)
    clients[0].commit_transaction(ANSWER_S)
    send(producer(source_cluster), topic, [Message(value=b"behind the open one")])
    try:
        assert [row["value"] for row in book.read(topic, brokers(source_cluster)).rows] == [b"commit"] * 3
    finally:
        clients[2].abort_transaction(ANSWER_S)
    last = [b"commit"] * 3 + [b"behind the open one"]
    assert [row["value"] for row in book.read(topic, brokers(source_cluster)).rows] == last


def test_filters_narrow_what_is_read(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic, 4, KEPT)
    send(
        producer(source_cluster, batch_num_messages=7),
        topic,
        [
            Message(value=b"v", partition=number % 4, timestamp=DAY_MS + number * 1000 - number % 3)
            for number in range(400)
        ],
    )
    options = brokers(source_cluster, task_records="10")
    every = book.read(topic, options)
    assert (len(every.rows), len(set(every.tasks))) == (400, 40)
    cases: list[tuple[str, Callable[[dict[str, Any]], bool], int]] = [
        (
            "partition = 3 AND offset >= 25 AND offset < 45",
            lambda row: row["partition"] == 3 and 25 <= row["offset"] < 45,
            2,
        ),
        ("offset IN (91, 93, 98)", lambda row: row["offset"] in (91, 93, 98), 4),
        (
            f"topic LIKE '{topic[:-1]}%' AND partition IN (1, 2) AND offset > 89",
            lambda row: row["partition"] in (1, 2) and row["offset"] > 89,
            2,
        ),
        (f"timestamp >= {DAY_MS + 350_000}", lambda row: row["timestamp"] >= DAY_MS + 350_000, 8),
        (
            f"timestamp BETWEEN {DAY_MS + 100_000} AND {DAY_MS + 110_000} AND partition <> 2",
            lambda row: DAY_MS + 100_000 <= row["timestamp"] <= DAY_MS + 110_000 and row["partition"] != 2,
            40,
        ),
        (
            "partition = 3 AND offset % 2 = 0 AND length(value) = 1",
            lambda row: row["partition"] == 3 and row["offset"] % 2 == 0,
            10,
        ),
        ("offset >= 1000", lambda row: False, 0),
    ]
    for condition, holds, tasks in cases:
        found = book.read(topic, options, condition)
        wanted = sorted((row["partition"], row["offset"]) for row in every.rows if holds(row))
        assert offsets(found) == wanted, condition
        # What Spark makes tasks of is what is fetched; partitions it cannot leave out it has to read.
        assert len(set(found.tasks)) <= tasks, condition
        assert found.partitions <= max(tasks, 1), condition


def test_ranges_by_offsets_and_by_times(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic, 2, KEPT)
    send(
        producer(source_cluster),
        topic,
        [Message(value=b"v", partition=number % 2, timestamp=DAY_MS + number) for number in range(100)],
    )
    read = book.read(topic, brokers(source_cluster, from_=f"{topic}:0:10", to=f"{topic}:0:12,{topic}:1:2"))
    assert offsets(read) == [(0, 10), (0, 11), (1, 0), (1, 1)]
    read = book.read(topic, brokers(source_cluster, from_="1970-01-02T00:00:00.040Z", to=str(DAY_MS + 43)))
    assert offsets(read) == [(0, 20), (0, 21), (1, 20)]
    assert book.read(topic, brokers(source_cluster, from_="latest")).rows == []


def test_many_partitions_share_tasks_and_stay_in_order(
    book: Notebook, source_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 50)
    send(producer(source_cluster), topic, numbered(1_000, partitions=50))
    found = book.read(topic, brokers(source_cluster, task_records="500"))
    assert offsets(found) == [(partition, offset) for partition in range(50) for offset in range(20)]
    assert len(set(found.tasks)) == 2
    for partition in range(50):
        mine = [row["offset"] for row in found.rows if row["partition"] == partition]
        assert mine == sorted(mine)


def test_a_login_shows_nowhere(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, [Message(value=b"v")])
    options = {
        "kafka.bootstrap.servers": source_cluster.bootstrap_of(SASL.name),
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": LOGIN.format("${env:SOURCE_PASSWORD}"),
    }
    found = book.read(topic, options)
    assert [row["value"] for row in found.rows] == [b"v"]
    with pytest.raises(Failed, match="secret") as caught:
        book.read(topic, {**options, "kafka.sasl.jaas.config": LOGIN.format("".join(PASSWORDS["source"]))})
    for part in PASSWORDS["source"]:
        assert part not in found.plan + book.log() + str(caught.value)


def test_what_cannot_be_read_is_said_in_a_sentence(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    for topics, options, facts in [
        ("no-such-topic", {}, ["cluster kafka ", " no topic no-such-topic: "]),
        ("no-such-.*", {}, ["cluster kafka ", " that no-such-.* matches"]),
        (topic, {"from": f"{topic}:0:7"}, [f"from: offset 7 of {topic}-0 cannot be read yet"]),
        (topic, {"form": "latest"}, ["option form ", " is from meant"]),
    ]:
        with pytest.raises(Failed) as caught:
            book.read(topics, {**brokers(source_cluster), **options})
        assert [fact for fact in facts if fact not in str(caught.value)] == []


def test_a_selection_makes_rows_of_single_records(book: Notebook, source_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, [Message(value=f"v{number}".encode(), key=b"k") for number in range(6)])
    sql = (
        "SELECT * EXCEPT (value), CAST(concat('masked ', CAST(value AS STRING)) AS BINARY) AS value "
        "FROM records WHERE offset % 2 = 1"
    )
    found = book.read(topic, brokers(source_cluster), sql=sql)
    assert [(row["offset"], row["value"]) for row in found.rows] == [(n, f"masked v{n}".encode()) for n in (1, 3, 5)]
    assert "headers" in found.rows[0]
    found = book.read(topic, brokers(source_cluster), function="upper")
    assert [(row["offset"], row["value"]) for row in found.rows] == [(n, f"V{n}".encode()) for n in (0, 2, 4)]


def test_a_table_of_the_name_is_no_concern_and_a_view_is(book: Notebook) -> None:
    assert "headers" in str(book.read(NO_RECORDS, {}, function="beside_a_table").plan)
    with pytest.raises(Failed, match="temporary"):
        book.read(NO_RECORDS, {}, function="beside_a_view")


AES = "'0000111122223333'"
OLDER = "SELECT * FROM records WHERE timestamp_millis(timestamp) <"


def test_encryption_that_is_the_same_each_time_may_be_written(book: Notebook) -> None:
    vectors = "'GCM', 'DEFAULT', X'000102030405060708090a0b'", "'CBC', 'PKCS', '0123456789abcdef'"
    for how in ("'ECB'", "lower('ECB')", *vectors):
        sql = f"SELECT * FROM records WHERE aes_encrypt(key, {AES}, {how}) = key"
        assert book.read(NO_RECORDS, {}, sql=sql).rows == []


def test_times_that_stay_the_same_may_be_written(book: Notebook) -> None:
    for time in ("TIMESTAMP '2026-01-01'", "DATE 'epoch'", "CAST(CAST(key AS STRING) AS TIMESTAMP)"):
        assert book.read(NO_RECORDS, {}, sql=f"{OLDER} {time}").rows == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC * FROM records", "not understood, line 1, column 1: "),
        ("SELECT *\nFROM records WHERE valu = '1'", "not understood, line 2, column 20: "),
        ("SELECT *, nosuch(key) AS more FROM records", "not understood, line 1, column 11: "),
        ("SELECT * FROM records WHERE rand() < 0.5", "line 1, column 29, calls rand(), "),
        ("SELECT * FROM records WHERE timestamp_millis(timestamp) < now()", "calls now(), "),
        (f"{OLDER} TIMESTAMP 'now'", " 59, has the time 'now', "),
        (f"{OLDER} TIMESTAMP_NTZ ' Today '", "has the time ' Today ', "),
        (f"{OLDER} CAST('tomorrow UTC' AS TIMESTAMP)", " the time 'tomorrow UTC', "),
        (f"{OLDER} to_date('yesterday')", "has the time 'yesterday', "),
        (f'{OLDER} DATE "today"', "has the time 'today', "),
        (f"{OLDER} 'now'", "has the time 'now', "),
        ("SELECT * FROM records WHERE current_database() = 'x'", "calls current_schema(), "),
        (f"SELECT * FROM records WHERE aes_encrypt(key, {AES}) = key", "calls aes_encrypt(), "),
        (f"SELECT * FROM records WHERE aes_encrypt(key, {AES}, 'CBC') = key", "calls aes_encrypt(), "),
        ("SELECT * FROM records ORDER BY offset", "has ORDER BY: "),
        ("SELECT * FROM records LIMIT 1", "has LIMIT: "),
        ("SELECT DISTINCT * FROM records", "has DISTINCT: "),
        ("SELECT a.* FROM records a JOIN records b ON a.key = b.key", "has a join: "),
        ("SELECT * FROM records UNION ALL SELECT * FROM records", "has UNION: "),
        ("SELECT max(key) AS key FROM records", "has an aggregate: "),
        ("SELECT *, row_number() OVER (ORDER BY offset) AS n FROM records", "has a window function: "),
        ("SELECT *, explode(headers) AS h FROM records", " a generator such as explode: "),
        ("SELECT * FROM records WHERE offset = (SELECT max(offset) FROM records)", "has a subquery: "),
        ("SELECT 1", "query without FROM records: "),
        ("SELECT * FROM another", "the transform reads another: "),
        ("DROP TABLE records", "has DropTable: "),
        ("SELECT * EXCEPT (timestamp) FROM records", "drops the column timestamp: "),
        ("SELECT * EXCEPT (value), 'x' AS value FROM records", "the column value string, "),
        ("SELECT * EXCEPT (offset), offset + 1 AS offset FROM records", "changes the column offset, "),
    ],
)
def test_sql_that_is_no_selection(book: Notebook, sql: str, words: str) -> None:
    with pytest.raises(Failed) as caught:
        book.read(NO_RECORDS, {}, sql=sql)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("drawn", " calls rand(), "),
        ("counted", " has an aggregate: "),
        ("shifted", " changes the column offset, "),
        ("nothing", " answers NoneType: "),
    ],
)
def test_functions_that_make_no_selection(book: Notebook, function: str, words: str) -> None:
    with pytest.raises(Failed) as caught:
        book.read(NO_RECORDS, {}, function=function)
    assert function in str(caught.value)
    assert words in str(caught.value)
