"""What the documents tell people to type, typed: every line of these commands against two real clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from tests.cli.program import warm_ferry
from tests.documents.commands import Typed, resolved, typed
from tests.harness import Message, commit_offsets, create_topic, producer, send

RUN_HERE: Mapping[str, int] = {
    "version": 0,
    "config check": 0,
    "config explain": 0,
    "policy check": 0,
    "flows": 0,
    "acls required": 0,
    "plan": 0,
    "run": 0,
    "lag": 0,
    "ledger show": 0,
    "ledger export": 0,
    "translate": 0,
    "groups show": 0,
    "groups sync": 0,
    "groups snapshot": 0,
    "backfill": 0,
    "lanes list": 0,
    "verify": 0,
    "readiness": 1,  # the file of one flow has none back
    "switch list": 0,
}
"""Commands in the order in which they make sense, with the exit code that each line of them ends with."""

WITHOUT_CLUSTERS: Mapping[str, int] = {
    "config new": 0,
    "config import-mm1": 1,  # where the consumer's group stands is left to decide
    "dev status": 0,
}
"""Commands whose lines are typed in a folder that has MirrorMaker 1's files, and no other."""

FILE = """
clusters = primary, backup
primary.bootstrap.servers = {source}
backup.bootstrap.servers = {target}
primary->backup.enabled = true
primary->backup.topics = orders, payments.*
groups = billing
heartbeats.replication.enabled = false
replication.factor = 1
tasks.max = 2
"""
RUN = "cli-20260131T060000Z-1a2b"
"""The run that documents name in their examples."""

JANUARY = 1_768_003_200_000
"""10 January 2026, in the window that documents copy again."""


@pytest.fixture
def folder(source_cluster: RunningCluster, target_cluster: RunningCluster, tmp_path: Path) -> Path:
    """A folder with mm2.properties, the documents' flow; its topics have what the documents name in them."""
    kept = {"retention.ms": "-1"}
    create_topic(source_cluster, "orders", 6, kept)
    create_topic(source_cluster, "payments.audit", 1, kept)
    create_topic(source_cluster, "payments", 1, kept)
    records = [
        Message(value=b"%d" % number, key=b"%d" % number, partition=partition, timestamp=JANUARY + number)
        for partition, count in enumerate((50, 50, 50, 2_100, 50, 50))
        for number in range(count)
    ]
    client = producer(source_cluster)
    send(client, "orders", records)
    send(client, "payments.audit", records[:50])
    send(client, "payments", [replace(record, partition=0) for record in records[:1_100]])
    commit_offsets(source_cluster, "billing", {("orders", 3): 1_042})
    file = FILE.format(source=source_cluster.bootstrap, target=target_cluster.bootstrap)
    (tmp_path / "mm2.properties").write_text(file)
    return tmp_path


def test_every_line_ends_as_it_should(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    config = folder / "mm2.properties"
    # This flow has no transforms: tests/spark/test_plan_sample.py and test_transformed.py have flows that do.
    here = [one for one in typed() if one.words[0] == "ferry" and not {"--sample", "--spark"} & {*one.words}]
    lines = {one.line: (resolved(one.words[1:])[0], one) for one in here}
    first = warm_ferry("run", "primary->backup", "--run", RUN, config=config)
    assert first.code == 0, first.err
    wrong = []
    for name, code in RUN_HERE.items():
        told = [one for words, one in lines.values() if words == name]
        assert told, f"no document tells to type `ferry {name}`: take it out"
        for one in sorted(told, key=lambda one: one.line):
            wrong += _not_so(one, code, config)
    assert wrong == [], "\n".join(wrong)


def test_lines_that_need_no_cluster_end_as_they_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for name, code in WITHOUT_CLUSTERS.items():
        told = {one.line: one for one in typed() if one.words[0] == "ferry" and resolved(one.words[1:])[0] == name}
        # What asks a person is typed in tests/config/test_new.py.
        spoken = [one for one in told.values() if name != "config new" or "--source-servers" in one.words]
        assert spoken, f"no document tells to type `ferry {name}`: take it out"
        for one in spoken:
            for file, server in (("consumer", "west"), ("c", "west"), ("producer", "east"), ("p", "east")):
                group = "group.id=mirror\n" if server == "west" else ""
                (tmp_path / f"{file}.properties").write_text(f"bootstrap.servers={server}-1:9092\n{group}")
            (tmp_path / "mm2.properties").unlink(missing_ok=True)
            wrong += _not_so(one, code)
    assert wrong == [], "\n".join(wrong)


def _not_so(one: Typed, code: int, config: Path | None = None) -> list[str]:
    """What is wrong with a line's end."""
    answer = warm_ferry(*one.words[1:], config=config)
    if answer.code == code and "Traceback" not in answer.err:
        return []
    return [f"{one.document}: {one.line}\nexit code {answer.code}\n{answer.out[-500:]}{answer.err[-500:]}"]
