"""`ferry config check` as a user sees it."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ferry.cli.app import main

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "config-check.json"
FILE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092, broker-2:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
west->east.topics = orders.*
topics.exclude = x
west->east.emit.heartbeats.interval.seconds = 5
east.offset.storage.topic = mine
west.ssl.key.password = geheim
east->west.topics = back
"""


class Run:
    """One run of the program in this process."""

    def __init__(self, *arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        self.code = ended.value.code
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def test_every_value_has_its_origin(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run("config", "check", file, capsys=capsys)
    assert (run.code, run.err) == (0, "")
    rows = {" ".join(line.split()) for line in run.out.splitlines()}
    assert "line 5 topics orders.*" in rows
    assert "line 6 topics.exclude x" in rows
    assert "default groups .*" in rows
    assert "line 7 emit.heartbeats.interval.seconds 5" in rows
    assert "line 9 source.*.ssl.key.password [hidden]" in rows
    assert "line 2 west broker-1:9092,broker-2:9092" in rows
    assert "flow east->west: not enabled" in rows
    assert any(row.startswith("8 east.offset.storage.topic Ferry keeps no state") for row in rows)
    assert "0 errors, 0 warnings" in rows
    assert "geheim" not in run.out


@pytest.mark.parametrize("name", ["consumer.isolation.level", "sync.group.offsets.enabled", "exactly.once"])
def test_departures_from_mirror_maker_are_said(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = Run("config", "check", file, capsys=capsys).out
    assert f"not MirrorMaker 2's default: {name}" in out


def test_a_value_in_the_file_wins_over_a_departure(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}sync.group.offsets.enabled = false\nwest.consumer.isolation.level = read_uncommitted\n")
    out = Run("config", "check", file, capsys=capsys).out
    assert "default: sync.group" not in out
    assert "default: consumer.isolation" not in out


def test_json_is_as_its_schema_says(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}taks.max = 1\nreplication.factor = 0\n")
    run = Run("config", "check", file, "--json", capsys=capsys)
    assert run.code == 2
    body = json.loads(run.out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert [cluster["alias"] for cluster in body["clusters"]] == ["west", "east"]
    there, back = body["flows"]
    assert (there["source"], there["target"], there["enabled"], there["topics"]) == ("west", "east", True, ["orders.*"])
    assert back == {"source": "east", "target": "west", "enabled": False}
    assert [(problem["line"], problem["key"], problem["severity"]) for problem in body["problems"]] == [
        (11, "taks.max", "warning"),
        (12, "replication.factor", "error"),
    ]
    assert "geheim" not in run.out


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 2)])
def test_unknown_keys_fail_only_with_strict(
    strict: tuple[str, ...], code: int, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{FILE}taks.max = 1\n")
    run = Run("config", "check", file, *strict, capsys=capsys)
    assert run.code == code
    assert f"{file}:11: taks.max: is not known; did you mean tasks.max?" in run.out
