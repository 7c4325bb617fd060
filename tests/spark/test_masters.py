"""How spark-submit is called for each kind of master. There is no YARN and no Kubernetes here: a program stands in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.sdk import BaseHook, Context
from airflow.sdk.exceptions import AirflowFailException

from ferry.config.login.environment import from_environment
from ferry.config.settings import load
from ferry.run.spark.parent_watch import SUPERVISOR_VARIABLE
from ferry_airflow.operators import FerryCopyOperator

SECRET = "planted-in-a-variable"
FILE = """
clusters = a, b
a.bootstrap.servers = h:1
a.security.protocol = SASL_PLAINTEXT
a.sasl.mechanism = PLAIN
a.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="u" password="${env:KAFKA_A}";
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
b.bootstrap.servers = h:2
a->b.enabled = true
"""
STAND_IN = """#!{python}
import json, os, sys
given = dict(zip(sys.argv, sys.argv[1:]))
with open(given["--clients"], "rb") as pipe:
    pipe.read()
packed = os.path.getsize(given["--py-files"]) if "--py-files" in given else 0
with open({out!r}, "w") as out:
    json.dump({{"argv": sys.argv[1:], "environment": dict(os.environ), "packed": packed}}, out)
"""
MASTERS: dict[str, dict[str, Any]] = {
    "standalone": {"host": "spark://master:7077"},
    "yarn": {"host": "yarn", "extra": {"queue": "copies"}},
    "kubernetes": {"host": "k8s://https://api:6443", "extra": {"namespace": "ferry"}},
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A flow whose login is a variable of the task's."""
    path = tmp_path / "flows.properties"
    path.write_text(FILE)
    monkeypatch.setenv("KAFKA_A", SECRET)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    # What the provider for Kubernetes brings; a master there needs it, and client mode asks nothing of it.
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)
    return path


def operator(config: Path, monkeypatch: pytest.MonkeyPatch, connection: object) -> FerryCopyOperator:
    """The task `copy` with that Spark connection."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "spark", **cast("dict[str, object]", connection)})
    )
    return FerryCopyOperator(task_id="copy", config=str(config), flow="a->b", conn_id="cluster")


@pytest.mark.parametrize("master", MASTERS)
def test_in_client_mode_every_master_is_given_the_same(
    master: str, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "called.json"
    stand_in = tmp_path / "spark-submit"
    stand_in.write_text(STAND_IN.format(python=sys.executable, out=str(out)))
    stand_in.chmod(0o755)
    task = operator(config, monkeypatch, MASTERS[master])
    flow = load(config, from_environment).flow("a->b")
    task.submit(BaseHook.get_connection("cluster"), flow, cast("Context", {}), ["--run", "r"])
    called = json.loads(out.read_text())
    argv, environment = called["argv"], called["environment"]
    assert argv[argv.index("--master") + 1] == MASTERS[master]["host"]
    assert ("spark.kubernetes.namespace=ferry" in argv) is (master == "kubernetes")
    assert ("copies" in argv) is (master == "yarn")
    assert called["packed"] > 100_000, "Ferry's own code goes along"
    assert SECRET not in " ".join([*argv, *environment.values()])
    assert environment["KAFKA_A"] == environment["AIRFLOW_CONN_CLUSTER"] == ""
    assert environment["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert environment[SUPERVISOR_VARIABLE]
    assert not [word for word in argv if "appMasterEnv" in word or "driverEnv" in word]


def test_a_driver_elsewhere_is_refused_what_cannot_be_handed_to_it(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(FILE.replace("b.bootstrap.servers = h:2", "b.ferry.airflow.conn.id = kafka_b"))
    task = operator(config, monkeypatch, {"host": "yarn", "extra": {"deploy-mode": "cluster"}})
    flow = load(config, lambda _: {"bootstrap.servers": "h:2"}).flow("a->b")
    with pytest.raises(AirflowFailException, match=r"kafka_b.*'cluster'"):
        task.submit(BaseHook.get_connection("cluster"), flow, cast("Context", {}), [])
