"""An Airflow connection in place of a cluster's settings: what it becomes, and what is wrong with others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.cli.app import main
from ferry.config.login.connection import AirflowConnection, connection_properties, from_environment
from ferry.config.login.jaas import parse_jaas
from ferry.config.settings import load, parse_settings
from ferry.errors import BadInput

FILE = """\
clusters = west, east
west.ferry.airflow.conn.id = kafka_west
west.consumer.fetch.max.bytes = 1000
security.protocol = SSL
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""
PLAIN = AirflowConnection(conn_id="kafka_west", conn_type="kafka_cluster", host="broker-1:9092")
SASL = replace(
    PLAIN,
    login="ferry",
    password="s3cret",
    extra={"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"},
)
WITH_PASSWORD = 'a.Module required username="u" password="s3cret";'
WITH_KEYTAB = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p";'


def test_fields_become_the_settings_of_a_file() -> None:
    extra = {
        "security.protocol": "SSL",
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.key.password": "",
        "sasl.mechanism": None,
    }
    found = connection_properties(replace(PLAIN, host="broker-1:9092, [::1]:9093 ,broker-2", port=9094, extra=extra))
    assert dict(found) == {
        "bootstrap.servers": "broker-1:9092,[::1]:9093,broker-2:9094",
        "security.protocol": "SSL",
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
    }


@pytest.mark.parametrize("password", ["plain", 'a"b\\c', "é;={}'\n\t \\n", "${user.home}", "//no comment"])
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("PLAIN", ("username", "password")),
        ("SCRAM-SHA-256", ("username", "password")),
        ("OAUTHBEARER", ("clientId", "clientSecret")),
    ],
)
def test_login_and_password_become_a_login_module(mechanism: str, options: tuple[str, str], password: str) -> None:
    extra = {"security.protocol": "sasl_ssl", "sasl.mechanism": mechanism}
    found = connection_properties(replace(SASL, password=password, extra=extra))
    login = parse_jaas(found["sasl.jaas.config"])
    assert dict(login.options) == {options[0]: "ferry", options[1]: password}
    assert password not in repr(found) or password == "plain"


def test_a_keytab_needs_no_password() -> None:
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": WITH_KEYTAB}
    assert connection_properties(replace(PLAIN, extra=extra))["sasl.jaas.config"] == WITH_KEYTAB


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        (replace(PLAIN, conn_type="kafka"), "is of type 'kafka'; make it 'kafka_cluster'"),
        (replace(PLAIN, host=None), "Host is empty"),
        (replace(PLAIN, host="broker-1"), "server 'broker-1' has no port"),
        (replace(PLAIN, extra={"group.id": "x"}), "'group.id' is no setting of a connection"),
        (replace(PLAIN, extra={"bootstrap.servers": "x:1"}), "'bootstrap.servers' is no setting of a connection"),
        (replace(PLAIN, extra={"ssl.protocol": ["TLS"]}), "ssl.protocol is no text"),
        (replace(PLAIN, extra={"ssl.keystore.key": "-----BEGIN"}), "ssl.keystore.key would be shown by Airflow"),
        (replace(PLAIN, extra={"ssl.key.password": "${env:HOME}"}), "ssl.key.password holds a ${...} reference"),
        (replace(PLAIN, extra={"sasl.jaas.config": WITH_PASSWORD}), "sasl.jaas.config with a password would be shown"),
        (replace(PLAIN, extra={"sasl.jaas.config": "nonsense"}), "sasl.jaas.config: "),
        (replace(SASL, password=None), "has only one of Login and Password"),
        (replace(SASL, extra={}), "has a login that security.protocol=PLAINTEXT does not use"),
        (replace(SASL, extra={"security.protocol": "SASL_SSL"}), "has a login that sasl.mechanism=GSSAPI does not use"),
        (replace(SASL, extra={**SASL.extra, "sasl.jaas.config": WITH_KEYTAB}), "has a login and sasl.jaas.config"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_without_the_secret(connection: AirflowConnection, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        connection_properties(connection)
    assert str(caught.value).startswith(f"Airflow connection 'kafka_west': {sentence}")
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parsing_asks_nobody_and_a_client_says_what_is_missing() -> None:
    read = parse_settings(FILE, "f")
    flow = read.flow("west->east")
    assert read.problems == ()
    assert flow.connections == {"west": "kafka_west"}
    assert flow.client("target", "producer")["bootstrap.servers"] == "broker-3:9092"
    with pytest.raises(BadInput, match=r"Airflow connection 'kafka_west' is looked up.*AIRFLOW_CONN_KAFKA_WEST"):
        flow.client("source", "consumer")
    with pytest.raises(BadInput, match="'kafka_west'"):
        read.cluster("west").client("admin")


def test_a_connection_counts_instead_of_the_top_level() -> None:
    asked: list[str] = []

    def lookup(conn_id: str) -> dict[str, str]:
        asked.append(conn_id)
        return {"bootstrap.servers": "broker-1:9092", "ssl.key.password": "s3cret"}

    read = parse_settings(FILE, "f", lookup)
    flow = read.flow("west->east")
    assert asked == ["kafka_west"]
    assert dict(flow.client("source", "consumer")) == {
        "bootstrap.servers": "broker-1:9092",
        "ssl.key.password": "s3cret",
        "fetch.max.bytes": "1000",
    }
    assert flow.client("target", "producer")["security.protocol"] == "SSL"
    assert read.cluster("west").bootstrap_servers == "broker-1:9092"
    assert read.cluster("west").client("admin")["ssl.key.password"] == "s3cret"
    other = parse_settings(FILE, "f", lambda _: {"bootstrap.servers": "broker-9:9092"}).flow("west->east")
    assert flow.client("source", "consumer") != other.client("source", "consumer")
    assert flow.digest() == other.digest(), "how a cluster is reached says nothing of what is copied"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("west.ssl.key.password = s3cret", "f:7: west.ssl.key.password: stands beside Airflow connection 'kafka_west'"),
        ("west.bootstrap.servers = b:1", "f:7: west.bootstrap.servers: stands beside Airflow connection 'kafka_west'"),
        ("wset.ferry.airflow.conn.id = x", "f:7: wset.ferry.airflow.conn.id: cluster 'wset' is not among"),
        ("east.ferry.airflow.conn.id = a b", "f:7: east.ferry.airflow.conn.id: 'a b' is not a name"),
        (
            "ferry.airflow.conn.id = x",
            "f:7: ferry.airflow.conn.id: a connection is one cluster's; write for example west.",
        ),
        (
            "west->east.ferry.airflow.conn.id = x",
            "f:7: west->east.ferry.airflow.conn.id: a connection is one cluster's",
        ),
    ],
)
def test_a_wrong_line_is_named(line: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings(f"{FILE}{line}\n", "f")
    assert str(caught.value).startswith(sentence), str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_connection_that_cannot_be_used_is_a_problem_of_its_line_among_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_WEST", '{"conn_type": "kafka_cluster", "password": "s3cret"}')
    file = tmp_path / "mm2.properties"
    file.write_text(f"{FILE}tasks.max = many\n")
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(file), "--json"])
    out = capsys.readouterr().out
    line = FILE.splitlines().index("west.ferry.airflow.conn.id = kafka_west") + 1
    assert ended.value.code == 2
    assert [(one["line"], one["key"], one["message"][:48]) for one in json.loads(out)["problems"]] == [
        (line, "west.ferry.airflow.conn.id", "Airflow connection 'kafka_west': Host is empty; w"[:48]),
        (7, "tasks.max", "'many' is not a whole number; write one of at le"),
    ]
    assert "s3cret" not in out
    with pytest.raises(
        BadInput, match=rf"^{file}:{line}: west\.ferry\.airflow\.conn\.id: Airflow connection 'kafka_west'"
    ):
        load(file, from_environment)


@pytest.mark.parametrize("as_text", [False, True])
def test_the_environment_may_hold_the_connection(as_text: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    extra: Any = dict(SASL.extra)
    fields = {
        "conn_type": "kafka_cluster",
        "host": "broker-1",
        "port": 9092,
        "login": "ferry",
        "password": "s3cret",
        "extra": json.dumps(extra) if as_text else extra,
    }
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_WEST", json.dumps(fields))
    assert from_environment("kafka_west") == connection_properties(SASL)
    assert from_environment("kafka_east") is None


@pytest.mark.parametrize("text", ["kafka-cluster://ferry:s3cret@broker-1:9092", "[]", '{"extra": "s3cret"}'])
def test_another_form_in_the_environment_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_WEST", text)
    with pytest.raises(BadInput, match="AIRFLOW_CONN_KAFKA_WEST is no connection in JSON") as caught:
        from_environment("kafka_west")
    assert "s3cret" not in str(caught.value)
