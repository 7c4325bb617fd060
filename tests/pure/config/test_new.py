"""`ferry config new`: a first file that works."""

import io
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ferry.config.settings import load
from ferry.program import main
from tests.golden import Golden, brief

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "config-new.json"
BROKERS = ["--source-servers", "a:9092,b:9092", "--target-servers", "c:9093"]


def run(*arguments: str | Path) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(["config", "new", *map(str, arguments)])
    return ended.value.code


def test_options_say_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mm2.properties"
    authorities = tmp_path / "ca.pem"
    authorities.write_text("not looked at before a client is made")
    code = run(
        out,
        *BROKERS,
        "--source",
        "west",
        "--target",
        "east",
        "--topics",
        "orders.*, pay",
        "--target-ca",
        authorities,
        "--source-tls",
    )
    assert code == 2
    assert capsys.readouterr().err.startswith("ferry: --target-ca: ")
    assert not out.exists()
    assert (
        run(out, *BROKERS, "--source", "west", "--topics", r"orders\d, pay", "--source-tls", "--target-plain", "--json")
        == 0
    )
    body = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert body == {"file": str(out), "flow": "west->backup", "warnings": [], "dry_run": False}
    flow = load(out).flow("west->backup")
    assert flow.topics.filter.include.items == (r"orders\d", "pay")
    assert flow.client("source", "admin")["security.protocol"] == "SSL"
    assert "security.protocol" not in flow.client("target", "admin")
    assert load(out).problems == ()
    assert out.stat().st_mode & 0o077 == 0


def test_the_flow_back_needs_only_to_be_uncommented(tmp_path: Path) -> None:
    out = tmp_path / "mm2.properties"
    assert run(out, *BROKERS, "--topics", r"orders\d, pay", "--source-tls", "--target-plain") == 0
    (there,) = load(out).flows
    out.write_text(out.read_text().replace("\n#backup->primary.", "\nbackup->primary."))
    both = load(out)
    assert both.problems == ()
    here = both.flow("backup->primary")
    assert here.topics.filter == there.topics.filter
    assert here.groups == there.groups
    assert both.flow("primary->backup").digest() == there.digest()


def test_a_dry_run_shows_the_file_and_refuses_what_could_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = tmp_path / "mm2.properties"
    assert run(out, *BROKERS, "--source-plain", "--target-plain", "--dry-run", "--json") == 0
    body = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert run(out, *BROKERS, "--source-plain", "--target-plain", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert not out.exists()
    assert run(out, *BROKERS, "--source-plain", "--target-plain") == 0
    assert shown == body["properties"] == out.read_text()
    capsys.readouterr()
    none = tmp_path / "none"
    for place, case in ((out, "a file that exists"), (none / "f", "no folder")):
        said = []
        for dry in ([], ["--dry-run"]):
            assert run(place, *BROKERS, *dry) == 2
            said.append(capsys.readouterr().err)
        assert said[0] == said[1]
        assert said[0].startswith(f"ferry: {place}: ")
        golden(said[0], case)
    assert not none.exists()


@pytest.mark.parametrize(
    ("options", "unsaid"),
    [
        ([], ["source", "target"]),
        (["--source-tls"], ["target"]),
        (["--target-plain"], ["source"]),
        (["--source-plain", "--target-tls"], []),
    ],
)
def test_connections_that_nobody_wanted_encrypted_are_said(
    options: list[str], unsaid: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert run(tmp_path / "f", *BROKERS, *options, "--json") == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [(f"--{side}-tls" in one, f"--{side}-plain" in one) for side, one in zip(unsaid, warnings, strict=True)] == [
        (True, True)
    ] * len(unsaid)
    for side, one in zip(unsaid, warnings, strict=True):
        golden(one, side)


def test_what_is_missing_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = io.StringIO("a:1\nn\nb:2\nn\n\n")
    monkeypatch.setattr(answers, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", answers)
    assert run(tmp_path / "f") == 0
    assert "Brokers of primary" in capsys.readouterr().out
    flow = load(tmp_path / "f").flow("primary->backup")
    assert flow.topics.filter.include.items == (".*",)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--source-servers", "a", "--target-servers", "b:1"],
        ["--source-servers", "a:1", "--target-servers", "b"],
        [*BROKERS, "--topics", "*"],
        [*BROKERS, "--source", "a b"],
        [*BROKERS, "--source", "backup"],
        [*BROKERS, "--source-plain", "--source-ca", "x.pem"],
    ],
    ids=brief,
)
def test_a_mistake_writes_nothing(
    arguments: list[str], golden: Golden, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "f", *arguments) == 2
    golden(capsys.readouterr().err)
    assert not (tmp_path / "f").exists()


def test_a_file_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    (tmp_path / "f").write_text("mine")
    assert run(tmp_path / "f", *BROKERS) == 2
    golden(capsys.readouterr().err)
    assert (tmp_path / "f").read_text() == "mine"
