"""`ferry plan --sample` on a real topic, in a real Spark; and a run of such a flow, which is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from tests.harness import Message, create_topic, producer, send
from tests.program import ferry, warm_ferry
from tests.tiers import ANSWER_S

SECRET = b"4111-1111"


def file_of(folder: Path, source: RunningCluster, target: RunningCluster, topic: str, lines: str) -> Path:
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters = a, b\na.bootstrap.servers = {source.bootstrap}\nb.bootstrap.servers = {target.bootstrap}\n"
        f"a->b.enabled = true\ntopics = {topic}, {topic}-plain\nferry.transforms = masked\n"
        f"ferry.transform.masked.topics = {topic}\n{lines}\n"
    )
    return file


def test_records_are_shown_before_and_after_and_nothing_is_written(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 2, {"retention.ms": "-1"})  # brokers look for old records 30 s after they start
    create_topic(source_cluster, f"{topic}-plain")
    values = [b'{"card": "' + SECRET + b'", "n": 1.50}', b'{"n": 2}', None, b"no"]
    send(
        producer(source_cluster),
        topic,
        [
            Message(value=value, key=b"k", partition=number % 2, timestamp=1_700_000_000_000 + number)
            for number, value in enumerate([b"too old to be shown", *values])
        ],
    )
    send(producer(source_cluster), f"{topic}-plain", [Message(value=b"plain")])
    lines = "ferry.transform.masked.where = value IS NOT NULL\nferry.transform.masked.redact = $.card"
    file = file_of(tmp_path, source_cluster, target_cluster, topic, lines)

    done = ferry("plan", "--sample", "4", "--json", config=file)
    assert SECRET.decode() not in done.out + done.err
    assert done.code == 1, done.err  # the one that is no JSON would be refused
    (found,) = done.json("plan-sample")["samples"]
    assert (found["topic"], found["target"], found["transform"]) == (topic, f"a.{topic}", "masked")
    records = sorted(found["records"], key=lambda one: one["before"]["timestamp_ms"])
    assert [one["what"] for one in records] == ["changed", "same", "left out", "poison"]
    assert [one["before"]["timestamp_ms"] - 1_700_000_000_000 for one in records] == [1, 2, 3, 4]
    assert records[0]["before"]["key_digest"] == records[0]["after"]["key_digest"]
    assert records[0]["before"]["value_digest"] != records[0]["after"]["value_digest"]

    refused = warm_ferry("run", config=file)
    assert refused.code == 2
    assert "(masked), which take Spark: " in refused.err
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    assert not [name for name in admin.list_topics(timeout=ANSWER_S).topics if topic in name]

    shown = ferry("plan", "--sample", "4", "--show-values", config=file)
    assert '{"card": "", "n": 1.50}' in shown.out
    assert SECRET.decode() in shown.out
    assert "it is not JSON" in " ".join(shown.out.split())


def test_sql_that_is_not_understood_ends_it_with_its_place(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic)
    create_topic(source_cluster, f"{topic}-plain")  # no run of one task copies both
    file = file_of(tmp_path, source_cluster, target_cluster, topic, "ferry.transform.masked.where = nosuch(1)")
    done = ferry("plan", "--sample", "1", config=file)
    assert (done.code, done.out) == (2, "")
    sentence = done.err.splitlines()[-1]
    assert sentence.startswith("ferry: ferry.transform.masked.where: ")
    assert ", line 1, column 1: " in sentence
    run = ferry("run", "--spark", config=file)
    assert (run.code, run.out, run.err.splitlines()[-1]) == (2, "", sentence)
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    assert not [name for name in admin.list_topics(timeout=ANSWER_S).topics if topic in name], "the run was opened"


@pytest.mark.parametrize(
    ("command", "key", "value", "fact"),
    [
        (
            ("plan", "--sample", "1"),
            "sql",
            "SELECT * EXCEPT (timestamp) FROM (SELECT * FROM records)",
            " drops the column timestamp: ",
        ),
        (
            ("run", "--spark"),
            "where",
            "`rand`() < 0.5",
            " line 1, column 1, calls rand(), ",
        ),
    ],
)
def test_what_no_run_may_do_ends_it_with_one_sentence(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    command: tuple[str, ...],
    key: str,
    value: str,
    fact: str,
) -> None:
    create_topic(source_cluster, topic)
    file = file_of(tmp_path, source_cluster, target_cluster, topic, f"ferry.transform.masked.{key} = {value}")
    done = ferry(*command, config=file)
    assert (done.code, done.out) == (2, "")
    sentence = done.err.splitlines()[-1]
    assert sentence.startswith(f"ferry: ferry.transform.masked.{key}: ")
    assert fact in sentence
