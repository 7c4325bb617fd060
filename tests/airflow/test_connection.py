"""The connection type "Kafka cluster" in a real Airflow: its form, its Test button, and a flow that stands on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.airflow import planted
from tests.airflow.conftest import Flows
from tests.harness import create_topic, numbered, producer, send


def test_the_form_has_the_fields_of_a_kafka_cluster(flows: Flows) -> None:
    answer: Any = flows.rest.ask("GET", "/ui/connections/hook_meta")  # the one answer that is a list
    types = {kind["connection_type"]: kind for kind in answer}
    kind = types["kafka_cluster"]
    assert kind["hook_name"] == "Kafka cluster"
    assert kind["standard_fields"]["host"]["title"] == "Bootstrap servers"
    assert kind["standard_fields"]["url_schema"]["hidden"]
    fields = kind["extra_fields"]
    assert fields["security.protocol"]["schema"]["enum"] == [None, "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    hidden = {name for name, field in fields.items() if field["schema"].get("format") == "password"}
    assert hidden == {"ssl.truststore.password", "ssl.keystore.password", "ssl.key.password"}


def test_the_test_button_connects_and_names_cluster_and_brokers(flows: Flows) -> None:
    answer = pressed(flows, planted.connection("tried", flows.source))
    assert answer["status"] is True
    with flows.lab("plain").runs() as runs:
        cluster_id = runs.connections.source.cluster_id
    assert cluster_id
    assert answer["message"] == f"cluster {cluster_id}, brokers {flows.source.bootstrap_of('SASL')}"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"password": "wr0ng"}, "refused"),
        ({"host": "127.0.0.1:1"}, "does not answer"),
        ({"host": ""}, "Host is empty"),
        ({"extra": json.dumps({"security.protocol": "PLAIN"})}, "security.protocol"),
    ],
)
def test_the_test_button_says_why_not_in_one_sentence(flows: Flows, changes: dict[str, str], sentence: str) -> None:
    answer = pressed(flows, {**planted.connection("tried", flows.source), **changes})
    assert answer["status"] is False
    assert sentence in answer["message"]
    assert "\n" not in answer["message"]
    assert "wr0ng" not in answer["message"]
    assert not planted.found([("message", answer["message"].encode())])


def test_a_flow_runs_on_a_connection_and_says_what_is_wrong_with_it(flows: Flows) -> None:
    create_topic(flows.source, "linked-t", 2)
    send(producer(flows.source), "linked-t", numbered(1_000, partitions=2))
    dag = flows.dag("linked")
    assert flows.rest.has_dag(dag), "parsing looks no connection up"
    run, state = flows.run("linked")
    assert state == "failed"
    assert "connection 'kafka_linked' does not exist" in flows.rest.log(dag, run, "plan")

    made = planted.connection("kafka_linked", flows.source, password="wr0ng")
    flows.rest.ask("POST", "/api/v2/connections", made)
    run, state = flows.run("linked")
    assert state == "failed"
    said = flows.rest.log(dag, run, "plan")
    assert "refused" in said
    assert "wr0ng" not in said

    right = planted.connection("kafka_linked", flows.source)
    flows.rest.ask("PATCH", "/api/v2/connections/kafka_linked", right)
    run, state = flows.run("linked")
    assert state == "success", flows.rest.log(dag, run, "plan") + flows.rest.log(dag, run, "copy")
    assert flows.lab("linked").assert_equal() == 1_000


def pressed(flows: Flows, body: dict[str, Any]) -> dict[str, Any]:
    """What the Test button shows for a form with these fields."""
    return flows.rest.ask("POST", "/api/v2/connections/test", body)
