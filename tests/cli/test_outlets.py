"""Answers that nobody reads, or that cannot be written; values that do not fit, and folders that are not there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, environment, warm_ferry


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


@pytest.mark.parametrize(
    ("line", "value", "remedy"),
    [
        ("run --max-bytes 10GB", "'10GB'", "whole number of at least 1"),
        ("run --max-seconds 10m", "'10m'", "whole number"),
        ("lag --patience 1s", "'1s'", "number"),
        ("skip --to -1", "-1", "at least 0"),
        ("metrics serve --port 99999", "99999", "to 65535"),
        ("ledger --last 0", "0", "at least 1"),
        ("dev up --brokers x", "'x'", "whole number"),
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


def test_a_folder_of_the_file_that_is_not_there_yet_has_no_report(config: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "later"
    config.write_text(f"{config.read_text()}ferry.report.dir = {nowhere}\n")
    answer = warm_ferry("reports", "list", "--json", config=config)
    assert answer.code == 0
    assert json.loads(answer.out)["reports"] == []
    assert str(nowhere) in answer.err
