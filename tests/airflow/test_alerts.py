"""Somebody is told: by the report of a run, and by the deadline of one that did not succeed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferry.errors import BadInput, Refused, Retryable
from ferry_airflow import alerts, cluster_settings
from tests.airflow.conftest import LATE, Flows
from tests.harness import create_topic, numbered, producer, send
from tests.spark.jobs import until


def test_a_report_tells_of_a_guard_and_of_the_lag_and_leaves_the_metrics(flows: Flows) -> None:
    for topic in ("watched-good", "watched-bad"):
        create_topic(flows.source, topic)
        send(producer(flows.source), topic, numbered(10))
    create_topic(flows.target, "watched.watched-bad")
    send(producer(flows.target), "watched.watched-bad", numbered(1))  # somebody else's
    run, state = flows.run("watched")
    assert state == "failed"
    found = flows.told("watched")
    assert {alert["kind"] for alert in found} == {"guard", "lag"}
    assert {(alert["flow"], alert["run"]) for alert in found} == {("watched->twatched", run)}
    assert any("foreign-writer 1 refused" in alert["said"] and "watched-bad-0" in alert["said"] for alert in found)
    assert {value for (name, _), value in flows.metrics_of("watched").items() if name == "ferry_record_count"} == {10}


def test_a_run_without_success_is_told_of_by_its_deadline(flows: Flows) -> None:
    """Its deadline is a minute after it was queued, which was when Airflow had started."""

    def late() -> list[str]:
        return [one["said"] for one in flows.told(LATE) if "no run of flow" in one["said"]]

    until(lambda: bool(late()), "the deadline", 150)
    assert late()[0].startswith(f"{LATE}->t{LATE}: no run of flow {LATE}->t{LATE} ")


HEARD: list[tuple[Any, str]] = []
TEXT = f"""
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.ferry.airflow.conn.id = kafka_b
a->b.enabled = true
ferry.alert.callback = {__name__}.heard
ferry.alert.callback.arguments = {{"by": "mail"}}
"""


def heard(alert: Any, context: Any, by: str) -> None:
    """The callback of the file."""
    HEARD.append((alert, by))


@pytest.mark.parametrize(
    "error",
    [BadInput("no such connection"), Refused("access denied"), Retryable("no answer"), RuntimeError("secret: hunter2")],
    ids=lambda error: type(error).__name__,
)
def test_a_late_run_is_told_of_when_its_connection_is_not_to_be_had(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "flows.properties"
    config.write_text(TEXT)

    def fails(conn_id: str) -> Any:
        raise error

    monkeypatch.setattr(cluster_settings, "connection_of", fails)
    HEARD.clear()
    alerts.late({"dag_run": {"dag_run_id": "r1"}}, str(config), "a->b")
    ((alert, by),) = HEARD
    assert (alert.kind, alert.flow, alert.run, by) == ("late", "a->b", "r1", "mail")
    assert "is not known" in alert.sentence
    assert (str(error) in alert.sentence, "hunter2" in alert.sentence) == (not isinstance(error, RuntimeError), False)
