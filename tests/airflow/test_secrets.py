"""Planted secrets reach the brokers, and nobody else: no process, log, database, ledger or record of Spark's.

What cannot be seen from here is the memory of the Spark processes; docs/airflow.md says who can.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow import planted
from tests.airflow.conftest import Flows
from tests.harness import Row, create_topic, numbered, producer, read_topic, send

RECORDS = 2_000
CONTROL = ("variable", "environ", "other")
"""The user gave Airflow this variable; that the watch finds it there shows that it looks."""


@pytest.fixture
def connected(flows: Flows) -> Flows:
    """The flows, with the connection that two of them stand on."""
    known = flows.rest.ask("GET", "/api/v2/connections?limit=100")["connections"]
    if not any(made["connection_id"] == "kafka_planted" for made in known):
        flows.rest.ask("POST", "/api/v2/connections", planted.connection("kafka_planted", flows.source))
    return flows


def test_a_run_by_spark_submit_shows_no_secret(connected: Flows) -> None:
    flows = connected
    said = run(flows, "planted", carried={CONTROL}, commands=("SparkSubmit", "copy_job.py", "pyspark.daemon"))
    assert "Spark-Submit" in said
    events = list(planted.files(flows.home.path.parent / "events"))
    assert any(b"ferry planted->tplanted" in content for _, content in events), "Spark wrote an event log"
    assert not planted.found(events)


def test_a_run_over_spark_connect_shows_no_secret(
    connected: Flows,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    connect_page: str,
) -> None:
    flows = connected
    (tmp_path / "server").mkdir()
    # The server's own event log, beside its log of level INFO.
    monkeypatch.setenv(planted.LOGGED, planted.environment(tmp_path / "server")[planted.LOGGED])
    request.getfixturevalue("spark_connect")
    said = run(flows, "shipped", carried={CONTROL}, commands=())
    assert "Spark-Submit" not in said
    server = list(planted.files(tmp_path))
    assert any(b"SparkListenerJobEnd" in content for _, content in server), "the server wrote an event log"
    assert not planted.found(server)
    shown = list(planted.pages(connect_page, f"{connect_page}/api/v1/applications"))
    for what, where in ((b"spark.connect.grpc.binding.port", "/environment/"), (b"MapInArrow", "/SQL/execution/")):
        assert any(where in url and what in content for url, content in shown), sorted(url for url, _ in shown)
    assert not planted.found(shown)


def run(flows: Flows, alias: str, *, carried: set[tuple[str, str, str]], commands: tuple[str, ...]) -> str:
    """Run a flow and look everywhere but at Spark's own records; the log of `copy`."""
    create_topic(flows.source, f"{alias}-t", 2)
    send(producer(flows.source), f"{alias}-t", numbered(RECORDS, partitions=2))
    dag = flows.dag(alias)
    with planted.Watch() as watch:
        number, state = flows.run(alias)
        assert state == "success", flows.rest.log(dag, number, "report")
        said = {task: flows.rest.log(dag, number, task) for task in flows.rest.states(dag, number)}
    assert flows.lab(alias).assert_equal() == RECORDS
    assert watch.carried == carried
    for command in commands:
        assert any(command in seen for seen in watch.seen), f"{command} was not seen: {watch.seen}"

    config = flows.home.path.parent / "flows.properties"
    assert planted.found([("config", config.read_bytes())]) == {("literal", "config"), ("key password", "config")}
    assert not planted.found((task, text.encode()) for task, text in said.items())
    assert not planted.found(planted.files(flows.home.path)), "logs of tasks and processes, settings, database"
    database = flows.home.path / "airflow.db"
    tables = list(planted.cells(database))
    assert {"connection", "serialized_dag", "task_instance", "rendered_task_instance_fields"} <= {t for t, _ in tables}
    assert "xcom" in planted.tables(database), "tasks leave it empty; were it called otherwise, nothing looked there"
    assert not planted.found(tables)
    assert not planted.found(asked(flows))
    assert not planted.found(records(flows, f"ferry-ledger.{alias}.internal"))
    return said["copy"]


def asked(flows: Flows) -> Iterator[tuple[str, bytes]]:
    """What Airflow's API answers about the connection."""
    for path in ("/api/v2/connections?limit=100", "/api/v2/connections/kafka_planted"):
        yield path, str(flows.rest.ask("GET", path)).encode()


def records(flows: Flows, topic: str) -> Iterator[tuple[str, bytes]]:
    """Every record of a topic at the target, aborted ones included."""
    rows: list[Row] = [
        row
        for partition in read_topic(flows.target.bootstrap, topic, isolation="read_uncommitted").values()
        for row in partition
    ]
    assert rows, f"{topic} is empty"
    for row in rows:
        yield topic, b"\n".join(part for part in row[1:3] if part is not None)
