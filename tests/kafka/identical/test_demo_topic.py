"""The demo's topic with identical offsets: the same numbers on both sides are printed, and a shifted copy is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry_airflow.demo import __main__ as demo
from ferry_airflow.demo.data import DemoTopic, TopicWriter
from tests.harness import Lab, create_topic, new_alias

PARTITIONS = 3


def rows_of(printed: str) -> list[list[str]]:
    """The cells of the table after its head, by row."""
    lines = [line for line in printed.splitlines() if not line.startswith("DIFFERENT")]
    return [line.split() for line in lines[-PARTITIONS:]]


def test_the_table_has_the_offsets_of_the_source(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    create_topic(source_cluster, topic, PARTITIONS)
    kind = DemoTopic(name=topic, partitions=PARTITIONS, records=5_000, rate=0, codec="lz4", transactional=True)
    TopicWriter(source_cluster.bootstrap, kind).write(kind.records)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    lab.micro_run()
    monkeypatch.setattr(demo, "HOME", tmp_path)
    monkeypatch.setattr(demo, "IDENTICAL_TOPIC", topic)
    capsys.readouterr()

    assert demo.show_identical(lab.flow, source_cluster, target_cluster)
    rows = rows_of(capsys.readouterr().out)
    assert [name for name, *_ in rows] == [f"{topic}-{number}" for number in range(PARTITIONS)]
    assert all(there == identical for _, there, _, identical in rows)
    assert all(there != translated for _, there, translated, _ in rows), "transactions take offsets"

    monkeypatch.setattr(demo, "ferry", lambda *_, **__: 0)
    monkeypatch.setattr(demo, "IDENTICAL_FLOW", f"{lab.alias}->backup")
    assert not demo.show_identical(lab.flow, source_cluster, target_cluster)
    assert capsys.readouterr().out.count("DIFFERENT") == PARTITIONS
