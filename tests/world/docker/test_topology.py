"""The topology of compose.yaml, natively: a flow copied by executors of a Spark cluster, started through Airflow."""

from __future__ import annotations

import getpass
import subprocess
from collections.abc import Iterator

import pytest

from ferry.config.settings import load
from ferry.ledger.receipts import receipts
from ferry.run.micro_run import MicroRuns
from ferry_airflow.rest import AirflowRest
from tests.airflow import planted
from tests.airflow.collector import Collector
from tests.harness import create_topic, numbered, producer, read_topic, send, whole_ledger
from tests.postgres import postgres_program
from tests.spark.jobs import as_, until
from tests.world.docker.stack import services
from tests.world.docker.topology import SPARK, Stack, running

pytestmark = pytest.mark.timeout(600)

DAG = "ferry__primary__backup"
PARTITIONS = 4
RECORDS = 20_000


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Who hears Airflow's metrics."""
    with Collector() as found:
        yield found


@pytest.fixture(scope="module")
def stack(collector: Collector) -> Iterator[Stack]:
    """All services."""
    with running(collector.environment) as found:
        yield found


def test_a_flow_is_copied_in_cluster_mode_and_its_logins_are_seen_nowhere(
    stack: Stack, collector: Collector, topic: str
) -> None:
    create_topic(stack.primary, topic, PARTITIONS)
    send(producer(stack.primary), topic, numbered(RECORDS, partitions=PARTITIONS, size=300))
    stack.wait_healthy(*services().keys() - {"airflow-init"})
    hidden = {
        "primary": stack.secret("kafka_primary_password"),
        "backup": stack.secret("kafka_backup_password"),
        "postgres": stack.secret("postgres_password"),
        "fernet": stack.secret("airflow_fernet_key"),
        "spark": stack.secret("spark_defaults").split()[-1],
    }
    with planted.Watch(hidden) as watch, AirflowRest(stack.airflow) as rest:
        rest.wait_dag(DAG, seconds=120)
        rest.pause(DAG, paused=False)
        run = rest.trigger(DAG)
        state = rest.wait_run(DAG, run)
        logs = {task: rest.log(DAG, run, task) for task in ("plan", "copy", "checkpoint", "report")}
    assert state == "success", logs
    assert "--master spark://" in logs["copy"]
    assert "--py-files" in logs["copy"]
    # The task's process exports what it has told before it ends: minutes before the next export would be due.
    flow = {"source": "primary", "target": "backup", "lane": "live"}
    told = collector.of(**flow, topic=f"primary.{topic}")
    assert (told["airflow.ferry.record-count"], told["airflow.ferry.lag-records"]) == (RECORDS, 0), told
    assert told["airflow.ferry.replication-latency-ms-max"] >= told["airflow.ferry.record-age-ms-max"] > 0
    assert collector.of(**flow)["airflow.ferry.lag-most-records"] == 0

    until(lambda: collector.event(f"{DAG}.copy", "COMPLETE") is not None, "OpenLineage's event")
    event = collector.event(f"{DAG}.copy", "COMPLETE")
    assert event is not None
    datasets = {side: {one["name"]: one for one in event[side]} for side in ("inputs", "outputs")}
    written = datasets["outputs"][f"primary.{topic}"]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == RECORDS
    assert len(written["facets"]["ferry_ranges"]["partitions"]) == PARTITIONS
    assert topic in datasets["inputs"]

    source, target = read_topic(stack.primary.bootstrap, topic), read_topic(stack.backup.bootstrap, f"primary.{topic}")
    assert sum(len(rows) for rows in target.values()) == RECORDS
    assert {number: [row[1:] for row in rows] for number, rows in target.items()} == {
        number: [row[1:] for row in rows] for number, rows in source.items()
    }
    with MicroRuns(load(stack.flows).flow("primary->backup")) as runs:
        assert {receipt.slot for receipt in receipts(whole_ledger(runs))} == {0, 1}
    executors = {name: list(stack.work(name).glob("app-*/*/stderr")) for name in SPARK[1:]}
    assert all(len(found) == 1 for found in executors.values()), "an executor on each worker"
    assert len({found[0].parts[-3] for found in executors.values()}) == 1, "of one job"

    owners = {path.owner() for name in ("work", "logs", "airflow") for path in (stack.folder / name).rglob("*")}
    assert owners == {stack.user or getpass.getuser()}, "no service of ours is root"

    # By design a worker hands its executors Spark's own secret in their environment; nothing else is anywhere.
    assert watch.carried <= {("spark", "environ", "other"), ("spark", "environ", "spark")}
    assert any("spark-submit" in command or "SparkSubmit" in command for command in watch.seen)
    pages = list(planted.pages(*(f"http://{stack.addresses[place]}" for place in stack.addresses if _is_page(place))))
    assert any(DAG.split("__")[1] in url or b"ferry primary" in content for url, content in pages), "the job's page"
    kept = [piece for name in ("work", "logs", "airflow") for piece in planted.files(stack.folder / name)]
    kept += [(path.name, path.read_bytes()) for path in stack.folder.glob("*.log")]
    kept += [(task, text.encode()) for task, text in logs.items()]
    assert not planted.found([*pages, *kept, ("database", _dump(stack))], hidden)


def test_the_commands_of_the_page_work_there(stack: Stack) -> None:
    environment = stack.environment("airflow-scheduler")
    for arguments in (["lag"], ["verify", "primary->backup"]):
        command = [str(stack.programs / "ferry"), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, **as_(stack.user))
        assert done.returncode == 0, done.stdout + done.stderr


def _is_page(place: str) -> bool:
    return place.startswith("spark-") and not place.endswith(":7077")


def _dump(stack: Stack) -> bytes:
    """Airflow's database."""
    environment = {"PGPASSWORD": stack.secret("postgres_password"), "PATH": "/usr/bin:/bin"}
    host, _, port = stack.addresses["postgres:5432"].partition(":")
    command = [postgres_program("pg_dump"), "-h", host, "-p", port, "-U", "airflow", "airflow"]
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout
