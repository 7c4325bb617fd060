"""`ferry airflow setup` on a real Airflow database in a home of the test's own: no process of Airflow runs."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ferry_airflow.home import prepare
from tests.program import Answer, ferry
from tests.world.documents.commands import placed, told

FILE = """
clusters = a, b
a.bootstrap.servers = kafka.a.invalid:9092
b.bootstrap.servers = kafka.b.invalid:9092
a->b.enabled = true
"""
POOL = "ferry_a_b"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an Airflow whose database nobody has made yet; AIRFLOW_HOME and all the rest point there."""
    prepared = prepare(tmp_path / "home")
    for name, value in prepared.environment.items():
        monkeypatch.setenv(name, value)
    return prepared.path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file with one flow."""
    path = tmp_path / "flows.properties"
    path.write_text(FILE)
    return path


def pools(home: Path) -> list[tuple[str, int, bool]]:
    """Ferry's pools in Airflow's database, with their slots, and whether tasks that wait in the triggerer count."""
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        return list(database.execute("select pool, slots, include_deferred from slot_pool where pool like 'ferry%'"))


def change(home: Path, what: str) -> None:
    """Somebody changes the pool so that runs would overlap."""
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        assert database.execute(f"update slot_pool set {what} where pool = ?", [POOL]).rowcount == 1
        database.commit()


def of_airflow(answer: Answer) -> list[dict[str, str]]:
    """What `ferry doctor` found of Airflow."""
    return [one for one in answer.json("doctor")["findings"] if one["check"] == "airflow"]


def test_setup_may_be_repeated_and_names_what_is_missing(home: Path, config: Path) -> None:
    before = ferry("airflow", "setup", config=config)
    assert (before.code, before.err.count("\n"), before.out) == (2, 1, "")
    assert "`airflow db migrate`" in before.err

    local = [sys.executable, "-m", "ferry_airflow.setup", "--local", str(home), "--config", str(config)]
    made = subprocess.run(local, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert pools(home) == [(POOL, 1, True)]

    add = [sys.executable, "-m", "airflow", *placed(told("airflow", "connections"), {})]
    added = subprocess.run(add, capture_output=True, text=True, check=False)
    assert added.returncode == 0, added.stderr
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        kept = database.execute("select conn_type, host, login from connection where conn_id = 'kafka_primary'")
        assert list(kept) == [("kafka_cluster", "broker-1:9092, broker-2:9092", "ferry")]

    there = {"pools": [POOL], "connections": ["spark_default"]}
    for what, wrong in (("slots = 3", (POOL, 3, True)), ("include_deferred = 0", (POOL, 1, False))):
        change(home, what)
        (found,) = of_airflow(ferry("doctor", "--json", "--patience", "1", config=config))
        assert (found["grade"], POOL in found["message"]) == ("fail", True)
        shown = ferry("--json", "airflow", "setup", "--dry-run", config=config)
        assert shown.json("airflow-setup") == {**there, "dry_run": True}
        assert pools(home) == [wrong]
        again = ferry("--json", "airflow", "setup", config=config)
        assert again.code == 0, again.err
        assert again.json("airflow-setup") == {**there, "dry_run": False}
        assert pools(home) == [(POOL, 1, True)]

    (good,) = of_airflow(ferry("doctor", "--json", "--patience", "1", config=config))
    assert good["grade"] == "pass"

    config.write_text(FILE + "a->b.ferry.spark.conn.id = elsewhere\n")
    missing = ferry("airflow", "setup", "--json", config=config)
    assert missing.code == 2
    assert "airflow connections add elsewhere " in missing.err
    assert missing.json("error")["error"]["message"] == missing.err[len("ferry: ") : -1]
    (lacking,) = of_airflow(ferry("doctor", "--json", "--patience", "1", config=config))
    assert (lacking["grade"], "'elsewhere'" in lacking["message"]) == ("fail", True)


@pytest.mark.parametrize("words", [("setup",), ("setup", "--dry-run"), ("setup", "--json")], ids=" ".join)
def test_without_airflow_home_nothing_is_asked_or_made(
    words: tuple[str, ...], tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    refused = ferry("airflow", *words, config=config)
    assert (refused.code, refused.err.count("\n"), "AIRFLOW_HOME" in refused.err) == (2, 1, True)
    assert [path.name for path in tmp_path.iterdir()] == [config.name]


def test_a_local_home_is_closed_to_others_and_has_a_password_of_its_own(tmp_path: Path) -> None:
    old = tmp_path / "one"
    old.mkdir(mode=0o755)
    (old / "passwords.json").write_text('{"admin": "admin"}')
    one, two = prepare(old), prepare(tmp_path / "two")
    assert one.password != two.password
    assert prepare(old).password == one.password
    assert json.loads((old / "passwords.json").read_text()) == {"admin": one.password}
    assert old.stat().st_mode & 0o777 == 0o700
    for name in ("password", "passwords.json", "jwt-secret", "fernet-key"):
        assert (old / name).stat().st_mode & 0o777 == 0o600, name
    assert one.password not in repr(one)
    assert "AIRFLOW__CORE__TEST_CONNECTION" not in one.environment
