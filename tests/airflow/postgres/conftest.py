"""One real Airflow on PostgreSQL for this folder, whose copies wait in the triggerer where they can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from ferry.dev import RunningCluster
from ferry.ports import free_ports
from ferry_airflow.home import LocalHome, prepare
from ferry_airflow.local import guarded
from tests.airflow.conftest import merged
from tests.airflow.parts import Parts
from tests.airflow.postgres.moments import CAUGHT, FOLDER, WANTED
from tests.airflow.rest import Rest
from tests.harness import Lab
from tests.postgres import Postgres, postgres
from tests.spark.jobs import all_gone, connect_server, until

ROOT = Path(__file__).parents[3]

STORED = "stored"
"""The flow whose copies wait in their worker, with the driver as its child."""

WAITING = "waiting"
"""The flow whose copies wait in the triggerer, as a client of Spark Connect."""

FLOWS = (STORED, WAITING)

CONNECTION = "connected"

DAGS = """
from datetime import timedelta

from ferry_airflow.dags import flow_dags
from tests.airflow.postgres.moments import moment

globals().update(
    flow_dags(
        default_args={"deferrable": True, "retry_delay": timedelta(seconds=2), "on_execute_callback": moment}
    )
)
"""

SETTINGS = {
    # Airflow's own 30 s, 300 s and 10 s: how long a test waits until it gives a dead triggerer or worker up.
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The folder's Airflow, its database, and its flows."""

    parts: Parts
    rest: Rest
    database: Postgres
    source: RunningCluster
    target: RunningCluster
    moments: Path

    def lab(self, alias: str) -> Lab:
        """A flow."""
        return lab(self.source, self.target, alias)

    def dag(self, alias: str) -> str:
        """The flow's DAG id."""
        return f"ferry__{alias}__t{alias}"

    def want(self) -> None:
        """Have the next process of a task `copy` wait where it begins, or where it continues."""
        (self.moments / WANTED).touch()

    def kill_caught(self) -> None:
        """Wait for that process, and kill it with the worker that has it."""
        caught = self.moments / CAUGHT
        until(caught.exists, "a process of the task copy")
        task = psutil.Process(int(caught.read_text()))
        worker = task.parent()
        assert worker is not None
        every = [worker, task]
        for process in every:
            process.kill()
        all_gone(every)
        caught.unlink()


def lab(source: RunningCluster, target: RunningCluster, alias: str) -> Lab:
    """A flow that copies the topics whose names begin with its alias, each batch in a chunk of its own."""
    flow = f"{alias}->t{alias}"
    settings = {"ferry.retries": "50", "ferry.schedule": "none", "ferry.chunk.bytes": "1"}
    if alias == WAITING:
        settings["ferry.spark.conn.id"] = CONNECTION
    own = {f"{flow}.{key}": value for key, value in settings.items()}
    # A broker answers before it holds a client back, so a large answer would be followed by a long pause.
    own[f"{alias}.consumer.fetch.max.bytes"] = "100000"
    return Lab(source=source, target=target, alias=alias, topics=(f"{alias}-.*",), settings=own)


@pytest.fixture(scope="package")
def _database() -> Iterator[Postgres]:
    (port,) = free_ports(1)
    with postgres(port) as server:
        yield server


@pytest.fixture(scope="package")
def _spark_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server's address; it has room for the tasks of a client that died, and of the next one."""
    (port,) = free_ports(1)
    with connect_server(tmp_path_factory.mktemp("connect"), port, cores=4) as address:
        yield address


@pytest.fixture(scope="package")
def _stored(
    _database: Postgres,
    _pair: tuple[RunningCluster, ...],
    _spark_connect: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("stored")
    config, dags, moments = folder / "flows.properties", folder / "dags", folder / "moments"
    config.write_text(merged([lab(_pair[0], _pair[1], alias) for alias in FLOWS]))
    dags.mkdir()
    (dags / "flows.py").write_text(DAGS)
    moments.mkdir()
    home = on(_database, prepare(folder / "home", config=config, dags=dags))
    home = replace(
        home,
        environment={
            **home.environment,
            **SETTINGS,
            FOLDER: str(moments),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2,4]"}),
            f"AIRFLOW_CONN_{CONNECTION.upper()}": _spark_connect.replace("sc://", "spark-connect://"),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        },
    )
    for command in (["airflow", "db", "migrate"], ["ferry", "airflow", "setup"]):
        _done(home, command)
    parts = Parts(home=home)
    with guarded(home.path):
        parts.wait_at_work()
        with Rest(home) as rest:
            for alias in FLOWS:
                rest.wait_dag(f"ferry__{alias}__t{alias}", seconds=180)
                rest.pause(f"ferry__{alias}__t{alias}", paused=False)
            yield Stored(parts=parts, rest=rest, database=_database, source=_pair[0], target=_pair[1], moments=moments)


def on(database: Postgres, home: LocalHome) -> LocalHome:
    """The home of an Airflow that has its data in that database."""
    url = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.url}
    return replace(home, environment={**os.environ, **home.environment, **url})


def _done(home: LocalHome, command: list[str]) -> None:
    program = [str(Path(sys.executable).parent / command[0]), *command[1:]]
    done = subprocess.run(program, check=False, capture_output=True, text=True, env=dict(home.environment))
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]


@pytest.fixture
def stored(_stored: Stored, source_cluster: RunningCluster, target_cluster: RunningCluster) -> Iterator[Stored]:
    """The folder's Airflow on PostgreSQL; whole again after the test."""
    assert (source_cluster, target_cluster) == (_stored.source, _stored.target)
    try:
        yield _stored
    finally:
        for name in (WANTED, CAUGHT):
            (_stored.moments / name).unlink(missing_ok=True)
        _stored.database.start()
        _stored.parts.restore()
