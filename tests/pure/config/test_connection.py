"""An Airflow connection in place of a cluster's settings: what it becomes, and what is wrong with others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.config.login.allowed import ALLOWED_URLS, ENDPOINT, PATHS_VARIABLE
from ferry.config.login.connection import AirflowConnection, connection_properties
from ferry.config.login.environment import from_environment
from ferry.config.login.jaas import KAFKA_OPTS, parse_jaas
from ferry.config.settings import load, parse_settings
from ferry.errors import BadInput
from ferry.program import main
from tests.golden import Golden

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


def of_kafka(extra: dict[str, Any]) -> AirflowConnection:
    """A connection of Airflow's own type."""
    return AirflowConnection(
        conn_id="kafka_west", conn_type="kafka", extra={"bootstrap.servers": "broker-1:9092", "group.id": "g", **extra}
    )


WITH_PASSWORD = 'a.Module required username="u" password="s3cret";'
WITH_KEYTAB = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p";'


def test_settings_have_no_blanks_around_them() -> None:
    given = replace(PLAIN, extra={"security.protocol": "SSL", "ssl.truststore.password": "s3cret\n"})
    assert connection_properties(given)["ssl.truststore.password"] == "s3cret"


def test_fields_become_the_settings_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, "/ca.pem")
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


@pytest.mark.parametrize(
    ("extra", "fields"),
    [
        ({}, PLAIN),
        (
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanisms": "SCRAM-SHA-512",
                "sasl.username": "ferry",
                "sasl.password": "s3cret",
                "ssl.ca.location": "/ca.pem",
                "ssl.endpoint.identification.algorithm": "https",
                "enable.auto.commit": False,
            },
            replace(
                SASL,
                extra={
                    "security.protocol": "sasl_ssl",
                    "sasl.mechanism": "SCRAM-SHA-512",
                    "ssl.truststore.location": "/ca.pem",
                    "ssl.truststore.type": "PEM",
                },
            ),
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "ferry",
                "sasl.oauthbearer.client.secret": "s3cret",
            },
            replace(SASL, extra={"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}),
        ),
        (
            {"security.protocol": "ssl", "ssl.keystore.location": "/ca.pem", "ssl.keystore.password": "s3cret"},
            replace(
                PLAIN,
                extra={
                    "security.protocol": "ssl",
                    "ssl.keystore.location": "/ca.pem",
                    "ssl.keystore.type": "PKCS12",
                    "ssl.keystore.password": "s3cret",
                },
            ),
        ),
    ],
    ids=["plaintext", "password", "token", "certificate"],
)
def test_a_connection_of_airflows_own_type_is_read_by_librdkafkas_names(
    extra: dict[str, Any], fields: AirflowConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, "/ca.pem")
    found, wanted = connection_properties(of_kafka(extra)), connection_properties(fields)
    assert dict(found) == dict(wanted)


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


def test_a_keytab_needs_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, "/other:/k")
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": WITH_KEYTAB}
    assert connection_properties(replace(PLAIN, extra=extra))["sasl.jaas.config"] == WITH_KEYTAB


@pytest.mark.parametrize(
    "connection",
    [
        pytest.param(replace(PLAIN, conn_type="http"), id="another type"),
        pytest.param(of_kafka({"ssl.certificate.location": "/c"}), id="kafka: a setting that Ferry does not have"),
        pytest.param(of_kafka({"enable.ssl.certificate.verification": False}), id="kafka: less protection"),
        pytest.param(of_kafka({"oauth_cb": "my.module.token"}), id="kafka: a callback"),
        pytest.param(replace(PLAIN, conn_type="kafka"), id="kafka: no bootstrap.servers"),
        pytest.param(replace(PLAIN, host=None), id="no host"),
        pytest.param(replace(PLAIN, host="broker-1"), id="no port"),
        pytest.param(replace(PLAIN, extra={"group.id": "x"}), id="group.id=x"),
        pytest.param(replace(PLAIN, extra={"bootstrap.servers": "x:1"}), id="bootstrap.servers=x:1"),
        pytest.param(replace(PLAIN, extra={"ssl.protocol": ["TLS"]}), id="ssl.protocol=TLS"),
        pytest.param(replace(PLAIN, extra={"ssl.keystore.key": "-----BEGIN"}), id="ssl.keystore.key=-----BEGIN"),
        pytest.param(replace(PLAIN, extra={"ssl.key.password": "${env:HOME}"}), id="ssl.key.password=${env:HOME}"),
        pytest.param(
            replace(PLAIN, extra={"sasl.jaas.config": WITH_PASSWORD}),
            id="a login module with a password",
        ),
        pytest.param(replace(PLAIN, extra={"sasl.jaas.config": "nonsense"}), id="sasl.jaas.config=nonsense"),
        pytest.param(replace(SASL, password=None), id="a login without a password"),
        pytest.param(replace(SASL, extra={}), id="a login without SASL"),
        pytest.param(replace(SASL, extra={"security.protocol": "SASL_SSL"}), id="a login with Kerberos"),
        pytest.param(
            replace(SASL, extra={**SASL.extra, "sasl.jaas.config": WITH_KEYTAB}),
            id="a login, and a login module with a keytab",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_without_the_secret(
    connection: AirflowConnection, golden: Golden
) -> None:
    with pytest.raises(BadInput) as caught:
        connection_properties(connection)
    golden(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


JAAS = "sasl.jaas.config"
BEARER = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
TOKENS = "https://tokens.example/token"


def test_a_connection_does_not_log_in_as_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f"KafkaClient {{ {WITH_PASSWORD} }};")
    monkeypatch.setenv(KAFKA_OPTS, f"-Djava.security.auth.login.config={file} -Dplanted=s3cret")
    for extra in (
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
        {"security.protocol": "sasl_ssl"},
        {"security.protocol": "SASL_SSL", JAAS: "a.Module required useTicketCache=true;"},
        {"security.protocol": "SASL_SSL", JAAS: 'KafkaClient { a.Module required extension_a="${planted}"; };'},
        {"security.protocol": "SASL_SSL", JAAS: 'KafkaClient { a.Module required extension_a="\\44{planted}"; };'},
    ):
        with pytest.raises(BadInput) as caught:
            connection_properties(replace(PLAIN, extra=extra))
        assert "s3cret" not in str(caught.value)


def test_a_connection_asks_allowed_token_endpoints_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "fernet"
    secret.write_text("planted")
    for url, allowed in (
        (secret.as_uri(), secret.as_uri()),
        (f"FILE:{secret}", ""),
        ("http://169.254.169.254/token", ""),
        (TOKENS, "https://other.example/token"),
        (f"{TOKENS}?more", TOKENS),
    ):
        monkeypatch.setenv(KAFKA_OPTS, f"-D{ALLOWED_URLS}={allowed}")
        with pytest.raises(BadInput) as caught:
            connection_properties(replace(SASL, extra={**BEARER, ENDPOINT: url}))
        assert str(caught.value).startswith(f"Airflow connection 'kafka_west': {ENDPOINT}")
    monkeypatch.setenv(KAFKA_OPTS, f"-Dx=y '-D{ALLOWED_URLS}=https://other.example/token, {TOKENS}'")
    assert connection_properties(replace(SASL, extra={**BEARER, ENDPOINT: TOKENS}))[ENDPOINT] == TOKENS


@pytest.mark.parametrize(
    "extra",
    [
        {"ssl.truststore.location": "PATH"},
        {"ssl.keystore.location": "PATH", "ssl.keystore.type": "PEM"},
        {JAAS: 'a.Module required useKeyTab=true principal="p" keyTab="FILE:PATH";'},
        {JAAS: 'a.Module required useTicketCache=true ticketCache="PATH";'},
        {JAAS: 'a.Module required ssl.truststore.location="PATH";'},
    ],
)
def test_a_connection_names_allowed_paths_alone(
    extra: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").touch()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    monkeypatch.setenv(PATHS_VARIABLE, f"{tmp_path / 'inside'}:{tmp_path / 'alone'}")

    def taken(path: Path) -> None:
        connection_properties(
            replace(PLAIN, extra={key: value.replace("PATH", str(path)) for key, value in extra.items()})
        )

    taken(tmp_path / "inside" / "a")
    taken(tmp_path / "alone")
    for path in (tmp_path / "inside" / "link", tmp_path / "inside" / ".." / "outside", tmp_path / "alone2"):
        with pytest.raises(BadInput, match=PATHS_VARIABLE):
            taken(path)
    monkeypatch.delenv(PATHS_VARIABLE)
    with pytest.raises(BadInput, match=PATHS_VARIABLE):
        taken(tmp_path / "inside" / "a")


def test_parsing_asks_nobody_and_a_client_says_what_is_missing(golden: Golden) -> None:
    read = parse_settings(FILE, "f")
    flow = read.flow("west->east")
    assert read.problems == ()
    assert flow.clients.connections == {"west": "kafka_west"}
    assert flow.client("target", "producer")["bootstrap.servers"] == "broker-3:9092"
    with pytest.raises(BadInput) as caught:
        flow.client("source", "consumer")
    golden(caught.value)
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
    "line",
    [
        "west.ssl.key.password = s3cret",
        "west.bootstrap.servers = b:1",
        "west.consumer.sasl.jaas.config = x",
        "west.admin.ssl.keystore.location = x",
        "west->east.source.cluster.sasl.mechanism = x",
        "west->east.consumer.security.protocol = x",
        "west->east.source.consumer.bootstrap.servers = x",
        "east->west.target.producer.sasl.jaas.config = x",
        "east->west.producer.override.sasl.jaas.config = x",
        "wset.ferry.airflow.conn.id = x",
        "east.ferry.airflow.conn.id = a b",
        "ferry.airflow.conn.id = x",
        "west->east.ferry.airflow.conn.id = x",
    ],
)
def test_a_wrong_line_is_named(line: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings(f"{FILE}{line}\n", "f")
    start = f"f:7: {line.partition(' = ')[0]}: "
    assert str(caught.value).startswith(start)
    assert "s3cret" not in str(caught.value)
    golden(str(caught.value).removeprefix(start))


def test_a_connection_that_cannot_be_used_is_a_problem_of_its_line_among_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_WEST", '{"conn_type": "kafka_cluster", "password": "s3cret"}')
    file = tmp_path / "mm2.properties"
    file.write_text(f"{FILE}tasks.max = many\nsync.group.offsets.enabled = true\n")
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(file), "--json"])
    out = capsys.readouterr().out
    line = FILE.splitlines().index("west.ferry.airflow.conn.id = kafka_west") + 1
    assert ended.value.code == 2
    problems = json.loads(out)["problems"]
    assert [(one["line"], one["key"]) for one in problems] == [(line, "west.ferry.airflow.conn.id"), (7, "tasks.max")]
    golden("\n".join(one["message"] for one in problems))
    assert "s3cret" not in out
    with pytest.raises(BadInput, match=rf"^{file}:{line}: west\.ferry\.airflow\.conn\.id: .*'kafka_west'"):
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
def test_another_form_in_the_environment_is_refused(text: str, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_WEST", text)
    with pytest.raises(BadInput) as caught:
        from_environment("kafka_west")
    golden(caught.value)
    assert "s3cret" not in str(caught.value)
