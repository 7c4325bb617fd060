"""The wheel where there is no checkout: installed with an Airflow by pip, and beside what it declares and no more."""

from __future__ import annotations

import ast
import email
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ferry.run.spark.package import zip_package
from tests.world.packaging.declared import closure, lend, requirements
from tests.world.packaging.installation import CHECKOUT, Installation, bare, pip_install

EXTRAS = ("airflow", "spark", "reports")
"""What docs/airflow.md says to install."""

ON_EXTRAS = (
    "ferry.spark",
    "ferry.run.spark",
    *(f"ferry.features.{feature}.spark" for feature in ("records", "sink", "verify")),
    *("ferry.features.archive.acts.parquet", "ferry.features.evidence.acts.charts", "ferry.features.evidence.acts.pdf"),
    *(f"ferry.features.records.rules.{name}" for name in ("partition_columns", "json_cast", "json_column")),
    *(f"ferry.features.records.acts.{name}" for name in ("rows", "row_slot", "row_parts")),
    *("ferry.features.records.acts.dead_letter_writer", "ferry.features.sink.acts.slot"),
    *("ferry.wire.arrow_columns", "ferry.wire.encoding"),
    *("ferry_airflow", "pyspark", "pyarrow", "gssapi", "fsspec", "jinja2", "matplotlib", "numpy"),
)
"""What only an installation with an extra can import."""

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
print("ferry__a__b" in bag.dag_ids, [task.task_id for task in bag.dags["ferry__a__b"].topological_sort()])
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
IMPORT = """
import importlib
names = {names!r}
for name in names:
    importlib.import_module(name)
print(len(names))
"""


@pytest.fixture(scope="module")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Iterable[Requirement]], Installation]:
    """Makes an environment with the wheel, and lends it what the given requirements name and need in turn."""

    def made(wanted: Iterable[Requirement]) -> Installation:
        place = bare(tmp_path_factory.mktemp("venv"))
        pip_install(place, "--no-deps", "--no-index", str(wheel))
        lend(closure(wanted), place.site)
        return place

    return made


@pytest.fixture(scope="module")
def airflow(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An Airflow with the wheel, installed as docs/airflow.md says."""
    place = bare(tmp_path_factory.mktemp("airflow"))
    constraints = str(CHECKOUT / "constraints.txt")
    pip_install(place, "--retries", "10", "--constraint", constraints, f"{wheel}[{','.join(EXTRAS)}]")
    return place


def imports(wheel: Path, *packages: str, but: tuple[str, ...] = ()) -> list[str]:
    """Modules of the wheel's packages, and all that they import, in functions too; nothing of `but`."""
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            if name.endswith(".py") and _within(module, packages) and not _within(module, but):
                found |= {module} if not module.endswith("__main__") else set()
                found |= set(_imported(ast.parse(archive.read(name))))
    return sorted(name for name in found if not _within(name, but))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def _within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_the_wheel_holds_the_job_and_the_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"ferry/py.typed", "ferry_airflow/jobs/copy_job.py", "ferry_airflow/__init__.py"} <= names
    assert not any(name.startswith(("tests", "src", "plugins")) for name in names)


def test_the_wheel_says_under_which_licence_it_may_be_used(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        [name] = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(opened.read(name))
        texts = {
            path.rpartition("/licenses/")[2]: opened.read(path) for path in opened.namelist() if "/licenses/" in path
        }
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The Ferry authors"
    assert "Framework :: Apache Airflow" in metadata.get_all("Classifier", [])
    assert set(metadata.get_all("License-File", [])) == set(texts)
    assert texts["LICENSE"] == (CHECKOUT / "LICENSE").read_bytes()
    assert texts["NOTICE"] == (CHECKOUT / "NOTICE").read_bytes()


def test_the_notice_names_each_vendored_file_with_its_licence() -> None:
    static = CHECKOUT / "plugins/ferry_airflow/page/static"
    vendored = {path.name for path in static.iterdir() if ".min." in path.name}
    notice = (CHECKOUT / "NOTICE").read_text()
    assert vendored
    for name in vendored:
        licence = static / f"{name.partition('.')[0]}.LICENSE"
        assert licence.is_file()
        assert name in notice
        assert licence.name in notice


def test_two_lines_make_a_dag_per_flow(airflow: Installation, tmp_path: Path) -> None:
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "flows.py").write_text(TWO_LINES)
    config = tmp_path / "flow.properties"
    config.write_text(FLOW)
    *_, dag_line, files = airflow.said(PARSE.format(folder=str(dags)), FERRY_CONFIG=str(config))
    assert dag_line == "True ['plan', 'copy', 'checkpoint', 'report']"
    assert all(file.startswith(str(airflow.site)) for file in files.split())


def test_airflow_finds_the_connection_type(airflow: Installation) -> None:
    *_, found, file = airflow.said(FIND)
    assert found.split()[:-2] == ["Ferry", "Kafka", "cluster"]
    assert found.split()[-2:] == ["True", "True"]
    assert file.startswith(str(airflow.site))


def test_every_module_finds_what_it_imports_among_what_the_wheel_declares(airflow: Installation, wheel: Path) -> None:
    # The others are of the extras kerberos, openlineage and pdf.
    others = ("gssapi", "airflow.providers.openlineage", "openlineage", "ferry.features.evidence.acts.pdf")
    names = imports(wheel, "ferry", "ferry_airflow", but=others)
    assert {
        "ferry.features.records.spark.copy_job",
        "ferry_airflow.operators",
        "pyspark.sql",
        "kafka.net.selector",
    } <= set(names)
    *_, count = airflow.said(IMPORT.format(names=names))
    assert int(count) == len(names)


def test_without_extras_the_command_and_the_engine_work(
    install: Callable[[Iterable[Requirement]], Installation], wheel: Path, tmp_path: Path
) -> None:
    plain = install(requirements(wheel))
    plain.said(IMPORT.format(names=imports(wheel, "ferry", but=ON_EXTRAS)))
    config = tmp_path / "flow.properties"
    config.write_text(FLOW)
    done = plain.run(plain.home / "bin" / "ferry", "config", "check", config)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("library", ["crc32c", "typer"])
def test_a_library_that_is_not_declared_is_missed(
    install: Callable[[Iterable[Requirement]], Installation], wheel: Path, library: str
) -> None:
    """That the others pass says something: what this environment has besides is out of their reach."""
    declared = requirements(wheel)
    forgetful = install([each for each in declared if each.name != library])
    done = forgetful.run(forgetful.python, "-c", IMPORT.format(names=imports(wheel, "ferry", but=ON_EXTRAS)))
    assert done.returncode == 1
    assert f"No module named '{library}'" in done.stderr


def test_workers_of_spark_need_no_more_than_the_page_says(tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / "airflow.md").read_text()
    found = re.search(r"What Ferry imports \(([^)]*)\)", page)
    assert found is not None
    worker = bare(tmp_path / "worker")
    lend(closure(Requirement(name) for name in re.findall(r"`([^`]+)`", found[1])), worker.site)
    package = zip_package(tmp_path / "ferry.zip")
    (worker.site / "ferry.pth").write_text(f"{package}\n")
    worker.said(IMPORT.format(names=["ferry.run.spark.stage", "ferry.copy.task"]))
