"""Data schedules both ways, in a real Airflow: lag starts a run, and what that copied starts the documents' own DAG."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from ferry.config.settings import parse_settings
from ferry.ledger.topic_ranges import topic_ranges
from ferry_airflow.assets import event_extra
from ferry_airflow.rest import ENDED, Json
from tests.airflow.conftest import BY_LAG, Flows
from tests.harness import create_topic, numbered, producer, send
from tests.pure.decide.test_deal import receipt
from tests.pure.decide.values import redealt
from tests.spark.jobs import until

READER = "orders_arrived"
SOURCE, TARGET = BY_LAG, f"t{BY_LAG}"
TOPIC = f"{BY_LAG}-orders"
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

    (copied,) = events(flows, f"kafka://{TARGET}/{SOURCE}.{TOPIC}")
    extra = copied["extra"]
    assert (copied["source_dag_id"], copied["source_task_id"], extra["run"]) == (dag, "checkpoint", name)
    assert (extra["records"], extra["source"]) == (1_100, f"kafka://{SOURCE}/{TOPIC}")
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
    text = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
    flow = parse_settings(text, "f").flow("a->b")
    units = [
        redealt(receipt(n, (5,) * 150, target_next=n + 2), target_start=n, records=2, bytes=10) for n in range(101)
    ]
    (topic,) = topic_ranges(units)
    extra = event_extra(flow, "r", topic)
    assert (extra["source"], extra["records"]) == ("kafka://a/t", 202)
    assert extra["partitions"][1] == {"partition": 1, "target_start": 1, "target_end": 3, "records": 2}
    assert extra["source_partitions"][99] == {"partition": 99, "start": 0, "end": 5}
    assert (extra["more_partitions"], extra["more_source_partitions"]) == (1, 50)


def asset(flows: Flows, uri: str) -> Json:
    """An asset as Airflow knows it, by its address."""
    found = flows.rest._ask("GET", f"/api/v2/assets?only_active=false&uri_pattern={quote(uri, safe='')}")["assets"]
    (one,) = (one for one in found if one["uri"] == uri)
    return dict(one)


def events(flows: Flows, uri: str) -> list[Json]:
    """The updates of an asset."""
    return list(flows.rest._ask("GET", f"/api/v2/assets/events?asset_id={asset(flows, uri)['id']}")["asset_events"])
