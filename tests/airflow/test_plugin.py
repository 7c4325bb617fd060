"""The file of the plugins folder: Airflow shows an import error for a plugin that an installation has, too."""

from __future__ import annotations

import importlib.metadata
import runpy
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from airflow.plugins_manager import AirflowPlugin

ROOT = Path(__file__).resolve().parents[2]

INSTALLED = EntryPoint(name="ferry", value="ferry_airflow.plugin:FerryPlugin", group="airflow.plugins")


@pytest.mark.parametrize(("found", "plugins"), [((), ["ferry"]), ((INSTALLED,), [])])
def test_airflow_finds_the_plugin_once(
    monkeypatch: pytest.MonkeyPatch, found: tuple[EntryPoint, ...], plugins: list[str]
) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: found)
    defined = runpy.run_path(str(ROOT / "plugins" / "ferry_plugin.py"))
    classes = [one for one in defined.values() if isinstance(one, type) and issubclass(one, AirflowPlugin)]
    assert [one.name for one in classes] == plugins
