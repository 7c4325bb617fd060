"""The wheel in an Airflow that has no checkout: what an existing installation gets."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TWO_LINES = "from ferry_airflow.dags import flow_dags  # one Airflow DAG per flow\nglobals().update(flow_dags())\n"
FLOW = """
clusters = a, b
a.bootstrap.servers = localhost:1
b.bootstrap.servers = localhost:2
a->b.enabled = true
a->b.topics = orders
"""
PARSE = """
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder={folder!r})
assert not bag.import_errors, bag.import_errors
import ferry, ferry_airflow
print(sorted(bag.dag_ids), [task.task_id for task in bag.dags[sorted(bag.dag_ids)[0]].topological_sort()])
print(ferry.__file__, ferry_airflow.__file__)
"""
FIND = """
import importlib
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
provider = ProvidersManager().providers["ferry-replicator"]
fields = [name for name in ProvidersManager().connection_form_widgets if name.startswith("extra__kafka_cluster__")]
hook = ProvidersManagerTaskRuntime().hooks["kafka_cluster"]
print(provider.data["name"], hook.hook_name, hook.connection_testable, len(fields) > 5)
print(importlib.import_module(hook.hook_class_name.rpartition(".")[0]).__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ferry's wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; Airflow and the other libraries are those of the checkout's environment.

    They are reached by a path entry, which does not carry the checkout's editable install along.
    """
    home = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([str(python), "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    (Path(site) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_holds_the_job_and_the_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"ferry/py.typed", "ferry_airflow/jobs/copy_job.py", "ferry_airflow/__init__.py"} <= names
    assert not any(name.startswith(("tests", "src", "plugins")) for name in names)


def test_two_lines_make_a_dag_per_flow(python: Path, tmp_path: Path) -> None:
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "flows.py").write_text(TWO_LINES)
    config = tmp_path / "flow.properties"
    config.write_text(FLOW)
    *_, dag_line, files = said(python, PARSE.format(folder=str(dags)), tmp_path, FERRY_CONFIG=str(config))
    assert dag_line == "['ferry__a__b'] ['plan', 'copy', 'report']"
    assert str(CHECKOUT / "src") not in files
    assert str(CHECKOUT / "plugins") not in files


def test_airflow_finds_the_connection_type(python: Path, tmp_path: Path) -> None:
    *_, found, file = said(python, FIND, tmp_path)
    assert found == "Ferry Kafka cluster True True"
    assert str(CHECKOUT / "plugins") not in file


def test_the_command_is_there(python: Path) -> None:
    done = subprocess.run([str(python.parent / "ferry"), "version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def said(python: Path, program: str, home: Path, **environment: str) -> list[str]:
    """The lines that a program prints in an Airflow home of its own."""
    done = subprocess.run(
        [str(python), "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AIRFLOW_HOME": str(home / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            **environment,
        },
        cwd=home,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()
