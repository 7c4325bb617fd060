"""Answers that nobody reads, or that cannot be written; values that do not fit, and folders that are not there."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from ferry.cli import app
from ferry.cli.output import print_error, print_warning
from ferry.program import program
from tests.golden import Golden
from tests.program import PROGRAM, environment, warm_ferry

UNPRIVILEGED = (
    ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"] if not os.getuid() else []
)
"""What takes from root the right to read what nobody may read."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A flow between clusters that are never asked."""
    path = tmp_path / "flow.properties"
    path.write_text(
        "clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:2\n"
        "a->b.enabled = true\na->b.topics = orders\n"
    )
    return path


@pytest.mark.parametrize("arguments", [["flows"], ["flows", "--json"], ["--help"]])
def test_a_reader_that_leaves_changes_no_exit_code(config: Path, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE, env=environment(config), check=False
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_keeps_its_code_where_nobody_reads(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [PROGRAM, "flows", "--json"], stdout=write, stderr=write, env=environment(tmp_path / "none"), check=False
        )
    finally:
        os.close(write)
    assert done.returncode == 2


@pytest.mark.parametrize("arguments", [["flows"], ["flows", "--json"]])
def test_a_full_disk_is_one_sentence(config: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, env=environment(config), check=False, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("ferry: ")
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(("arguments", "code"), [(["flows"], 1), (["flows", "--json"], 1), (["flows", "--nope"], 2)])
def test_a_closed_output_is_one_sentence(config: Path, arguments: list[str], code: int) -> None:
    line = shlex.join([str(PROGRAM), *arguments])
    said = config.with_name("said")
    done = subprocess.run(["sh", "-c", f"{line} 2>{shlex.quote(str(said))} >&-"], env=environment(config), check=False)
    assert done.returncode == code
    assert said.read_text().startswith("ferry: ")
    assert said.read_text().count("\n") == 1, said.read_text()
    done = subprocess.run(["sh", "-c", f"{line} >&- 2>&- <&-"], env=environment(config), check=False)
    assert done.returncode == code


def test_a_terminal_that_lacks_a_letter_gets_its_code(config: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "plan", "--explain", "\u00fc"],
        capture_output=True,
        env={**environment(config), "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"group \xfc:" in done.stdout


@pytest.mark.parametrize(
    ("line", "value", "remedy"),
    [
        ("run --max-bytes 10PB", "'10PB'", "size of at least 1 byte 10GB"),
        ("run --max-seconds 10y", "'10y'", "duration 15m"),
        ("lag --patience 1x", "'1x'", "duration 15m"),
        ("skip --to -1", "-1", "at least 0"),
        ("metrics serve --port 99999", "99999", "to 65535"),
        ("ledger --last 0", "0", "at least 1"),
        ("dev up --brokers x", "'x'", "whole number"),
        ("dev up --seconds inf", "'inf'", "365d"),
        ("lag --patience inf", "'inf'", "from 0.1s to 365d"),
        ("drills full --stay 400d", "'400d'", "at most 365d"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_what_would(config: Path, line: str, value: str, remedy: str) -> None:
    answer = warm_ferry(*line.split(), config=config)
    assert answer.code == 2
    option = next(word for word in line.split() if word.startswith("--"))
    said = answer.err.removeprefix("ferry: ")
    assert said.startswith(f"{option} {value} ")
    assert said.count("\n") == 1
    assert all(word in said for word in remedy.split()), said
    assert "Input should" not in said


def test_a_mistyped_folder_is_named(config: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nope"
    for line in ("reports list", "dev status --home", "dev down --home"):
        answer = warm_ferry(*line.split(), nowhere, config=config)
        assert (answer.code, answer.out) == (2, ""), line
        assert str(nowhere) in answer.err


def test_a_file_in_the_place_of_a_folder_is_named(config: Path) -> None:
    lines = ("dev up --home", "dev up --dry-run --home", "dev status --home", "dev down --home", "reports list")
    for line in lines:
        for place in (config, config / "below"):
            answer = warm_ferry(*line.split(), place, config=config)
            assert (answer.code, answer.out) == (2, ""), line
            assert str(config) in answer.err
            assert answer.err.count("\n") == 1, answer.err


def test_a_folder_in_the_place_of_a_file_is_named(config: Path, tmp_path: Path, golden: Golden) -> None:
    for line in ("flows --config", "--config", "plan --config", "config check"):
        more = ["flows"] if line == "--config" else []
        answer = warm_ferry(*line.split(), tmp_path, *more, config=config)
        assert (answer.code, answer.out) == (2, "")
        golden(answer.err)


@pytest.mark.parametrize("line", ["list", "verify --chain-only"])
def test_a_folder_that_may_not_be_read_is_named(config: Path, tmp_path: Path, line: str, golden: Golden) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    done = subprocess.run(
        [*UNPRIVILEGED, PROGRAM, "reports", *line.split(), closed / "reports"],
        capture_output=True,
        text=True,
        env=environment(config),
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    golden(done.stderr)


def test_what_the_machine_refuses_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/srv/closed")

    monkeypatch.setattr(app, "_clusters_first", refused)
    assert app._run(program, ["flows", "--json"]) == 1
    said = capsys.readouterr()
    golden(said.err)
    assert said.err.count("\n") == 1
    assert json.loads(said.out)["error"]["kind"] == "machine"
    assert app._run(program, ["flows", "--verbose"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_folder_without_a_report_is_not_listed_as_one_of_reports(config: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, ""):
        answer = warm_ferry("reports", "list", folder, config=config)
        assert (answer.code, answer.out) == (2, "")
        assert "DIR" in answer.err


def test_a_damaged_report_is_not_left_out_in_silence(config: Path, tmp_path: Path) -> None:
    (tmp_path / "report-000001.json").write_text("[1]")
    for more in ([], ["--json"]):
        answer = warm_ferry("reports", "list", tmp_path, *more, config=config)
        assert answer.code == 1
        assert "report-000001.json" in answer.err
        assert "ferry reports verify" in answer.err


def test_a_damaged_record_of_a_cluster_is_named(config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "home" / "source" / "cluster.json"
    kept.parent.mkdir(parents=True)
    for content in ("{}", '{"nodes": 3}', '{"nodes": [], "spec": [], "cluster_id": ""}'):
        kept.write_text(content)
        answer = warm_ferry("dev", "status", "--home", tmp_path / "home", config=config)
        assert (answer.code, answer.out) == (2, "")
        assert str(kept) in answer.err
        assert answer.err.count("\n") == 1, answer.err
    kept.unlink()
    kept.mkdir()
    answer = warm_ferry("dev", "status", "--home", tmp_path / "home", config=config)
    assert (answer.code, str(kept) in answer.err) == (2, True)


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--json",)])
def test_a_missing_folder_that_the_file_names_is_an_error(config: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    nowhere = tmp_path / "later"
    config.write_text(f"{config.read_text()}ferry.report.dir = {nowhere}\n")
    answer = warm_ferry("reports", "list", *more, config=config)
    assert answer.code == 2
    assert (str(nowhere) in answer.err, "ferry.report.dir" in answer.err) == (True, True)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_folder_of_the_file_without_a_report_is_a_warning(config: Path, tmp_path: Path, is_named: bool) -> None:
    folder = tmp_path / "empty"
    if is_named:
        folder.mkdir()  # as a drill leaves it that wrote none
        config.write_text(f"{config.read_text()}ferry.report.dir = {folder}\n")
    answer = warm_ferry("reports", "list", "--json", config=config)
    assert (answer.code, json.loads(answer.out)["reports"]) == (0, [])
    assert (str(folder) if is_named else "ferry-reports") in answer.err


def test_what_others_named_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Group ids and what a hook says are others' texts, and stand in sentences."""
    print_error("\x1b]0;owned\x07\x1b[2J")
    print_warning("\x9b2J")
    err = capsys.readouterr().err
    assert err == "ferry: \\x1b]0;owned\\x07\\x1b[2J\nferry: warning: \\x9b2J\n"
