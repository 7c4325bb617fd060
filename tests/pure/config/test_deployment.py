"""Whose runs a file's flows are, and what makes their configurations differ."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ferry.config.flow.deployment import DEPLOYMENT_VARIABLE, of_airflow
from ferry.config.settings import load, parse_settings
from ferry.errors import BadInput
from tests.golden import Golden

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
east->west.enabled = true
"""
HOST = socket.gethostname()


@pytest.mark.parametrize(
    ("lines", "variable", "deployment"),
    [
        ("", None, "the default"),
        ("", " ", "the default"),
        ("", "blue", "blue"),
        ("ferry.deployment = green\n", "blue", "green"),
        ("ferry.deployment =\n", "blue", "blue"),
        ("ferry.deployment = green\nwest->east.ferry.deployment = red\n", "blue", "red"),
        ("east->west.ferry.deployment = red\n", None, "the default"),
    ],
)
def test_the_file_counts_before_the_environment_and_that_before_the_place(
    lines: str, variable: str | None, deployment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEPLOYMENT_VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(DEPLOYMENT_VARIABLE, variable)
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + lines)
    assert load(path, deployment="the default").flow("west->east").deployment == deployment


def test_without_any_word_the_host_and_the_true_path_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEPLOYMENT_VARIABLE, raising=False)
    path, link = tmp_path / "mm2.properties", tmp_path / "current.properties"
    path.write_text(BASE)
    link.symlink_to(path)
    assert load(link).flow("west->east").deployment == f"{HOST}:{path.resolve()}"


def test_a_path_that_is_not_utf8_is_a_deployment_that_the_ledger_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEPLOYMENT_VARIABLE, raising=False)
    folder = tmp_path / "J\udce4ger"
    folder.mkdir()
    (folder / "mm2.properties").write_text(BASE)
    monkeypatch.chdir(folder)
    found = load(Path("mm2.properties")).flow("west->east").deployment
    assert found == f"{HOST}:{tmp_path.resolve()}/J\\xe4ger/mm2.properties"


def test_a_variable_that_is_no_name_is_refused(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setenv(DEPLOYMENT_VARIABLE, "data centre 1")
    with pytest.raises(BadInput) as caught:
        parse_settings(BASE, "f")
    golden(caught.value)


@pytest.mark.parametrize(
    ("base_url", "execution_url", "deployment"),
    [
        ("https://airflow.example.com/", "", "airflow:airflow.example.com"),
        ("https://Airflow.example.com:8443/a/", "http://api:8080/execution/", "airflow:airflow.example.com:8443/a"),
        ("http://localhost:8080", "http://airflow-apiserver:8080/execution/", "airflow:airflow-apiserver:8080"),
        ("https://me:secret@airflow.example.com", "", "airflow:airflow.example.com"),
        ("", "", f"airflow:localhost:8080@{HOST}"),
        ("/", "", f"airflow:localhost:8080@{HOST}"),
        ("http://127.0.0.1:9090", "http://127.0.0.1:9090/execution/", f"airflow:127.0.0.1:9090@{HOST}"),
        ("http://[::1]:9090", "", f"airflow:[::1]:9090@{HOST}"),
        ("", "http://0.0.0.0:8080/execution", f"airflow:0.0.0.0:8080@{HOST}"),
    ],
)  # fmt: skip
def test_an_airflow_is_known_by_its_address_and_one_without_by_its_host(
    base_url: str, execution_url: str, deployment: str
) -> None:
    assert of_airflow(base_url, execution_url) == deployment


def digest(lines: str = "", base: str = BASE) -> str:
    return parse_settings(base + lines, "f").flow("west->east").digest()


@pytest.mark.parametrize(
    "lines",
    [
        "# a comment\n",
        "topics = .*\n",
        "topics.exclude = __.*, .*\\\\.replica, mm2.*\\\\.internal, __.*\n",
        "replication.policy.separator = .\n",
        "ferry.start = earliest\n",
        "ferry.run.max.bytes = 10737418240\n",
        # How clusters are reached, and how a run works, may differ from machine to machine.
        "west.consumer.fetch.max.bytes = 1\n",
        "west.security.protocol = SSL\n",
        "tasks.max = 7\nferry.retries = 9\n",
        "ferry.ledger.prune = false\n",
        "ferry.backfill.windows = @hourly\n",
        "ferry.schedule = @daily\nferry.pool = other\nferry.spark.conn.id = other\n",
        "ferry.deployment = other\n",
        "east->west.topics = a\n",
    ],
)
def test_what_leaves_the_copy_as_it_is_leaves_the_digest(lines: str) -> None:
    assert digest(lines) == digest()


@pytest.mark.parametrize(
    "lines",
    [
        "topics = a\n",
        "topics.exclude = a\n",
        "groups.exclude = a\n",
        "heartbeats.replication.enabled = false\n",
        "replication.policy.class = IdentityReplicationPolicy\n",
        "replication.policy.separator = _\n",
        "replication.factor = 3\n",
        "sync.topic.configs.enabled = false\n",
        "config.properties.exclude = a\n",
        "west.consumer.isolation.level = read_uncommitted\n",
        "west.consumer.auto.offset.reset = latest\n",
        "ferry.start = 2026-01-31T06:00:00Z\n",
        "ferry.start = a:0:5\n",
        "ferry.merge.topics = a\n",
        "ferry.guard.topic.gone = skip\n",
        "ferry.guard.retention.passed = skip\n",
        "ferry.run.max.records = 5\n",
        "ferry.run.max.seconds = 5\n",
        "ferry.lane = other\n",
        "emit.heartbeats.interval.seconds = 5\n",
    ],
)
def test_what_changes_the_copy_changes_the_digest(lines: str) -> None:
    assert digest(lines) != digest()


def test_the_order_of_a_list_means_nothing_and_a_start_differs_by_its_value() -> None:
    assert digest("topics = a, b\n") == digest("topics = b,a,b\n")
    assert digest("ferry.start = a:0:5,b:0:6\n") == digest("ferry.start = b:0:6, a:0:5\n")
    assert digest("ferry.start = a:0:5\n") != digest("ferry.start = a:0:6\n")
    assert digest("ferry.start = 5\n") != digest("ferry.start = 6\n")


def test_a_policys_secret_does_not_enter_the_digest() -> None:
    own = "replication.policy.class = tests.pure.config.policies.Suffixed\n"
    secret = "replication.policy.{} = {}\n"
    assert digest(own + secret.format("password", "x")) == digest(own + secret.format("password", "y"))
    assert digest(own + secret.format("joint", "-")) != digest(own + secret.format("joint", "_"))
