"""What `make mutants` says of faults that tests notice, or do not, and of tests that fail without any."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.golden import Golden

ROOT = Path(__file__).parents[2]
AREAS = (
    *("write", "copy", "fetch", "plan", "ledger", "groups"),
    *("verify", "switch", "spark", "sink", "rows", "identical"),
)
HANGS = -1
"""Stands for tests that do not end; other numbers are pytest's exit codes."""

Run = Callable[..., int]


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give the tool faults by their names, with the exit codes of their tests, and run it; its exit code.

    `without` is the exit code of tests without a fault, `reason` what the table says of every fault.
    """

    def ran(codes: dict[str, int], *names: str, without: int = 0, reason: str = "", said: str = "") -> int:
        (tmp_path / "src").mkdir()
        (tmp_path / "src" / "a.py").write_text("right")
        one = {"what": "it", "file": "src/a.py", "old": "right", "tests": "tests/pure/test_a.py"}
        because = {"survives": reason} if reason else {}
        rows = {name: {**one, **because, "new": str(code)} for name, code in codes.items()}
        table = "".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items())
            for name, row in rows.items()
        )
        (tmp_path / "table.toml").write_text(table)

        def pytest_run(command: list[str], *, env: dict[str, str], timeout: float, **_: Any) -> SimpleNamespace:
            folder = Path(env["PYTHONPATH"].partition(":")[0])
            text = (folder / "a.py").read_text()
            code = without if text == "right" else int(text)
            if code == HANGS:
                raise subprocess.TimeoutExpired(command, timeout)
            return SimpleNamespace(returncode=code, stdout=said if text != "right" else "", stderr="")

        for name, value in {"ROOT": tmp_path, "TABLE": tmp_path / "table.toml", "SOURCES": ("src",)}.items():
            monkeypatch.setattr(tool, name, value)
        monkeypatch.setattr(subprocess, "run", pytest_run)
        return int(tool.main(list(names)))

    return ran


def test_faults_that_are_noticed_are_counted_by_area(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run({f"{area}-x": 1 for area in AREAS}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines[-1 - len(AREAS) :]] == [
        *([area, "1", "of", "1,"] for area in AREAS),
        ["all", str(len(AREAS)), "of", f"{len(AREAS)},"],
    ]


@pytest.mark.parametrize("without", [1, HANGS])
def test_tests_that_fail_without_a_fault_stop_it_with_one_sentence(
    run: Run, without: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run({"copy-x": 1}, without=without)
    assert "tests/pure/test_a.py" in str(stopped.value)
    assert str(stopped.value).count("\n") == 0
    assert "killed" not in capsys.readouterr().out


@pytest.mark.parametrize(("code", "said"), [(HANGS, ""), (1, "Failed: Timeout (>30.0s) from pytest-timeout.")])
def test_a_timeout_notices_and_is_told_apart(
    run: Run, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run({"copy-x": code}, said=said) == 0
    out = capsys.readouterr().out
    assert ("timed out" in out, "killed" in out) == (True, False)


def test_a_fault_that_survives_without_a_reason_is_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run({**{f"plan-{number}": 1 for number in range(99)}, "plan-left": 0}) == 1
    assert "plan-left" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("area", "noticed", "code"),
    [("plan", 9, 0), ("plan", 8, 1), ("copy", 19, 0), ("copy", 18, 1), ("write", 18, 1)],
)
def test_reasons_hold_for_few_faults_alone(run: Run, area: str, noticed: int, code: int) -> None:
    faults = {f"{area}-{number}": 1 for number in range(noticed)}
    more = 10 if area == "plan" else 20
    left = {f"{area}-{number}": 0 for number in range(noticed, more)}
    assert run({**faults, **left}, reason="it costs time only") == code


def test_names_that_no_fault_has_are_refused(run: Run, golden: Golden) -> None:
    with pytest.raises(SystemExit) as caught:
        run({"copy-x": 1}, "cpoy")
    golden(str(caught.value))


def test_each_fault_of_the_table_is_of_an_area(tool: ModuleType) -> None:
    found = tool.tomllib.loads(tool.TABLE.read_text())
    assert {name.partition("-")[0] for name in found} == set(tool.AREAS) == set(AREAS)


def test_each_fault_of_the_table_can_be_put_into_its_file(tool: ModuleType) -> None:
    root = Path(tool.ROOT)
    for name, fault in tool.tomllib.loads(tool.TABLE.read_text()).items():
        assert ((root / fault["file"]).read_text().count(fault["old"]), name) == (1, name)
        for path in (one.split("::")[0] for one in fault["tests"].split() if "/" in one):
            assert (path.startswith("tests/pure/"), (root / path).exists()) == (True, True), (name, path)
