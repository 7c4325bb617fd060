"""Connection data goes from the task to the driver through a pipe: once, to one reader, and never by a file."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.run.spark.credentials_pipe import emptied, offered, taken
from tests.golden import Golden

FILE = """\
clusters = west, east
west.ferry.airflow.conn.id = kafka_west
east.bootstrap.servers = broker-3:9092
east.ssl.key.password = ${env:EAST_PASSWORD}
east.ssl.truststore.location = ${env:EAST_STORE}
west->east.enabled = true
"""


def flow(size: int = 10, *, known: bool = True) -> FlowConfig:
    """A flow whose source is a connection with a password of that size."""
    settings = {"bootstrap.servers": "broker-1:9092", "ssl.key.password": "p" * size}
    return parse_settings(FILE, "f", lambda _: settings if known else None).flow("west->east")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAST_PASSWORD", "${vault:EAST_STORE}")
    monkeypatch.setenv("EAST_STORE", "/store.pem")


# More than a pipe holds (64 KiB on Linux), too.
@pytest.mark.parametrize("size", [10, 300_000])
def test_the_driver_takes_what_the_task_offers(size: int, tmp_path: Path) -> None:
    with offered(flow(size), tmp_path / "clients") as pipe:
        mode = pipe.stat().st_mode
        assert stat.S_ISFIFO(mode)
        assert stat.S_IMODE(mode) == 0o600
        got = taken(flow(known=False), pipe)
    assert got.client("source", "consumer")["ssl.key.password"] == "p" * size
    assert got.client("target", "producer")["ssl.truststore.location"] == "/store.pem"
    assert got.client("target", "producer").redacted("/store.pem is gone") == "${env:EAST_STORE} is gone"
    # A value is what it was resolved to, even when it looks like a reference to another provider.
    assert got.client("target", "producer")["ssl.key.password"] == "${vault:EAST_STORE}"
    assert not pipe.exists()


@pytest.mark.parametrize("size", [10, 300_000])
def test_nothing_remains_when_nobody_takes_it(size: int, tmp_path: Path) -> None:
    with offered(flow(size), tmp_path / "clients") as pipe:
        assert pipe.exists()
    assert not pipe.exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "ferry-handover"]


def test_a_secret_that_cannot_be_had_ends_the_task_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EAST_PASSWORD")
    with pytest.raises(BadInput, match="EAST_PASSWORD"), offered(flow(), tmp_path / "clients"):
        pytest.fail("began")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_handover(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "clients").write_text("[]")
    with pytest.raises(BadInput) as wrong:
        taken(flow(), tmp_path / "clients")
    golden(wrong.value, "a file")
    with pytest.raises(BadInput) as wrong:
        taken(flow(), tmp_path / "none")
    golden(wrong.value, "nothing")


def test_the_driver_inherits_no_variable_with_a_secret() -> None:
    environment = {"EAST_PASSWORD": "x", "EAST_STORE": "/store.pem", "AIRFLOW_CONN_OTHER": "y", "PATH": "/bin"}
    assert emptied(flow(), environment) == {"AIRFLOW_CONN_OTHER": "", "EAST_PASSWORD": ""}
    assert emptied(flow(), {"PATH": "/bin"}) == {}


def test_the_driver_inherits_the_salt_and_no_password_of_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never signs; it makes hashes."""
    monkeypatch.setenv("SALT", "0123456789abcdef")
    file = (
        FILE
        + """
ferry.report.private.key = /keys/report.pem
ferry.report.private.key.password = ${env:REPORT_PASSWORD}
ferry.transforms = mask
ferry.transform.mask.topics = orders
ferry.transform.mask.salt = ${env:SALT}
ferry.transform.mask.hash = $.email
"""
    )
    chosen = parse_settings(file, "f").flow("west->east")
    environment = {"REPORT_PASSWORD": "x", "SALT": "0123456789abcdef", "EAST_PASSWORD": "y"}
    assert emptied(chosen, environment) == {"REPORT_PASSWORD": "", "EAST_PASSWORD": ""}
