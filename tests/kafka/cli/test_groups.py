"""The checker on real clusters: where groups stand on both sides, beside what the offset map says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ferry.cli.output import Figure
from ferry.dev import RunningCluster
from ferry.features.groups.cli.table import COLUMNS, lines
from ferry.features.groups.rules.table import GroupOffset, GroupRow, GroupTable
from ferry.ports import LOOPBACK
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, send, wait_until
from tests.program import warm_ferry as ferry
from tests.pure.decide.values import place


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow over topics that begin with this test's name, and groups that begin with its alias."""
    alias = new_alias()
    settings = {"groups": f"{alias}.*", "sync.group.offsets.enabled": "false"}
    return Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(f"{topic}.*",), settings=settings)


@pytest.fixture
def config(lab: Lab, tmp_path: Path) -> Path:
    """The flow's file."""
    return lab.write(tmp_path)


def consumer(cluster: RunningCluster, group: str) -> Consumer:
    """A plain consumer."""
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "client.id": "app",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def commit(cluster: RunningCluster, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Let a group without members stand there."""
    client = consumer(cluster, group)
    places = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
    assert [place.error for place in client.commit(offsets=places, asynchronous=False) or () if place.error] == []
    client.close()


@contextmanager
def reading(cluster: RunningCluster, group: str, topic: str) -> Iterator[int]:
    """A member that has read one record; the partition of that."""
    client = consumer(cluster, group)
    client.subscribe([topic])
    try:
        read: list[Any] = []

        def has_one() -> bool:
            read[:] = [client.poll(0.1)]
            return read != [None]

        wait_until(has_one, "a record")
        (message,) = read
        client.commit(message=message, asynchronous=False)
        partition = message.partition()
        assert partition is not None
        yield partition
    finally:
        client.close()


def rows(body: Any) -> dict[tuple[str, str | None, int | None], Any]:
    """The rows of the answer by group, source topic and partition."""
    return {
        (group["group"], row["topic"], row["partition"]): row for group in body["groups"] for row in group["partitions"]
    }


def standing(offset: int, log_size: int) -> dict[str, Any]:
    """Where a group without members stands."""
    return {"offset": offset, "log_size": log_size, "lag": log_size - offset, "owner": None}


def test_both_sides_of_groups_and_what_lies_between(lab: Lab, config: Path, topic: str) -> None:
    copied, other = f"{topic}-copied", f"other-{topic}"
    for name in (copied, other):
        create_topic(lab.source, name, 2)
        send(producer(lab.source), name, numbered(200, partitions=2))
    resting, active, idle = (f"{lab.alias}-{name}" for name in ("resting", "active", "idle"))
    commit(lab.source, resting, {(copied, 0): 40, (copied, 1): 100, (other, 0): 7})
    assert ferry("run", "--quiet", config=config).code == 0
    copy = lab.target_topic(copied)
    send(producer(lab.source), copied, numbered(20, partitions=2, start=200))
    commit(lab.source, idle, {(copied, 0): 105})
    commit(lab.target, resting, {(copy, 0): 30})
    with reading(lab.source, active, copied) as begun:
        answer = ferry("groups", f"{lab.alias}->t{lab.alias}", "--broker-info", "--json", config=config)
        spoken = ferry("groups", "--group", active, config=config)
    assert answer.code == 0, answer.err
    body = answer.json("groups")
    assert (body["flow"], body["not_shown"]) == (f"{lab.alias}->t{lab.alias}", [])
    assert [group["group"] for group in body["groups"]] == [active, idle, resting]
    assert [(one["cluster"], one["address"]) for one in body["brokers"]] == [
        (lab.alias, lab.source.bootstrap),
        (f"t{lab.alias}", lab.target.bootstrap),
    ]
    heads = {group["group"]: (group["source"], group["target"]) for group in body["groups"]}
    assert heads[active] == ({"kind": "classic", "state": "Stable", "members": 1}, None)
    assert [head["state"] for head in heads[resting]] == ["Empty", "Empty"]
    found = rows(body)
    assert found[resting, copied, 0] == {
        "topic": copied,
        "partition": 0,
        "target_topic": copy,
        "target_partition": 0,
        "source": standing(40, 110),
        # Behind the copied records lies the commit marker.
        "translated": {"outcome": "exact", "offset": 40, "log_size": 101, "lag": 61},
        "target": standing(30, 101),
    }
    # Who had read all that was copied has no lag on the target.
    assert found[resting, copied, 1]["translated"] == {"outcome": "exact", "offset": 101, "log_size": 101, "lag": 0}
    assert found[resting, copied, 1]["target"] is None
    assert (found[resting, other, 0]["source"], found[resting, other, 0]["translated"]) == (standing(7, 100), None)
    assert found[idle, copied, 0]["translated"]["outcome"] == "ahead"
    assert [found[active, copied, at]["source"]["offset"] for at in (begun, 1 - begun)] == [1, None]
    assert found[active, copied, begun]["translated"]["lag"] == 100
    owners = [found[active, copied, at]["source"]["owner"] for at in (0, 1)]
    assert [(owner["client_id"], owner["host"]) for owner in owners] == [("app", "/127.0.0.1")] * 2
    lines = [line.split() for line in spoken.out.splitlines()]
    assert lines[0] == ["group", "topic", "partition", "side", "offset", "log", "size", "lag", "owner"]
    assert all(line[0] == active for line in lines[1:])
    assert any(line[1:4] == [copied, "0", "source"] and line[-1] == "app/127.0.0.1" for line in lines[1:])

    asked = ferry("groups", "show", "--topic", f"{other},nothing", "--json", config=config)
    narrow = asked.json("groups")
    assert set(rows(narrow)) == {(resting, other, 0)}
    (missing,) = narrow["not_shown"]
    assert (asked.code, " on nothing on either " in missing["why"]) == (1, True)
    unknown = ferry("groups", "--group", f"{lab.alias}-nobody", "--json", config=config)
    assert unknown.code == 1
    assert unknown.json("groups")["not_shown"][0]["group"] == f"{lab.alias}-nobody"
    assert "correct the name" in unknown.err

    delete_topic(lab.target, copy)
    orphaned = rows(ferry("groups", "--group", resting, "--json", config=config).json("groups"))
    assert orphaned[resting, copied, 0]["translated"] == {
        "outcome": "exact",
        "offset": 40,
        "log_size": None,
        "lag": None,
    }


def test_all_offsets_of_a_group_are_translated_at_once(lab: Lab, config: Path, topic: str) -> None:
    copied, other, copy = f"{topic}-copied", f"other-{topic}", lab.target_topic(f"{topic}-copied")
    for name in (copied, other):
        create_topic(lab.source, name, 2)
        send(producer(lab.source), name, numbered(200, partitions=2))
    resting, idle = f"{lab.alias}-resting", f"{lab.alias}-idle"
    assert ferry("run", "--quiet", config=config).code == 0
    commit(lab.source, resting, {(copied, 0): 40, (copied, 1): 100, (other, 0): 7})
    commit(lab.source, idle, {(copied, 0): 105})
    commit(lab.target, resting, {(copy, 0): 30})
    moved = ferry("translate", "--group", resting, "--json", config=config)
    assert moved.code == 0, moved.err
    whole = moved.json("translate-group")
    assert [
        (row["source_partition"], row["source_offset"], row["outcome"], row["target_offset"])
        for row in whole["partitions"]
    ] == [(0, 40, "exact", 40), (1, 100, "exact", 101)]
    assert whole["not_copied"] == [{"topic": other, "partition": 0, "offset": 7}]
    assert ferry("translate", "--group", idle, config=config).code == 1
    back = ferry("translate", "--group", resting, "--reverse", config=config)
    words = [line.split() for line in back.out.splitlines()[1:]]
    assert (back.code, words) == (0, [[copy, "0", "30", "exact", copied, "0", "30"]])
    nowhere = ferry("translate", "--group", f"{lab.alias}-nobody", config=config)
    assert (nowhere.code, f"group {lab.alias}-nobody has no offsets on " in nowhere.err) == (2, True)
    # After the source is lost the answer is what was copied, and says that nobody could look.
    lost = config.with_name("lost.properties")
    lost.write_text(config.read_text().replace(lab.source.bootstrap, f"{LOOPBACK}:1"))
    for arguments in (["--group", resting, "--reverse"], [f"{lab.alias}->t{lab.alias}", copied, "0", "30"]):
        answer = ferry("translate", *arguments, config=lost)
        assert (answer.code, " 30" in answer.out) == (0, True), answer.err
        assert f" is not known: cluster {lab.alias} at" in answer.err


@pytest.mark.parametrize("down", ["source", "target"])
def test_with_one_side_down_the_other_is_shown(lab: Lab, tmp_path: Path, topic: str, down: str) -> None:
    up = lab.target if down == "source" else lab.source
    create_topic(up, topic)
    group = f"{lab.alias}-app"
    commit(up, group, {(topic, 0): 0})
    alias = lab.alias if down == "source" else f"t{lab.alias}"
    config = lab.write(tmp_path)
    bootstrap = f"{LOOPBACK}:1"
    gone = (lab.source if down == "source" else lab.target).bootstrap
    config.write_text(config.read_text().replace(gone, bootstrap))
    answer = ferry("groups", "--patience", "1", "--json", config=config)
    assert answer.code == 1
    body = answer.json("groups")
    assert [(one["cluster"], one["group"]) for one in body["not_shown"]] == [(alias, None)]
    assert f"cluster {alias} at {bootstrap} does not answer" in answer.err
    (row,) = rows(body).values()
    side = "target" if down == "source" else "source"
    assert (row[side], row["translated"], row[down]) == (standing(0, 0), None, None)


@pytest.mark.parametrize(
    ("offset", "lag"),
    [
        (40, 60),
        (100, 0),
        (101, Figure(number=-1, text="1 beyond the end")),
        (10**6, Figure(number=-999_900, text="999900 beyond the end")),
    ],
)
def test_a_group_beyond_the_end_has_no_negative_lag_in_the_table(offset: int, lag: int | Figure) -> None:
    row = GroupRow(source=place("orders"), target=None, at_source=GroupOffset(offset=offset, log_size=100))
    (line,) = lines(GroupTable(group="app", source=None, target=None, rows=(row,)))
    assert dict(zip(COLUMNS, line, strict=True))["lag"] == lag
