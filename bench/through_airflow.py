"""Micro-runs through a real Airflow: four processes, LocalExecutor, and Spark by spark-submit or Spark Connect.

A run's time is from the trigger by the REST API to the end that the same API shows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from usage import Usage

from ferry.ports import LOOPBACK, free_ports
from ferry.run.spark.submit import submit_conf
from ferry_airflow.local import guarded, start
from ferry_airflow.rest import AirflowRest

HERE = Path(__file__).resolve().parent
CONNECT = "bench_connect"
PATIENCE_S = 120.0

SETTINGS = """\
clusters = {aliases}, target
target.bootstrap.servers = {target}
replication.factor = 1
tasks.max = 2
ferry.schedule = none
"""
FLOW = """\
{alias}.bootstrap.servers = {source}
{alias}->target.enabled = true
{alias}->target.topics = {topic}
{alias}->target.ferry.spark.conn.id = {connection}
"""


def configuration(path: Path, source: str, target: str, topic: str, connections: dict[str, str]) -> Path:
    """Write a file with one flow for each alias of `connections`, which has its Spark connection."""
    flows = [
        FLOW.format(alias=alias, source=source, topic=topic, connection=connection)
        for alias, connection in connections.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SETTINGS.format(aliases=", ".join(connections), target=target) + "".join(flows))
    return path


@contextmanager
def airflow(home: Path, config: Path, aliases: list[str], connect_port: int) -> Iterator[AirflowRest]:
    """Start a local Airflow, and wait until the DAGs of these flows are read and unpaused."""
    os.environ[f"AIRFLOW_CONN_{CONNECT.upper()}"] = f"spark-connect://{LOOPBACK}:{connect_port}"
    with guarded(home):
        started = start(home, config=config, dags=HERE.parent / "dags").home
        with AirflowRest(started) as rest:
            for alias in aliases:
                rest.wait_dag(dag_of(alias))
                rest.pause(dag_of(alias), paused=False)
            yield rest


@contextmanager
def connect_server(folder: Path) -> Iterator[int]:
    """Start a Spark Connect server with two cores, and return its port."""
    (port,) = free_ports(1)
    conf = {
        **submit_conf(HERE.parent / ".spark"),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.log.level": "INFO",
    }
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master=local[2,4]"]
    command += [f"--conf={name}={value}" for name, value in conf.items()]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK}
    log = folder / "connect.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder)
    try:
        until = time.monotonic() + PATIENCE_S
        while "Spark Connect server started" not in log.read_text():
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < until, "the Spark Connect server does not start"
            time.sleep(0.1)
        yield port
    finally:
        tree = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
        for member in tree:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait(15)


def dag_of(alias: str) -> str:
    """Return the DAG id of a flow of the file."""
    return f"ferry__{alias}__target"


def triggered(rest: AirflowRest, alias: str) -> Usage:
    """Trigger a run and wait for its end, which must be a success."""
    began = time.monotonic()
    run = rest.trigger(dag_of(alias))
    state = rest.wait_run(dag_of(alias), run, seconds=PATIENCE_S)
    wall = time.monotonic() - began
    assert state == "success", rest.log(dag_of(alias), run, "copy")
    return Usage(wall=wall, cpu=0.0)
