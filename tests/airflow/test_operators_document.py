"""docs/operators.md has each function and operator for authors of DAGs, as the code has it."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator, PartitionedAssetTimetable

from ferry_airflow import (
    backfill,
    drill_operators,
    groups_operators,
    operators,
    sensors,
    switch_operators,
    verify_operators,
)
from ferry_airflow.naming import VERBS
from ferry_airflow.overrides import FERRYS, OF_THE_FILE, DagOverrides
from tests.airflow.conftest import ROOT, SHOWN_GROUP, SHOWN_HOURS, example

PAGE = (ROOT / "docs" / "operators.md").read_text()
FENCED = re.compile(r"^from (ferry_airflow\.\w+) import (\w+)\n\n(\2\(.*)$", re.MULTILINE)
TABLE = re.compile(r"^\| operator of `(ferry_airflow\.\w+)` .*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
ROW = re.compile(r"^\| `((\w+)\(.*?)` \|", re.MULTILINE)
SHOWN = {(module, name): text for module, name, text in FENCED.findall(PAGE)} | {
    (module, name): text for module, rows in TABLE.findall(PAGE) for text, name in ROW.findall(rows)
}
EXAMPLE = example("operators", SHOWN_GROUP)
BASES = {"SwitchOperator", "AskingOperator", "_FlowSensor"}
MODULES = (operators, sensors, verify_operators, groups_operators, backfill, drill_operators, switch_operators)


def section(title: str) -> str:
    """What is below a heading, up to the next."""
    return re.split(r"^#+ ", PAGE.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(text: str) -> set[str]:
    """The names in the first cells of a table."""
    return {
        name for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]*)`", row)
    }


def _flows(folder: Path) -> Path:
    """A file with the flow of the examples."""
    file = folder / "flows.properties"
    file.write_text(
        "clusters = primary, backup\nprimary.bootstrap.servers = h:1\nbackup.bootstrap.servers = h:2\n"
        "primary->backup.enabled = true\n"
    )
    return file


def test_the_example_has_the_group_between_its_own_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tests/airflow/test_grouped.py` runs it."""
    monkeypatch.setenv("FERRY_CONFIG", str(_flows(tmp_path)))
    found: dict[str, Any] = {}
    exec(EXAMPLE.replace("\n\ncopy_orders()", "\n\nmade = copy_orders()"), found)
    made = found["made"]
    assert made.get_task("before").downstream_task_ids == {"orders.plan"}
    assert made.get_task("after").upstream_task_ids == {"orders.report"}


def test_the_example_of_hours_waits_after_the_group_and_starts_the_other_dag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tests/airflow/test_grouped.py` runs it."""
    monkeypatch.setenv("FERRY_CONFIG", str(_flows(tmp_path)))
    found: dict[str, Any] = {}
    exec(example("operators", SHOWN_HOURS), found)
    assert found["copy_hours"].get_task("nothing_left").upstream_task_ids == {"hours.report"}
    assert isinstance(found["read_hours"].timetable, PartitionedAssetTimetable)
    assert found["read_hours"].task_ids == ["read"]


@pytest.mark.parametrize(("module", "name"), SHOWN)
def test_a_signature_is_that_of_the_code(module: str, name: str) -> None:
    shown = getattr(importlib.import_module(module), name)
    assert SHOWN[module, name] == name + str(inspect.signature(shown)).replace("'", "")


def test_each_operator_is_on_the_page() -> None:
    here = {
        (module.__name__, name)
        for module in MODULES
        for name, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, BaseOperator) and one.__module__ == module.__name__ and name not in BASES
    }
    functions = {
        ("ferry_airflow.task_group", "ferry_task_group"),
        ("ferry_airflow.copied", "copied_asset"),
        ("ferry_airflow.dags", "flow_dags"),
    }
    assert set(SHOWN) == here | functions


@pytest.mark.parametrize(("module", "name"), [key for key in SHOWN if key[1].endswith("Operator")])
def test_the_templated_fields_are_those_that_the_page_has(module: str, name: str) -> None:
    one = getattr(importlib.import_module(module), name)
    of_spark = SparkSubmitOperator.template_fields if issubclass(one, SparkSubmitOperator) else ()
    own = [field for field in one.template_fields if field not in of_spark]
    assert [field for field in own if field != "subject"] == ["config", "flow"]
    assert ("subject" in own) is ("Approval" in name)


@pytest.mark.parametrize(("module", "name"), [key for key in SHOWN if key[1].endswith("Sensor")])
def test_the_templated_fields_of_a_sensor_are_those_that_the_page_has(module: str, name: str) -> None:
    one = getattr(importlib.import_module(module), name)
    of_all = re.search(r"The templated fields are (.*?)\.", section("Sensors"), re.DOTALL)
    assert of_all is not None
    named = set(re.findall(r"`(\w+)`", of_all[1]))
    own = set(one.template_fields)
    assert {field for field in own if not field.startswith("below_")} <= named
    assert named - {"until"} <= own
    assert ("until" in own) is (name == "FerryCaughtUpSensor")


def test_the_overrides_are_those_that_the_page_has() -> None:
    text = section("flow_dags")
    assert first_cells(text) == set(DagOverrides.__annotations__)
    refused = text.partition("Any other name")[2]
    for name in (*OF_THE_FILE, *FERRYS):
        assert f"`{name}`" in refused
    (roles,) = (row for row in text.splitlines() if row.startswith("| `dag_display_name`"))
    found = set(re.findall(r"`(\w+)`", roles)) - {"dag_display_name"}
    assert found == {"copy", "verify", "groups", "backfill", "drill", *VERBS}


def test_each_button_has_the_name_that_the_page_has() -> None:
    for module, name in SHOWN:
        one = getattr(importlib.import_module(module), name)
        names = [link.name for link in getattr(one, "operator_extra_links", ())]
        whole = Path(inspect.getfile(one)).stem
        if name in ("DrillOperator", "RehearsalOperator", "SwitchReportOperator"):
            assert names == ["Report"]
        elif whole in ("operators", "backfill") or name == "FerryVerifyRunOperator":
            assert names == ["Receipts"]
        elif name in ("FerryVerifyOperator", "FerrySyncGroupsOperator"):
            assert names == ["Result"]
        else:
            assert names == []
