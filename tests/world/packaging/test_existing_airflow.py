"""pip puts the wheel into an Airflow that is there: no package gets an older version, and Airflow sees Ferry.

Airflow's own constraints file is on a host that the tests do not ask. This Airflow is the one of constraints.txt.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.world.documents.commands import placed, told
from tests.world.packaging.installation import CHECKOUT, Installation, bare, frozen, pip_install
from tests.world.packaging.test_requirements import versions
from tests.world.packaging.test_wheel import FLOW, TWO_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """An Airflow without Ferry, and the version of each of its packages."""

    place: Installation
    packages: dict[str, str]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Before:
    place = bare(tmp_path_factory.mktemp("existing"))
    tested = versions()["apache-airflow"]
    constraints = str(CHECKOUT / "constraints.txt")
    pip_install(place, "--retries", "10", "--constraint", constraints, f"apache-airflow=={tested}")
    return Before(place=place, packages=frozen(place))


@pytest.fixture(scope="module")
def planned(before: Before, wheel: Path) -> dict[str, Version]:
    """What pip would install, if it were asked for Ferry alone."""
    pip = [sys.executable, "-m", "pip", "--python", str(before.place.python), "install", "--quiet", "--retries", "10"]
    command = [*pip, "--dry-run", "--report", "-", f"{wheel}[airflow]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [one["metadata"] for one in json.loads(done.stdout)["install"]]
    return {canonicalize_name(one["name"]): Version(one["version"]) for one in found}


@pytest.fixture(scope="module")
def installed(before: Before, planned: dict[str, Version], wheel: Path) -> Installation:
    """The Airflow with Ferry, which is installed as docs/airflow.md says: with what is there as constraints."""
    del planned  # pip plans what is not there yet
    there = before.place.home / "there.txt"
    pip = [sys.executable, "-m", "pip", "--python", str(before.place.python)]
    _, *freeze = told("pip", "freeze").words
    there.write_text(subprocess.run([*pip, *freeze], capture_output=True, text=True, check=True).stdout)
    # One extra of the three: the others bring Spark and charts, half a gigabyte.
    places = {"there.txt": there, "ferry_replicator-….whl[airflow,spark,reports]": f"{wheel}[airflow]"}
    _, *what = placed(told("pip", "there.txt"), places)
    pip_install(before.place, "--retries", "10", *what)
    return before.place


def airflow(place: Installation, *words: str, **environment: str) -> Any:
    """What a command of Airflow prints as JSON."""
    done = place.run(place.home / "bin" / "airflow", *words, "--output", "json", **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # warnings come before it


def test_pip_alone_makes_no_package_older_and_keeps_airflow(before: Before, planned: dict[str, Version]) -> None:
    there: dict[str, Version] = {canonicalize_name(name): Version(version) for name, version in before.packages.items()}
    changed = {name: (there[name], version) for name, version in planned.items() if name in there}
    assert "ferry-replicator" in planned
    assert not {name: change for name, change in changed.items() if change[1] <= change[0]}
    assert not [name for name in changed if name.startswith("apache-airflow")]


def test_with_what_is_there_as_constraints_nothing_changes(before: Before, installed: Installation) -> None:
    after = frozen(installed)
    assert "ferry-replicator" in after
    assert {name: after.get(name) for name in before.packages} == before.packages
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(installed.python), "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_airflow_sees_the_plugin_and_the_flows(installed: Installation) -> None:
    dags = installed.home / "airflow" / "dags"
    dags.mkdir(parents=True)
    (dags / "flows.py").write_text(TWO_LINES)
    (installed.home / "mm2.properties").write_text(FLOW)
    config = str(installed.home / "mm2.properties")
    (plugin,) = (one for one in airflow(installed, "plugins") if one["name"] == "ferry")
    assert plugin["source"].startswith("ferry-replicator==")
    migrated = installed.run(installed.home / "bin" / "airflow", "db", "migrate")
    assert migrated.returncode == 0, migrated.stderr[-3000:]
    found = airflow(installed, "dags", "list", "--local", FERRY_CONFIG=config)
    assert "ferry__a__b" in {one["dag_id"] for one in found}
    setup = installed.run(installed.home / "bin" / "ferry", "airflow", "setup", "--dry-run", FERRY_CONFIG=config)
    assert setup.stderr.startswith("ferry: Spark connection 'spark_default' ")
    assert "airflow connections add " in setup.stderr
