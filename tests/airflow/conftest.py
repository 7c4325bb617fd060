"""One real Airflow for this folder over two real clusters; every test has a flow, and with it a DAG, of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.features.observe.acts.textfile import parse
from ferry.features.observe.rules.samples import Values
from ferry.ports import free_ports
from ferry_airflow.home import LocalHome
from ferry_airflow.local import guarded, start
from tests.airflow import planted
from tests.airflow.held import HELD_SECONDS, HeldDirectory, directory_of
from tests.airflow.rest import Rest
from tests.airflow.statsd import Listener
from tests.harness import Lab, create_topic
from tests.spark.jobs import SMALL_CHUNKS, connect_server, until

ROOT = Path(__file__).parents[2]

MOVED = ("swap", "shift")
"""Flows whose clients are at work while they are switched; a hook sends them."""

RESUMED = "resumed"
"""The flow of a switch that is killed and continued, without a hook."""

SWITCHED = (*MOVED, "refrain", "rehearsed", RESUMED)
"""Flows that have a way back, along which clients may be switched."""

RESTARTED = "restarted"
"""The flow that is at work while parts of Airflow are killed."""

FLOWS = (
    *("plain", "dry", "narrow", "refused", "struck", "killed", "cleared", "unconnected", "wrongly", "connect"),
    *("severed", "continuous", "backfill", "verified", "watched", "late", "paged", "arrived", "grouped", "hourly"),
    *("between", "kept"),
    *(*SWITCHED, *planted.ALIASES, RESTARTED),
)
"""Aliases of the flows' sources; the target of each is `t` + alias."""

OF_EXTRA = (
    *("plain", "dry", "narrow", "killed", "cleared", "unconnected", "wrongly", "connect", "severed", "continuous"),
    *("arrived", "grouped", "hourly", "kept", "rehearsed", *MOVED),
)
"""Those of FLOWS whose tests `make test` leaves out: each would be seven DAGs that Airflow reads and keeps."""

BY_ITSELF = "continuous"
"""The flow that its schedule starts, without a trigger; paused but for its test."""

BY_LAG = "arrived"
"""The flow that its lag starts, and whose copies start a DAG; paused but for its test."""

GROUPED = "grouped"
"""The flow whose runs are task groups of the DAGs in docs/operators.md, too."""

BY_HOUR = "hourly"
"""The flow whose copies start a partitioned DAG."""

LATE = "late"
"""The flow whose one run never succeeds: it begins when Airflow has started, for its deadline takes a minute."""

SPARK_CONNECT = "spark_connect_test"

PARSED_SELDOM = {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600"}
"""A hundred DAGs and more that do not change; by Airflow's 30 s their files are read again beside all tests."""

SHOWN = {"orders_arrived": BY_LAG, "orders_by_hour": BY_HOUR}
"""DAGs of docs/airflow.md, and the flow that each is made for here."""

SHOWN_GROUP = 'ferry_task_group("primary->backup", group_id="orders")'
"""The task group of the DAG in docs/operators.md."""

SHOWN_HOURS = 'ferry_task_group("primary->backup", group_id="hours")'
"""That of the DAG there whose copies start a partitioned one."""

RETRIED_SOON = """

def _soon():
    from datetime import timedelta

    for name, dag in list(globals().items()):
        if name.startswith("ferry__"):
            for task in dag.tasks:
                task.retry_delay = timedelta(seconds=2)


_soon()
"""
"""The end of the DAG file: a task of a flow that is tried again waits for two seconds in place of thirty."""

ASKED_SECONDS = 400
"""Until a person is asked: tasks that read the DAG file; a wait for a condition, however busy the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The session's Airflow and its flows."""

    home: LocalHome
    rest: Rest
    source: RunningCluster
    target: RunningCluster
    metrics: Listener
    directories: Mapping[str, HeldDirectory]
    """Where the clients of each of MOVED are to be."""

    def lab(self, alias: str) -> Lab:
        """The flow of one test."""
        return lab(self.source, self.target, alias)

    def dag(self, alias: str) -> str:
        """The flow's DAG id."""
        return f"ferry__{alias}__t{alias}"

    def verify_dag(self, alias: str) -> str:
        """The id of the DAG that compares what the flow has copied."""
        return f"ferry_verify__{alias}__t{alias}"

    def told(self, alias: str) -> list[dict[str, Any]]:
        """What a flow's callback has written down."""
        file = self.home.path.parent / f"{alias}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def metrics_of(self, alias: str) -> Values:
        """What the flow's runs have left for Prometheus."""
        return parse((self.home.path.parent / "metrics" / f"ferry__{alias}__t{alias}.prom").read_text())

    def asked(self, dag: str, conf: Mapping[str, object]) -> str:
        """Trigger a DAG that asks a person, and wait until it does; the run."""
        run = self.rest.trigger(dag, conf)
        self.rest.wait_task(dag, run, "approve", ("awaiting_input",), seconds=ASKED_SECONDS)
        # Airflow 3.3.2 fails a task that is answered before the scheduler has heard that it began to wait.
        heard = f"Received executor event with state success for task instance TaskInstanceKey(dag_id='{dag}'"
        heard += f", task_id='approve', run_id='{run}'"
        until(lambda: heard in (self.home.log_folder / "scheduler.log").read_text(), "the question")
        return run

    def run(self, alias: str, conf: Mapping[str, object] | None = None) -> tuple[str, str]:
        """Trigger the flow's DAG and wait for the end; run id and state."""
        run = self.rest.trigger(self.dag(alias), conf)
        return run, self.rest.wait_run(self.dag(alias), run)


def lab(source: RunningCluster, target: RunningCluster, alias: str) -> Lab:
    """A flow that copies the topics whose names begin with its alias."""
    settings = {
        "plain": {},
        "kept": {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"},
        # Nothing is tried again that another try meets again.
        "refused": {
            "ferry.retries": "2",
            "ferry.guard.foreign.writer": "fail, skip:refused-let",
            "ferry.transforms": "halved",
            "ferry.transform.halved.topics": "refused-halved",
            "ferry.transform.halved.where": "offset % 2 = 0",
        },
        "struck": {**SMALL_CHUNKS, "ferry.retries": "1"},
        "killed": SMALL_CHUNKS,
        RESTARTED: {"ferry.chunk.bytes": "1", "ferry.retries": "50"},
        "unconnected": {"ferry.spark.conn.id": "no_such_connection"},
        "wrongly": {"ferry.spark.conn.id": "kafka_not_spark"},
        "connect": {"ferry.spark.conn.id": SPARK_CONNECT},
        "severed": {"ferry.spark.conn.id": SPARK_CONNECT, **SMALL_CHUNKS},
        BY_ITSELF: {"ferry.schedule": "@continuous"},
        BY_LAG: {"ferry.schedule.lag.records": "1000", "ferry.schedule.lag.every.seconds": "2"},
        "verified": {
            "ferry.verify": "receipt",
            **told("hear", "verified"),
            "ferry.metrics.folder": "FOLDER/metrics",
        },
        BY_HOUR: {"ferry.airflow.assets": "partitioned"},
        "between": {"ferry.groups.schedule": "none", "groups": "between-.*"},
        "rehearsed": {"ferry.report.dir": "FOLDER/reports"},
        **{moved: {"ferry.report.dir": f"FOLDER/moves-{moved}"} for moved in MOVED},
        "shipped": {"ferry.spark.conn.id": SPARK_CONNECT},
        "watched": {"ferry.rpo.seconds": "0", **told("hear", "watched"), "ferry.metrics.folder": "FOLDER/metrics"},
        # Its last time was New Year's Day, so it runs once, at once; and its times are a minute apart.
        LATE: {
            "ferry.schedule": "0,1 0 1 1 *",
            "ferry.alert.late.intervals": "1",
            **told("Hearing", LATE, said="{{ ferry_alert.flow }}: {{ ferry_alert.sentence }}"),
        },
    }.get(alias, {})
    flow = f"{alias}->t{alias}"
    own = {
        f"{flow}.{key}": value for key, value in {"ferry.retries": "0", "ferry.schedule": "none", **settings}.items()
    }
    back = f"t{alias}->{alias}"
    if alias in SWITCHED:
        own |= {f"{back}.enabled": "true", f"{back}.topics": f"{alias}-.*", f"{back}.ferry.schedule": "none"}
    if alias in (*MOVED, RESUMED):
        own |= {f"{flow}.groups": f"{alias}-.*", f"{back}.groups": f"{alias}-.*"}
    return Lab(source=source, target=target, alias=alias, topics=(f"{alias}-.*",), settings=own)


def told(name: str, alias: str, **more: str) -> dict[str, str]:
    """The callback `tests.airflow.heard.name`; FOLDER is put in when the file is written."""
    arguments = json.dumps({"file": f"FOLDER/{alias}.jsonl", **more})
    return {"ferry.alert.callback": f"tests.airflow.heard.{name}", "ferry.alert.callback.arguments": arguments}


@pytest.fixture(scope="package")
def _connect_ports() -> list[int]:
    return free_ports(2)


@pytest.fixture(scope="package")
def _connect_port(_connect_ports: list[int]) -> int:
    return _connect_ports[0]


@pytest.fixture
def spark_connect(_connect_ports: list[int], tmp_path: Path) -> Iterator[str]:
    """A running Spark Connect server, where the connection SPARK_CONNECT points; its address."""
    port, ui = _connect_ports
    with connect_server(tmp_path, port, ui=ui) as address:
        yield address


@pytest.fixture
def connect_page(_connect_ports: list[int]) -> str:
    """The address of that server's pages."""
    return f"http://127.0.0.1:{_connect_ports[1]}"


@pytest.fixture(scope="package")
def _metrics() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener


@pytest.fixture(scope="package")
def _directories(_pair: tuple[RunningCluster, ...]) -> Iterator[dict[str, tuple[HeldDirectory, str]]]:
    """The directory of the clients of each of MOVED, and the URL of its hook."""
    found = {alias: directory_of(alias, *_pair) for alias in MOVED}
    with ExitStack() as served:
        yield {alias: (directory, served.enter_context(directory.served())) for alias, directory in found.items()}


@pytest.fixture(scope="package")
def _aliases(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The flows of the tests that run."""
    if any(item.get_closest_marker("extra") for item in request.session.items):
        return FLOWS
    return tuple(alias for alias in FLOWS if alias not in OF_EXTRA)


@pytest.fixture(scope="package")
def _airflow(
    _aliases: tuple[str, ...],
    _pair: tuple[RunningCluster, ...],
    _connect_port: int,
    _metrics: Listener,
    _directories: dict[str, tuple[HeldDirectory, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalHome]:
    create_topic(_pair[0], "of-no-flow")
    # LATE is refused because none of the source's topics is its own. Its ledger is there before its deadline passes.
    assert lab(_pair[0], _pair[1], LATE).micro_run().refusals
    folder = tmp_path_factory.mktemp("airflow")
    config = folder / "flows.properties"
    text = merged([lab(_pair[0], _pair[1], alias) for alias in _aliases])
    for moved, (_, url) in _directories.items() if set(MOVED) <= set(_aliases) else ():
        for flow in (f"{moved}->t{moved}", f"t{moved}->{moved}"):
            text += f"{flow}.ferry.switch.redirect.url = {url}\n"
            text += f"{flow}.ferry.switch.redirect.timeout.seconds = {HELD_SECONDS}\n"
    config.write_text(planted.with_secrets(text.replace("FOLDER", str(folder)), _pair[1], folder))
    (folder / "metrics").mkdir()
    os.environ["AIRFLOW_CONN_KAFKA_NOT_SPARK"] = "kafka://127.0.0.1:1"
    os.environ[f"AIRFLOW_CONN_{SPARK_CONNECT.upper()}"] = f"spark-connect://127.0.0.1:{_connect_port}"
    with guarded(folder / "home"):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (planted.environment(folder) | _metrics.environment | PARSED_SELDOM).items():
                patch.setenv(name, value)
            patch.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")
            # Airflow's processes find the callbacks of the tests.
            patch.setenv(
                "PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
            )
            home = start(folder / "home", config=config, dags=dag_folder(folder, _aliases)).home
            # With all that its processes were given, so that one of them can be started again.
            whole = replace(home, environment={**os.environ, **home.environment})
        yield whole


def dag_folder(folder: Path, aliases: tuple[str, ...]) -> Path:
    """The DAG files of the checkout, and those that the documents show for authors of other DAGs."""
    dags = Path(shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__")))
    with next(dags.glob("*.py")).open("a") as flows:
        flows.write(RETRIED_SOON)
    for name, alias in SHOWN.items():
        if alias in aliases:  # else the file has no such flow
            text = _with_names(example("airflow", f"def {name}("), alias, "orders")
            (dags / f"{name}.py").write_text(text)
    if BY_HOUR in aliases:
        text = _with_names(example("operators", SHOWN_HOURS), BY_HOUR, "lines")
        (dags / "copy_hours.py").write_text(text)
    if GROUPED in aliases:
        text = example("operators", SHOWN_GROUP).replace("primary->backup", f"{GROUPED}->t{GROUPED}")
        text = text.replace('schedule="@hourly"', "schedule=None")
        (dags / "copy_orders.py").write_text(text)
        skipped = 'raise AirflowSkipException("not today")'
        text = text.replace("copy_orders", "skip_orders").replace('print("the source is complete")', skipped)
        (dags / "skip_orders.py").write_text(f"from airflow.sdk.exceptions import AirflowSkipException\n{text}")
    return dags


def _with_names(text: str, alias: str, topic: str) -> str:
    """A program of the documents with a flow and a topic of the tests."""
    return text.replace("primary->backup", f"{alias}->t{alias}").replace('"orders"', f'"{alias}-{topic}"')


def example(page: str, known: str) -> str:
    """The program in a document that has `known` in it."""
    texts = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    found: str = next(text for text in texts if known in text and "import" in text)
    return found


def merged(labs: list[Lab]) -> str:
    """Several flows in one file: what differs per flow is written per flow."""
    lines = [f"clusters = {', '.join(f'{lab.alias}, t{lab.alias}' for lab in labs)}"]
    for each in labs:
        for line in each.text.splitlines():
            key, _, value = line.partition(" = ")
            if key == "topics":
                lines.append(f"{each.alias}->t{each.alias}.topics = {value}")
            elif key != "clusters" and each.alias in key:
                lines.append(line)
    lines += ["ferry.approve.own = true"]  # there is one user
    lines += ["heartbeats.replication.enabled = false", "replication.factor = 1", "tasks.max = 2"]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="package")
def _rest(_airflow: LocalHome, _aliases: tuple[str, ...]) -> Iterator[Rest]:
    with Rest(_airflow) as rest:
        for alias in _aliases:
            rest.wait_dag(f"ferry__{alias}__t{alias}", seconds=180)
            rest.pause(f"ferry__{alias}__t{alias}", paused=alias in (BY_ITSELF, BY_LAG))
        yield rest


@pytest.fixture
def flows(
    _airflow: LocalHome,
    _rest: Rest,
    _metrics: Listener,
    _directories: dict[str, tuple[HeldDirectory, str]],
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
) -> Flows:
    """The flows under test."""
    return Flows(
        home=_airflow,
        rest=_rest,
        source=source_cluster,
        target=target_cluster,
        metrics=_metrics,
        directories={alias: directory for alias, (directory, _) in _directories.items()},
    )
