"""The same job on a standalone cluster, whose executors die, and over a Spark Connect server, which nobody stops."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.config.login.connection import AirflowConnection, connection_properties
from ferry.config.settings import load
from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.ports import free_ports
from ferry.run.spark.credentials_pipe import emptied, offered
from ferry.run.spark.package import zip_package
from tests.airflow import planted
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, whole_ledger
from tests.quotas import held
from tests.spark.jobs import (
    ROOT,
    SLOW_RATE,
    Standalone,
    connect_server,
    copying,
    plan,
    random_point,
    run_connected,
    slow_lab,
    standalone,
    submit,
    until,
)
from tests.spark.notebook import notebook


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers."""
    with standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the Spark Connect server logs."""
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def server(server_folder: Path) -> Iterator[str]:
    """A Spark Connect server."""
    with connect_server(server_folder, free_ports(1)[0]) as address:
        yield address


def test_dead_executors_are_harmless(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    spark: Standalone,
    rng: random.Random,
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic)
    plan(lab, "killed")
    package = zip_package(tmp_path / "ferry.zip")
    arguments = ("--py-files", str(package), "--executor-memory", "512m")
    job = submit(lab, "killed", tmp_path, master=spark.url, arguments=arguments)
    points = sorted([random_point(rng), random_point(rng)])
    with held(lab, SLOW_RATE):
        copying(lab, job, points[0])
        executors = spark.executors()
        assert len(executors) == 2
        executors[0].kill()
        copying(lab, job, points[1])
        executors[1].kill()
    assert job.wait() == 0, job.text()
    with lab.runs() as runs:
        assert runs.report("killed").state is RunState.SUCCESS
    assert lab.assert_equal() == 24_000


def test_the_zipped_package_is_all_of_ferry(tmp_path: Path) -> None:
    package = zip_package(tmp_path / "ferry.zip")
    script = "import ferry.run.spark.stage; print(ferry.run.spark.stage.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(package)!r}); {script}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.startswith(str(package))
    assert zip_package(tmp_path / "again.zip").read_bytes() == package.read_bytes()


def test_a_job_runs_over_spark_connect(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, server: str
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic, records=4_000)
    plan(lab, "connected")
    job = run_connected(lab, "connected", tmp_path, server)
    assert job.wait() == 0, job.text()
    assert {receipt.slot for receipt in lab.receipts()} == {0, 1}
    assert lab.assert_equal() == 4_000
    verified = subprocess.run(
        [
            sys.executable,
            ROOT / "jobs" / "verify_job.py",
            "--config",
            lab.write(tmp_path),
            "--flow",
            str(lab.flow.flow),
        ],
        env={**os.environ, "SPARK_REMOTE": server},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, "in 2 tasks" in verified.stdout) == (0, True), verified.stdout + verified.stderr
    assert "equal, 4000 records, 0 differences" in verified.stdout


def test_over_spark_connect_transformed_topics_are_refused_alone(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, server: str
) -> None:
    masked, plain = f"{topic}-masked", f"{topic}-plain"
    for name in (masked, plain):
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, numbered(10))
    settings = {"ferry.transforms": "one", "ferry.transform.one.topics": masked, "ferry.transform.one.redact": "$.a"}
    lab = Lab(
        source=source_cluster, target=target_cluster, alias=new_alias(), topics=(masked, plain), settings=settings
    )
    plan(lab, "connected")
    job = run_connected(lab, "connected", tmp_path, server)
    assert job.wait() == 2, job.text()
    with lab.runs() as runs:
        (refusal,) = runs.report("connected").refusals
    assert refusal.topic == masked
    assert "written on Spark Connect" in refusal.message
    assert {receipt.source.topic for receipt in lab.receipts()} == {plain}


def test_records_are_read_over_spark_connect(
    source_cluster: RunningCluster, topic: str, tmp_path: Path, server: str
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(100, partitions=2))
    options = {"kafka.bootstrap.servers": source_cluster.bootstrap}
    with notebook(tmp_path / "notebook.log", {"SPARK_REMOTE": server}) as book:
        found = book.read(topic, options, "partition = 1 AND offset >= 40")
        assert [(row["partition"], row["offset"]) for row in found.rows] == [(1, offset) for offset in range(40, 50)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_killed_client_of_spark_connect_is_harmless(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    server: str,
    server_folder: Path,
    number: signal.Signals,
    rng: random.Random,
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic)
    plan(lab, "killed")
    with held(lab, SLOW_RATE):
        job = run_connected(lab, "killed", tmp_path, server)
        copying(lab, job, random_point(rng))
        job.process.send_signal(number)
        code = job.wait()
    if number is signal.SIGTERM:
        assert code == 143, job.text()
        with lab.runs() as runs:
            until(lambda: not whole_ledger(runs).open, "the end of the open chunks")
            kept = len(lab.receipts())
            assert runs.report("killed").state is RunState.PARTIAL
        assert len(lab.receipts()) == kept, "tasks went on after the client was told to end"
        log = (server_folder / "connect.log").read_text()
        assert "SPARK_JOB_CANCELLED" in log
        assert "ConnectionOptions" not in log, "the server's log shows connection data"
    again = run_connected(lab, "killed", tmp_path, server)
    assert again.wait() == 0, again.text()
    assert lab.assert_equal() == 24_000


def test_connection_data_reaches_the_executors_and_nothing_that_spark_keeps(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    spark: Standalone,
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic, records=800)
    plan(lab, "handed")
    for name, value in planted.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    config = tmp_path / "handed.properties"
    config.write_text(planted.with_secrets(lab.text, target_cluster, tmp_path, {lab.alias: "kafka_west"}))
    form = planted.connection("kafka_west", source_cluster)
    settings = connection_properties(
        AirflowConnection(
            conn_id="kafka_west",
            conn_type=form["conn_type"],
            host=form["host"],
            login=form["login"],
            password=form["password"],
            extra=json.loads(form["extra"]),
        )
    )
    flow = load(config, lambda _: settings).flow(str(lab.flow.flow))
    package = zip_package(tmp_path / "ferry.zip")
    with planted.Watch(only_new=True) as watch, offered(flow, tmp_path / "clients") as pipe:
        job = submit(
            lab,
            "handed",
            tmp_path,
            master=spark.url,
            arguments=("--py-files", str(package), "--executor-memory", "512m"),
            job=("--config", str(config), "--clients", str(pipe)),
            environment=emptied(flow, os.environ),
        )
        assert job.wait() == 0, job.text()
    assert lab.assert_equal() == 800
    assert watch.carried == set()
    assert not planted.found([("output", job.output.read_bytes())])
    events = list(planted.files(tmp_path / "events"))
    assert any(b"SparkListenerJobEnd" in content for _, content in events)
    assert not planted.found(events)
    kept = [piece for folder in tmp_path_factory.getbasetemp().glob("standalone*") for piece in planted.files(folder)]
    assert any(name.endswith("stderr") for name, _ in kept), "the executors' folders are among them"
    assert not planted.found(kept)
