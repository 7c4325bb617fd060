"""What `make quick FILE=...` runs: tools/tests_of.py on this repository's files."""

from __future__ import annotations

import importlib.util
import re
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
    assert {f"pure/scripted/test_{name}.py" for name in ("copies", "machine", "clauses")} <= {*found}
    assert len(found) == len({*found})


HUBS = [
    *("errors", "model/__init__", "kafka/connect/__init__", "kafka/connect/codes", "kafka/connect/cluster"),
    *("protocol/names", "protocol/slot", "ledger/ledger", "copy/kafka_slot"),
]
"""Files that many pure tests import, or long ones."""


@pytest.mark.slow
@pytest.mark.parametrize("hub", HUBS)
def test_a_file_that_many_import_takes_seconds_and_what_is_left_out_is_counted(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], hub: str
) -> None:
    assert tool.main(f"src/ferry/{hub}.py") == 0
    said = capsys.readouterr()
    found = [one.removeprefix("tests/") for one in said.out.split()]
    assert len(found) == len({*found})
    kept = read(KEPT)
    assert sum(kept.get(one, tool.UNLISTED_SECONDS) for one in found) <= tool.SECONDS
    name = "ferry." + hub.removesuffix("/__init__").replace("/", ".")
    importing = {
        file.relative_to(ROOT / "tests").as_posix()
        for file in (ROOT / "tests" / "pure").rglob("test_*.py")
        if f"\nfrom {name} import" in (text := file.read_text()) and not re.search("^pytestmark.*slow", text, re.M)
    }
    left, themselves = map(int, re.findall(r"\d+", said.err))
    assert left >= themselves >= len(importing - {*found})
    assert len(importing & {*found}) >= min(len(importing), tool.MOST // 2)


def test_a_long_file_is_left_out_and_shorter_ones_follow(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = "src/ferry/config/settings.py"
    before = chosen(tool, capsys, file)
    monkeypatch.setattr(tool, "read", lambda _: {before[1]: tool.SECONDS})
    after = chosen(tool, capsys, file)
    assert before[1] not in after
    assert after[:2] == [before[0], before[2]]


def test_a_file_runs_though_it_takes_longer_where_there_is_no_other(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "SECONDS", 0.0)
    assert len(chosen(tool, capsys, "src/ferry/config/settings.py")) == 1


@pytest.mark.parametrize(
    "file",
    [
        "src/ferry/copy/produce_queue.py",
        "src/ferry/ledger/history.py",
        "src/ferry/features/groups/acts/checkpoint.py",  # the table has options for one of its faults
    ],
)
def test_the_tests_that_notice_faults_of_a_file_run(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
    words = [word for one in table.values() if one["file"] == file for word in one["tests"].split()]
    named = {word.partition("::")[0].removeprefix("tests/") for word in words if word.startswith("tests/")}
    found = chosen(tool, capsys, file)
    assert named
    assert {*found[: len(named)]} == named
    assert all((ROOT / "tests" / one).is_file() for one in found)


def test_of_a_folder_that_notices_faults_all_tests_run(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    files = {file.relative_to(ROOT / "tests").as_posix() for file in (ROOT / "tests/pure/protocol").glob("test_*.py")}
    assert files <= {*chosen(tool, capsys, "src/ferry/protocol/slot.py")}


def test_a_file_of_slow_tests_is_not_taken(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    found = chosen(tool, capsys, "src/ferry/features/groups/rules/outside.py")
    assert "pure/answers/test_left_groups.py" not in found


def test_what_is_further_away_takes_no_seconds(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    found = chosen(tool, capsys, "src/ferry/run/worker.py")
    assert len(found) == tool.MOST
    assert not {*found} & read(KEPT).keys()


def test_a_file_that_no_pure_test_reaches_is_named(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main("tests/soak/steady/copies.py") == 2
    assert capsys.readouterr().out == ""
