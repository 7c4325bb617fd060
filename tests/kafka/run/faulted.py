"""Runs of `ferry` in this process that meet a fault at a chosen call, and what must be true of them afterwards."""

from __future__ import annotations

import importlib
import json
import re
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.program import main
from tests.harness import (
    Lab,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topics,
    send,
)
from tests.program import Answer

RECORDS = 400
GROUP_AT: Mapping[int, int] = {0: 37, 1: 150}
"""The group's offsets on the source, by partition."""

PASSING = ("unreachable", "retryable", "outcome-unknown")
"""Kinds of errors that say: a later run may succeed."""


def grouped_lab(source: RunningCluster, target: RunningCluster, topic: str) -> Lab:
    """A flow of one slot, which copies in this process, with several chunks and a group in their midst."""
    create_topic(source, topic, 2, replicas=min(3, len(source.brokers)))
    send(producer(source, batch_num_messages=20), topic, numbered(RECORDS, partitions=2, size=300))
    alias = new_alias()
    commit_offsets(source, group_of(alias), {(topic, number): at for number, at in GROUP_AT.items()})
    settings = {
        "tasks.max": "1",
        "groups": group_of(alias),
        "sync.group.offsets.enabled": "true",
        "replication.factor": str(min(3, len(target.brokers))),
        "ferry.chunk.bytes": "30000",
    }
    return Lab(source=source, target=target, alias=alias, topics=(topic,), settings=settings)


def group_of(alias: str) -> str:
    """The group of a lab."""
    return f"g-{alias}"


def begins(patch: pytest.MonkeyPatch, place: str, action: Callable[[], object], call: int = 1) -> threading.Event:
    """Have something happen once, just before a call; whether it has.

    `place` is a function as `module:Class.name` or `module.name`; `call` says which call of it, from 1.
    """
    path, name = place.rsplit(".", 1)
    module, _, owner = path.partition(":")
    where: Any = importlib.import_module(module)
    for part in owner.split(".") if owner else ():
        where = getattr(where, part)
    before = getattr(where, name)
    calls = 0
    done = threading.Event()

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            action()
            done.set()
        return before(*arguments, **options)

    patch.setattr(where, name, called)
    return done


def ferry_here(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Answer:
    """Run a command in this process; what it does to the process's signals is undone."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as ended:
            main([str(one) for one in arguments])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Answer(code=ended.value.code, out=out, err=err)


def assert_honest(lab: Lab, answer: Answer, alias: str) -> None:
    """A run that did not succeed names the cluster `alias`; what its report claims is on the target."""
    assert "Traceback" not in answer.err
    assert "a bug" not in answer.out + answer.err
    if answer.code:
        assert re.search(rf"\bcluster {alias}\b", answer.out), answer
    body = json.loads(answer.out)
    if "error" in body:
        assert body["error"]["kind"] in PASSING, answer
        return
    body = answer.json("run")
    assert answer.code or body["state"] == "success"
    (topic,) = lab.topics
    if body["receipts"]:
        here, there = rows_of(lab.source, topic), rows_of(lab.target, lab.target_topic(topic))
        claimed = [
            (there[receipt["target_partition"]][target + at], here[receipt["partition"]][begin + at])
            for receipt in body["receipts"]
            for begin, target, count in receipt["segments"]
            for at in range(count)
        ]
        assert all(found == wanted for found, wanted in claimed)
        assert len(claimed) == body["records"]
    if body["groups"] and body["groups"]["offsets"]:
        assert len(exact_groups(lab)) >= body["groups"]["offsets"]


def assert_whole(lab: Lab) -> None:
    """Source and target are equal, and the group is at the same records."""
    assert lab.assert_equal() == RECORDS
    assert exact_groups(lab) == sorted(GROUP_AT)


def exact_groups(lab: Lab) -> list[int]:
    """The partitions where the group has an offset on the target: that of the same record as on the source."""
    (topic,) = lab.topics
    copy = lab.target_topic(topic)
    here, there = rows_of(lab.source, topic), rows_of(lab.target, copy)
    offsets = committed_offsets(lab.target, group_of(lab.alias), copy, 2)
    for number, at in offsets.items():
        assert there[number][at] == here[number][GROUP_AT[number]]
    return sorted(offsets)


def rows_of(cluster: RunningCluster, topic: str) -> dict[int, dict[int, tuple[object, ...]]]:
    """Records by partition and offset."""
    found = read_topics(cluster.bootstrap, [topic])[topic]
    return {number: {row[0]: row[1:] for row in rows} for number, rows in found.items()}
