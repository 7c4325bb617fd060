"""A topic whose records choose among several targets: Connect's `TimestampRouter` gives each day one of its own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ferry.dev import RunningCluster
from tests.harness import (
    Lab,
    Message,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    producer,
    read_topic,
    send,
)
from tests.program import ferry, warm_ferry
from tests.pure.decide.dealt_model import partition_of_record
from tests.pure.run.unit_flows import LATELY

SOURCES, TARGETS, RECORDS, DAY = 3, 2, 300, 86_400_000


def day_of(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y%m%d")


def on_days(*ago: int, count: int = RECORDS, start: int = 0) -> list[Message]:
    """Records whose keys keep their partition, by turns of these days."""
    return [
        Message(
            key=None if number % 11 == 0 else f"k{number % 22 % SOURCES}-{number % 7}".encode(),
            value=f"{number}".encode(),
            partition=number % 22 % SOURCES,
            timestamp=LATELY - ago[number % len(ago)] * DAY,
        )
        for number in range(start, start + count)
    ]


def test_each_record_goes_to_the_topic_that_it_names_and_an_unknown_name_waits(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, on_days(0, 1, 1))
    late = Message(key=b"late", value=b"late", partition=1, timestamp=LATELY - 3 * DAY)
    send(producer(source_cluster), topic, [late])
    send(producer(source_cluster), topic, on_days(1, 0, count=100, start=RECORDS))
    alias = new_alias()
    names = [f"{alias}.{topic}-{day_of(LATELY - days * DAY)}" for days in (0, 1, 3)]
    group = f"g-{new_alias()}"
    commit_offsets(source_cluster, group, {(topic, number): 20 for number in range(SOURCES)})
    settings = {
        "groups": group,
        "transforms": "route",  # as MirrorMaker 2's file has it
        "transforms.route.type": "org.apache.kafka.connect.transforms.TimestampRouter",
        "ferry.transform.transforms.targets": ", ".join(names[:2]),
        "ferry.transform.transforms.partitions": str(TARGETS),
    }
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=settings)

    told = ferry("run", "--id", "r-1", "--spark", "--json", config=lab.write(tmp_path))
    assert told.code == 1, told.err
    stuck = next(row[0] for row in read_topic(source_cluster.bootstrap, topic)[1] if row[1] == b"late")
    (message,) = {one["message"] for one in told.json("run")["refusals"]}
    assert f" at offset {stuck} of {topic}-1 to topic {names[2]}, " in message
    assert "ferry.transform.transforms.targets" in message
    shown = warm_ferry("ledger", "--run", "r-1", config=lab.write(tmp_path)).out
    assert shown.count("refused: ") == shown.count(f"refused: {message}") == 1, "not for each target partition"
    assert_written(source_cluster, target_cluster, topic, names[:2], {1: stuck})

    more = replace(lab, settings={**settings, "ferry.transform.transforms.targets": ", ".join(reversed(names))})
    told = ferry("run", "--id", "r-2", "--spark", "--json", config=more.write(tmp_path))
    assert told.code == 0, told.err
    assert_written(source_cluster, target_cluster, topic, names, {})
    assert warm_ferry("lag", "--json", config=more.write(tmp_path)).json("lag")["total"]["records"] == 0
    shown = warm_ferry("plan", "--json", config=more.write(tmp_path)).json("plan")
    assert (shown["slices"], shown["changes"], shown["refusals"], "units" in shown) == ([], [], [], False)

    # What the group has not read lies behind where it goes on, in each of the topics.
    unread = {row[2] for rows in read_topic(source_cluster.bootstrap, topic).values() for row in rows[20:]}
    for name in names:
        stands = committed_offsets(target_cluster, group, name, TARGETS)
        for number, rows in read_topic(target_cluster.bootstrap, name).items():
            assert all(row[0] >= stands[number] for row in rows if row[2] in unread), (name, number)

    told = ferry("verify", "--spark", "--run", "r-2", "--json", config=more.write(tmp_path))
    assert told.code == 0, told.err
    body = told.json("verify")
    assert (body["equal"], body["not_compared"]) == (True, [])
    behind = len(read_topic(source_cluster.bootstrap, topic)[1]) - stuck
    assert body["records"] == behind


def assert_written(
    source: RunningCluster, target: RunningCluster, topic: str, names: list[str], ends: dict[int, int]
) -> None:
    """Each record before the ends is there once, where its time and its key say, in order per key; else nothing is."""
    wanted: dict[tuple[str, int], list[tuple[object, ...]]] = defaultdict(list)
    for partition, rows in sorted(read_topic(source.bootstrap, topic).items()):
        for row in rows:
            offset, key, _, _, time = row
            if offset < ends.get(partition, offset + 1):
                name = f"{names[0].partition(topic)[0]}{topic}-{day_of(time)}"
                wanted[name, partition_of_record(key, partition, offset, TARGETS)].append(row[1:])
    for name in names:
        for number, rows in read_topic(target.bootstrap, name).items():
            found = [row[1:] for row in rows]
            assert sorted(map(repr, found)) == sorted(map(repr, wanted.pop((name, number), [])))
            for key in {row[0] for row in found}:
                values = [int(row[1] or b"") for row in found if row[0] == key and row[1] != b"late"]
                assert key is None or values == sorted(values)
    assert not wanted
