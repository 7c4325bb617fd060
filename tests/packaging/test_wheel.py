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
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "FERRY_CONFIG": str(config),
    }
    done = subprocess.run(
        [str(python), "-c", PARSE.format(folder=str(dags))],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    *_, dag_line, files = done.stdout.strip().splitlines()
    assert dag_line == "['ferry__a__b'] ['plan', 'copy', 'report']"
    assert str(CHECKOUT / "src") not in files
    assert str(CHECKOUT / "plugins") not in files


def test_the_command_is_there(python: Path) -> None:
    done = subprocess.run([str(python.parent / "ferry"), "version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
