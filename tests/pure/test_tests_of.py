"""What `make quick FILE=...` runs: tools/tests_of.py on this repository's files."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.durations import KEPT, read

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tests_of", ROOT / "tools" / "tests_of.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(tool: ModuleType, capsys: pytest.CaptureFixture[str], file: str) -> list[str]:
    assert tool.main(file) == 0
    return [one.removeprefix("tests/") for one in capsys.readouterr().out.split()]


def test_the_slot_has_the_tests_of_the_scripted_brokers(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    found = chosen(tool, capsys, "src/ferry/copy/kafka_slot.py")
    assert {f"pure/scripted/test_{name}.py" for name in ("every_answer", "copies", "machine", "clauses")} <= {*found}
    assert len(found) == len({*found})


def test_who_imports_a_file_is_not_left_out_however_long_it_takes(
    tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    found = chosen(tool, capsys, "src/ferry/protocol/names.py")
    direct = {
        str(one.relative_to(ROOT / "tests"))
        for one in (ROOT / "tests" / "pure").rglob("test_*.py")
        if "\nfrom ferry.protocol.names import" in one.read_text()
    }
    assert direct & read(KEPT).keys()
    assert len(direct) > tool.MOST
    assert direct <= {*found}


@pytest.mark.parametrize("file", ["src/ferry/copy/produce_queue.py", "src/ferry/ledger/history.py"])
def test_the_tests_that_notice_faults_of_a_file_run(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
    named = {test.partition("::")[0] for one in table.values() if one["file"] == file for test in one["tests"].split()}
    assert named
    assert {one.removeprefix("tests/") for one in named} <= {*chosen(tool, capsys, file)}


def test_what_is_further_away_takes_no_seconds(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    found = chosen(tool, capsys, "src/ferry/run/worker.py")
    assert len(found) == tool.MOST
    assert not {*found} & read(KEPT).keys()


def test_a_file_that_no_pure_test_reaches_is_named(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main("tests/soak/steady/copies.py") == 2
    assert capsys.readouterr().out == ""
