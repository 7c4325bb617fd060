"""Data schedules both ways, in a real Airflow: lag starts a run, and what that copied starts the documents' own DAG."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from airflow.partition_mappers.temporal import StartOfHourMapper
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Asset, Connection
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.context import OutletEventAccessor

from ferry.clock import wall_ms
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.ledger.topic_ranges import TopicRanges, topic_ranges
from ferry.model import Segment, TimeWindow
from ferry.plan.lag import look_at
from ferry.plan.options import RunOptions
from ferry.plan.rules.lag import is_caught_up
from ferry_airflow import window_steps
from ferry_airflow.assets import event_extra, flow_alias, hour_key, namespace, publish, topic_asset
from ferry_airflow.backfill import backfill_dag
from ferry_airflow.copied import copied_asset
from ferry_airflow.rest import ENDED, Json
from ferry_airflow.window_steps import Backfill
from tests.airflow.conftest import ASKED_SECONDS, BY_HOUR, BY_LAG, Flows
from tests.harness import Message, create_topic, numbered, producer, send
from tests.pure.decide.test_deal import receipt
from tests.pure.decide.values import RECEIPT, redealt
from tests.spark.jobs import until
from tests.tiers import ANSWER_S

READER = "orders_arrived"
SOURCE, TARGET = BY_LAG, f"t{BY_LAG}"
TOPIC = f"{BY_LAG}-orders"
FILE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
LAG = f"x-ferry-lag://{SOURCE}/{TARGET}"


@pytest.mark.timeout(900)  # Airflow reads a DAG file every half minute; then a run with Spark, and a DAG behind it
def test_lag_starts_a_run_and_what_it_copied_starts_a_dag_that_is_told_the_ranges(flows: Flows) -> None:
    create_topic(flows.source, TOPIC, 2)
    send(producer(flows.source), TOPIC, numbered(1_100, partitions=2))
    dag = flows.dag(BY_LAG)
    flows.rest.wait_dag(READER)
    try:
        for one in (READER, dag):
            flows.rest.pause(one, paused=False)
            flows.rest.parse_again(one)  # who watches an asset is settled when the files of its DAGs are read
        until(lambda: bool(asset(flows, LAG)["watchers"]), "Airflow's look at the lag", 180)
        until(lambda: bool(flows.rest.runs(dag)), "the run that the lag calls for")
        (run,) = flows.rest.runs(dag)
        name = str(run["dag_run_id"])
        assert flows.rest.wait_run(dag, name, seconds=300) == "success", flows.rest.log(dag, name, "copy")
        until(lambda: any(one["state"] in ENDED for one in flows.rest.runs(READER)), f"a run of {READER}")
        assert len(flows.rest.runs(dag)) == 1, "what is copied calls for no other run"
    finally:
        for one in (READER, dag):
            flows.rest.pause(one, paused=True)
    assert run["run_type"] == "asset_triggered"
    lag = f"airflow.ferry.lag-records,lane=live,source={SOURCE},target={TARGET},topic={SOURCE}.{TOPIC}"
    told = [line.removeprefix(lag) for line in flows.metrics.of(lag)]
    assert ":1100|g" in told, "the triggerer tells what it sees between runs"
    assert told[-1] == ":0|g"
    (called,) = events(flows, LAG)
    told = called["extra"]["payload"]
    assert (told["flow"], told["records"], told["partitions"]) == (f"{SOURCE}->{TARGET}", 1_100, 2)

    (copied,) = events(flows, f"kafka://{flows.target.bootstrap}/{SOURCE}.{TOPIC}")
    extra = copied["extra"]
    assert (copied["source_dag_id"], copied["source_task_id"], extra["run"]) == (dag, "checkpoint", name)
    assert (extra["records"], extra["source"]) == (1_100, f"kafka://{flows.source.bootstrap}/{TOPIC}")
    ends = {0: 550, 1: 550}
    assert {part["partition"]: (part["start"], part["end"]) for part in extra["partitions"]} == {
        number: (0, end) for number, end in ends.items()
    }

    (reader,) = flows.rest.runs(READER)
    assert (reader["run_type"], reader["state"]) == ("asset_triggered", "success")
    said = flows.rest.log(READER, str(reader["dag_run_id"]), "read").splitlines()
    for number, end in ends.items():
        assert said.count(f"{number} 0 {end}") == 1, "each event once"


def test_the_event_of_a_dealt_topic_tells_both_sides_partitions_apart() -> None:
    flow = parse_settings(FILE, "f").flow("a->b")
    units = [
        redealt(receipt(n, (5,) * 150, target_next=n + 2), target_start=n, records=2, bytes=10) for n in range(101)
    ]
    (topic,) = topic_ranges(units)
    extra = event_extra(flow, "live", "r", topic)
    assert (extra["source"], extra["records"]) == ("kafka://h:1/t", 202)
    assert extra["partitions"][1] == {"partition": 1, "target_start": 1, "target_end": 3, "records": 2}
    assert extra["source_partitions"][99] == {"partition": 99, "start": 0, "end": 5}
    assert (extra["more_partitions"], extra["more_source_partitions"]) == (1, 50)


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("at_ms", "key"),
    [
        (0, "1970-01-01T00:00:00"),
        (HOUR_MS - 1, "1970-01-01T00:00:00"),
        (HOUR_MS, "1970-01-01T01:00:00"),
        (1_767_225_599_999, "2025-12-31T23:00:00"),
        (None, None),
        (-1, None),
        (2**62, None),
    ],
)
def test_the_partition_key_is_the_hour_of_the_newest_record(at_ms: int | None, key: str | None) -> None:
    assert hour_key(at_ms) == key
    if key is not None:
        assert StartOfHourMapper().to_downstream(key) == key[:13], "Airflow's mappers read it"


class Outlets(dict[Any, Any]):
    """The events of a task, with the assets that a DAG names."""

    def __missing__(self, key: Any) -> OutletEventAccessor:
        if key.uri not in ("kafka://h:2/a.t", "kafka://h:2/a.u"):
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.ASSET_NOT_FOUND))
        found = OutletEventAccessor(key=AssetUniqueKey(name=key.uri, uri=key.uri))
        self[key] = found
        return found


def test_a_partitioned_flow_updates_the_assets_that_a_dag_names_each_with_its_hour() -> None:
    flow = parse_settings(f"{FILE}ferry.airflow.assets = partitioned\n", "f").flow("a->b")
    task = EmptyOperator(task_id="checkpoint", outlets=[flow_alias(flow.flow)])
    events = Outlets()
    topics = [
        TopicRanges(source=name, target=f"a.{name}", records=1, bytes=1, partitions=(), read=(), newest_ms=newest)
        for name, newest in (("t", HOUR_MS), ("u", None), ("v", HOUR_MS))
    ]
    context: Any = {"outlet_events": events, "task": task}
    assert publish(context, flow, "r", topics) == 1
    assert publish(context, flow, "r", topics) == 1, "another try"
    uri = "kafka://h:2/a.t"
    assert [(key.uri, event.partition_keys, event.extra["run"]) for key, event in events.items()] == [
        (uri, {"1970-01-01T01:00:00"}, "r")
    ]
    assert task.outlets == [flow_alias(flow.flow), Asset.ref(uri=uri)]


@pytest.mark.parametrize(("key", "count"), [("2026-01-31T00:00:00", 1), (None, 0)])
@pytest.mark.parametrize("lane", ["backfill-x", None])
def test_a_window_updates_assets_only_with_the_partition_key_of_its_run(
    key: str | None, count: int, lane: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = parse_settings(FILE, "f").flow("a->b")
    options = RunOptions(window=TimeWindow(from_ms=0, to_ms=HOUR_MS))
    backfill = Backfill(flow=flow, lane=lane, run="r", options=options)
    receipts = (replace(RECEIPT, segments=(Segment(source_start=0, target_start=0, count=1),)),)
    monkeypatch.setattr("ferry_airflow.backfill.asked_backfill", lambda task, context: backfill)
    monkeypatch.setattr("ferry_airflow.tables.report_lines", lambda report: [])
    monkeypatch.setattr(window_steps, "complaint", lambda *_: None)
    report = SimpleNamespace(receipts=receipts, records=1)
    monkeypatch.setattr(window_steps, "reports_of", lambda _: ([report], SimpleNamespace(left=0)))
    told: list[Any] = []
    alias = SimpleNamespace(add=lambda asset, extra: told.append((asset.uri, extra["lane"])))
    task: Any = backfill_dag(flow, Path("/f"), "@daily").get_task("report")
    task.execute({"params": {}, "partition_key": key, "outlet_events": {flow_alias(flow.flow): alias}})
    assert told == [(f"kafka://h:2/{RECEIPT.target.topic}", lane or "live")] * count


@pytest.mark.parametrize("base_url", ["https://airflow.example/team", ""])
def test_an_event_leads_to_its_run_on_the_page(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    flow = parse_settings(FILE, "f").flow("a->b")
    (topic,) = topic_ranges((replace(RECEIPT, segments=(Segment(source_start=0, target_start=0, count=1),)),))
    path = "/team/ferry" if base_url else "/ferry"
    for lane, at in (("live", "run"), ("backfill-x", "lane/backfill-x/run")):
        page = event_extra(flow, lane, "manual__1", topic)["page"]
        assert page == f"{base_url.removesuffix('/team')}{path}/flow/a/b/{at}/manual__1"


@pytest.mark.parametrize(
    ("base_url", "page"),
    [("https://airflow.example/team", "https://airflow.example/team/ferry/flow/a/b/"), ("", "/ferry/flow/a/b/")],
)
def test_a_copied_topics_asset_leads_to_the_page_of_its_flow(
    base_url: str, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    flow = parse_settings(FILE, "f").flow("a->b")
    assert topic_asset(flow, "target", "a.t").extra == {"page": page}
    assert topic_asset(flow, "source", "t").extra == {}, "other flows may copy to the source"


def test_a_dag_names_the_asset_of_a_copied_topic_with_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    file = tmp_path / "flows.properties"
    file.write_text(FILE)
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    found = copied_asset("a->b", "t")
    assert (
        found == copied_asset("a->b", "t", file) == topic_asset(parse_settings(FILE, "f").flow("a->b"), "target", "a.t")
    )
    assert found.extra == {"page": "https://airflow.example/ferry/flow/a/b/"}
    with pytest.raises(BadInput, match="a->c"):
        copied_asset("a->c", "t")


@pytest.mark.parametrize(
    ("cluster_b", "asked"),
    [
        ("b.bootstrap.servers = h:2\nb.ssl.key.password = ${env:NOT_SET_HERE}", []),
        ("b.ferry.airflow.conn.id = kafka_b", ["kafka_b"]),
        ("b.ferry.airflow.conn.id = other_type_b", ["other_type_b"]),
    ],
    ids=["file", "connection", "of Airflow's own type"],
)
def test_the_name_of_a_copied_topic_needs_no_secret_and_only_the_targets_servers(
    cluster_b: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = {"security.protocol": "SASL_SSL"}  # no run could log in with it
    there = {
        "kafka_b": Connection(
            conn_id="kafka_b", conn_type="kafka_cluster", host="h", port=2, login="ferry", extra=json.dumps(half)
        ),
        "other_type_b": Connection(
            conn_id="other_type_b",
            conn_type="kafka",
            extra=json.dumps({"bootstrap.servers": "h:2", "ssl.certificate.location": "/c"}),
        ),
    }
    looked_up: list[str] = []

    def found(conn_id: str) -> Connection:
        looked_up.append(conn_id)
        return there[conn_id]

    monkeypatch.setattr("ferry_airflow.cluster_settings.BaseHook.get_connection", found)
    file = tmp_path / "flows.properties"
    file.write_text(f"clusters = a, b\na.ferry.airflow.conn.id = kafka_a\n{cluster_b}\na->b.enabled = true\n")
    assert copied_asset("a->b", "t", file).uri == "kafka://h:2/a.t"
    assert looked_up == asked


def test_a_copied_topic_has_no_name_without_the_targets_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(conn_id: str) -> Connection:
        if conn_id == "gone":
            raise AirflowNotFoundException(conn_id)
        return Connection(conn_id=conn_id, conn_type="kafka_cluster" if conn_id == "empty" else "http", host="")

    monkeypatch.setattr("ferry_airflow.cluster_settings.BaseHook.get_connection", found)
    file = tmp_path / "flows.properties"
    for name in ("gone", "empty", "http"):
        file.write_text(FILE.replace("b.bootstrap.servers = h:2", f"b.ferry.airflow.conn.id = {name}"))
        with pytest.raises(BadInput, match=f"connection '{name}'"):
            copied_asset("a->b", "t", file)


def test_a_topic_has_one_name_in_airflow_and_in_lineage() -> None:
    flow = parse_settings(FILE, "f").flow("a->b")
    asset = topic_asset(flow, "target", "a.t")
    assert asset.name == asset.uri == "kafka://h:2/a.t" == f"{namespace(flow, 'target')}/a.t"


@pytest.mark.timeout(900)  # two runs with Spark, and a DAG after each
def test_what_is_copied_starts_a_partitioned_dag_whose_sensor_waits_for_the_whole_hour(flows: Flows) -> None:
    topic, reader = f"{BY_HOUR}-orders", "orders_by_hour"
    hour_ms = wall_ms() // HOUR_MS * HOUR_MS - 5 * HOUR_MS
    create_topic(flows.source, topic, 1)
    for first in (0, 10):  # two batches
        messages = [Message(value=b"%d" % at, timestamp=hour_ms + at) for at in range(first, first + 10)]
        send(producer(flows.source), topic, messages)
    flows.rest.wait_dag(reader)
    flows.rest.pause(reader, paused=False)
    try:
        _, state = flows.run(BY_HOUR, {"max_records": 10})
        assert state == "success"
        until(lambda: bool(flows.rest.runs(reader)), f"a run of {reader}")
        (run,) = flows.rest.runs(reader)
        name = str(run["dag_run_id"])
        flows.rest.wait_task(reader, name, "whole_hour", ("deferred",), seconds=ASKED_SECONDS)
        _, state = flows.run(BY_HOUR)
        assert state == "success"
        assert flows.rest.wait_run(reader, name, seconds=ASKED_SECONDS) == "success"
        until(lambda: len(flows.rest.runs(reader)) == 2, "the run that the second copy starts")
    finally:
        flows.rest.pause(reader, paused=True)
    hour = datetime.fromtimestamp(hour_ms / 1000, UTC)
    assert [run["partition_key"] for run in flows.rest.runs(reader)] == [f"{hour:%Y-%m-%dT%H}"] * 2
    copied = events(flows, f"kafka://{flows.target.bootstrap}/{BY_HOUR}.{topic}")
    assert [one["partition_key"] for one in copied] == [f"{hour:%Y-%m-%dT%H}:00:00"] * 2
    assert [one["extra"]["records"] for one in copied] == [10, 10]
    assert f"of hour {hour:%Y-%m-%dT%H}" in flows.rest.log(reader, name, "read")

    def caught_up(until_ms: int) -> bool:
        return is_caught_up(look_at(flows.lab(BY_HOUR).flow, only=[topic], until_ms=until_ms, patience_s=ANSWER_S))

    assert caught_up(hour_ms + HOUR_MS)
    hanging = producer(flows.source, transactional_id=topic)
    hanging.init_transactions(ANSWER_S)
    hanging.begin_transaction()
    hanging.produce(topic, b"waits", partition=0, timestamp=hour_ms + 99)
    assert hanging.flush(ANSWER_S) == 0
    assert not caught_up(hour_ms + HOUR_MS), "an open transaction holds a record of the hour back"
    assert caught_up(hour_ms + 20), "its record is not of this time"
    hanging.abort_transaction(ANSWER_S)


def asset(flows: Flows, uri: str) -> Json:
    """An asset as Airflow knows it, by its address."""
    found = flows.rest.ask("GET", f"/api/v2/assets?only_active=false&uri_pattern={quote(uri, safe='')}")["assets"]
    (one,) = (one for one in found if one["uri"] == uri)
    return dict(one)


def events(flows: Flows, uri: str) -> list[Json]:
    """The updates of an asset."""
    return list(flows.rest.ask("GET", f"/api/v2/assets/events?asset_id={asset(flows, uri)['id']}")["asset_events"])
