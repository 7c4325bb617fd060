"""Full disks at the source, under the ledger, reports and metrics: a sentence, nothing half-written, no copy is lost.

Those of the target are also in test_faults.py, of its ledger in scripted/test_full_ledger.py.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from ferry.dev import ClusterSpec, RunningCluster, guard, up
from ferry.features.observe.acts.textfile import parse
from ferry.kafka.connect.cluster import Cluster
from ferry.ledger.receipts import receipts
from ferry.ledger.report import RunState
from ferry.model import Receipt
from ferry.protocol.names import ledger_topic
from ferry.run.ledger.access import LedgerAccess
from tests.disks import PAGE, SmallDisk, small_disk
from tests.harness import Lab, awaited, create_topic, numbered, on_cluster, producer, send, wait_until
from tests.kafka.run.conftest import small_lab
from tests.kafka.run.switching import PARTITIONS, Clients, Pair, begin_group
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S, PATIENCE

RECORDS = 4_000
ROOM = 64 << 20
"""Bytes of the small disk of a broker."""
FULL = os.strerror(errno.ENOSPC)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as found:
        yield found


@dataclass(frozen=True, kw_only=True)
class LedgerDisk:
    """A cluster of one broker with a small disk, and with another one unless `other` is None."""

    cluster: RunningCluster
    disk: SmallDisk
    other: Path | None

    def give(self, ledger: str) -> None:
        """Move the ledger to the small disk, and all else to the other one, if there is one."""
        if self.other is not None:
            on_cluster(self.cluster, partial(_move, ledger, str(self.disk.folder), str(self.other)))


async def _move(ledger: str, to: str, others_to: str, client: Cluster) -> None:
    async def found() -> dict[tuple[str, int], str]:
        answer = await client.ask(DescribeLogDirsRequest(topics=None))
        return {
            (topic.name, part.partition_index): folder.log_dir
            for folder in answer.results
            for topic in folder.topics
            for part in topic.partitions
            if not part.is_future_key
        }

    wanted = {place: to if place[0] == ledger else others_to for place in await found()}
    assert to in wanted.values()
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topic = directory.AlterReplicaLogDirTopic
    for (name, partition), folder in wanted.items():
        one = directory(path=folder, topics=[topic(name=name, partitions=[partition])])
        await client.ask(AlterReplicaLogDirsRequest(dirs=[one]))

    async def moved() -> bool:
        return await found() == wanted

    await awaited(client.loop, moved, "the ledger on the small disk, and all else on the other one")


def fill_up(cluster: RunningCluster, topic: str) -> None:
    """Let the broker's files grow no more: a write fails as it does when the disk is full, and the broker ends."""
    (broker,) = cluster.brokers
    psutil.Process(broker.pid).rlimit(psutil.RLIMIT_FSIZE, (4_096, 4_096))
    client: Producer = producer(cluster, message_timeout_ms=2_000)

    def ended() -> bool:
        client.produce(topic, b"x" * 8_192)
        client.flush(1)
        return broker.state == "stopped"

    wait_until(ended, "the end of the broker")


def test_a_full_disk_at_the_source_ends_the_run_which_says_what_it_copied_and_what_not(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    plain = small_lab(source_cluster, target_cluster, topic)
    slow = {**plain.settings, "ferry.throttle.bytes.per.second": "30000", "tasks.max": "1"}
    lab = replace(plain, settings=slow)
    config = lab.write(tmp_path)
    other = f"other-{topic[-40:]}"
    create_topic(source_cluster, other)
    process = start("run", "--json", "--patience", f"{3 * PATIENCE:g}", config=config)

    def begun() -> bool:
        found = ferry("ledger", "--json", config=config)
        return found.code == 0 and bool(found.json("ledger")["receipts"])

    wait_until(begun, "a first receipt", 90)
    fill_up(source_cluster, other)
    answer = finished(process, 120)
    assert answer.code == 1
    assert "Traceback" not in answer.err
    body = answer.json("run")
    assert (body["state"], 0 < body["records"] < RECORDS) == ("partial", True)
    assert {one["topic"] for one in body["refusals"]} == {topic}
    assert all(f"cluster {lab.alias}" in one["message"] for one in body["refusals"])
    assert sum(receipt.records for receipt in lab_receipts(lab)) == body["records"]

    gone = ferry("run", "--patience", f"{PATIENCE:g}", config=config)
    assert (gone.code, f"cluster {lab.alias}" in gone.err, "Traceback" in gone.err) == (3, True, False)
    source_cluster.stop()
    source_cluster.start()
    report = plain.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, RECORDS - body["records"])
    assert lab.assert_equal() == RECORDS


def lab_receipts(lab: Lab) -> list[Receipt]:
    """Read while the source is away."""
    with LedgerAccess(lab.flow, patience_s=ANSWER_S) as ledger:
        return list(receipts(ledger.view()))


@pytest.fixture(params=["its only disk", "the disk of the ledger alone"])
def ledger_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerDisk]:
    """The target, with a small disk that is its only one, or that will have the ledger alone."""
    other = None if request.param == "its only disk" else tmp_path / "other"
    with small_disk(tmp_path / "small", ROOM // PAGE) as small, guard(tmp_path / "home"):
        properties = {"log.dirs": str(small.folder)}
        if other is not None:
            properties = {"log.dirs": f"{other},{small.folder}", "metadata.log.dir": str(other)}
        cluster = up(ClusterSpec(name="narrow", properties=properties), home=tmp_path / "home")
        yield LedgerDisk(cluster=cluster, disk=small, other=other)
        cluster.stop()


@pytest.mark.timeout(300)
def test_a_full_disk_under_the_ledger_ends_the_run_and_the_next_one_copies_what_is_left(
    source_cluster: RunningCluster, ledger_disk: LedgerDisk, topic: str, tmp_path: Path
) -> None:
    cluster, disk = ledger_disk.cluster, ledger_disk.disk
    lab = small_lab(source_cluster, cluster, topic)
    assert lab.micro_run().records == RECORDS
    ledger_disk.give(ledger_topic(lab.alias))
    send(producer(source_cluster, batch_num_messages=50), topic, numbered(RECORDS, partitions=4, size=300))
    slow = {**lab.settings, "ferry.throttle.bytes.per.second": "30000", "tasks.max": "1"}
    config, named = replace(lab, settings=slow).write(tmp_path), f"cluster t{lab.alias}"
    process = start("run", "--json", "--patience", f"{2 * PATIENCE:g}", config=config)

    def begun() -> bool:
        assert process.poll() is None, finished(process)
        return sum(receipt.records for receipt in lab.receipts()) > RECORDS

    wait_until(begun, "a receipt of the second run", 90)
    disk.fill()
    answer = finished(process, 120)
    assert (answer.code, "Traceback" in answer.err) == (1, False), answer
    body = answer.json("run")
    assert (body["state"], 0 < body["records"] < RECORDS) == ("partial", True)
    assert {one["partition"] for one in body["refusals"]} == set(range(4))
    assert all(named in one["message"] for one in body["refusals"])
    (broker,), fate = cluster.brokers, "stopped" if ledger_disk.other is None else "running"
    wait_until(lambda: broker.state == fate, f"a broker that is {fate}")

    gone = ferry("run", "--patience", f"{PATIENCE:g}", config=config)
    assert (gone.code, named in gone.err, "Traceback" in gone.err) == (3, True, False), gone
    disk.free()
    cluster.stop()
    cluster.start()
    report = lab.micro_run()
    assert (report.state, 0 < report.records <= RECORDS - body["records"]) == (RunState.SUCCESS, True)
    assert lab.assert_equal() == 2 * RECORDS


def test_a_full_disk_under_the_metrics_fails_no_run_and_no_comparison(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, disk: SmallDisk
) -> None:
    lab = small_lab(source_cluster, target_cluster, topic)
    config = replace(lab, settings={**lab.settings, "ferry.metrics.folder": str(disk.folder)}).write(tmp_path)
    file = disk.folder / f"ferry__{lab.alias}__t{lab.alias}.prom"
    disk.fill()
    for command in ("run", "verify"):
        answer = ferry(command, "--json", config=config)
        assert (answer.code, answer.json(command)["records"]) == (0, RECORDS), answer.err
        assert str(file) in answer.err
        assert FULL in answer.err
        assert "Traceback" not in answer.err
        assert disk.names == set()
    disk.free()
    assert ferry("run", config=config).code == 0
    assert disk.names == {file.name}
    assert parse(file.read_text())
    assert lab.assert_equal() == RECORDS


def test_a_full_disk_under_reports_is_refused_before_a_drill_and_loses_no_answer_after_it(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, disk: SmallDisk
) -> None:
    lab = small_lab(source_cluster, target_cluster, topic)
    lab.micro_run()
    config = replace(lab, settings={**lab.settings, "ferry.report.dir": str(disk.folder)}).write(tmp_path)
    command = ("drills", "tabletop", "--json")
    disk.fill()
    refused = ferry(*command, config=config)
    assert refused.code == 2
    assert json.loads(refused.out)["error"]["kind"] == "refused"
    assert str(disk.folder) in refused.err
    assert FULL in refused.err

    disk.fill(but=4)
    lost = ferry(*command, config=config)
    assert lost.code == 1
    body = lost.json("drill")
    assert (body["outcome"], body["report"]) == ("success", None)
    assert str(disk.folder) in lost.err
    assert FULL in lost.err
    assert "Traceback" not in refused.err + lost.err
    assert disk.names == set()

    disk.free()
    kept = ferry(*command, config=config)
    assert (kept.code, kept.json("drill")["report"]["number"]) == (0, 1), kept.err
    assert ferry("reports", "verify", disk.folder, "--chain-only").code == 0


@pytest.mark.timeout(240)
def test_a_full_disk_under_the_report_of_a_switch_fails_no_switch_and_the_report_is_written_later(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path, disk: SmallDisk
) -> None:
    more = {"ferry.report.dir": str(disk.folder)}
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group, more=more)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    clients.produce(source_cluster, 10)
    pair.run(pair.flow)
    config = tmp_path / "pair.properties"
    config.write_text(pair.text)
    disk.fill(but=4)
    command = ("switchover", pair.flow, "--id", "s-1", "--approve-by", "bob", "--quiet-seconds", "1", "--json")
    done = ferry(*command, config=config)
    assert done.code == 0, done.err
    state = done.json("switch")
    assert (state["end"]["outcome"], state["report"]) == ("finished", None)
    assert all(named in done.err for named in ("s-1", str(disk.folder), FULL))
    assert "Traceback" not in done.err
    assert disk.names == set()

    again = ferry("reports", "switch", pair.flow, "s-1", config=config)
    assert (again.code, disk.names) == (1, set())
    assert str(disk.folder) in again.err
    assert FULL in again.err
    disk.free()
    written = ferry(*command, config=config)
    assert (written.code, written.json("switch")["report"]["number"]) == (0, 1)
    report = json.loads((disk.folder / "report-000001.json").read_text())
    assert (report["id"], report["outcome"]) == ("s-1", "success")
    assert ferry("reports", "verify", disk.folder, "--chain-only").code == 0
