"""Where a configuration comes from: standard input, a file of another kind, FERRY_CONFIG; and flows in another form."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from ferry.program import main
from tests.golden import Golden

FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
b->a.enabled = true
"""
OTHERS = {
    "object.json": '{"clusters": "a, b"}',
    "array.json": '\n\n["a"]',
    "xml": '<?xml version="1.0"?>\n<properties/>',
    "section.ini": "# mirror\n[clusters]\na = 1",
    "start.yaml": "---\nclusters: a",
    "list.yaml": "clusters:\n  - a\n  - b\n",
    "nested.yaml": "# ours\nclusters:\n  a:\n    bootstrap.servers: x:1\n",
}
"""Files of other kinds, by their names."""


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code, *capsys.readouterr()


def given(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_check_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given(monkeypatch, FILE.encode())
    code, out, _ = answer(capsys, "config", "check", "-", "--json")
    assert (code, [flow["source"] for flow in json.loads(out)["flows"]]) == (0, ["a", "b"])


def test_a_mistake_on_standard_input_has_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, (FILE + "ferry.shedule = @daily\n").encode())
    code, out, _ = answer(capsys, "config", "check", "-", "--quiet")
    assert (code, "<standard input>:7: ferry.shedule" in out) == (2, True)
    given(monkeypatch, b"clusters = \xff")
    code, _, err = answer(capsys, "config", "check", "-")
    assert (code, "<standard input>:1: byte 0xff" in err) == (2, True)


def test_what_standard_input_had_is_corrected_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, FILE.replace("clusters = a, b", "cluster = a, b").encode())
    code, _, _ = answer(capsys, "config", "check", "-", "--fix", str(tmp_path / "out.properties"))
    assert code == 0
    assert "clusters = a, b" in (tmp_path / "out.properties").read_text()
    assert (tmp_path / "out.properties").stat().st_mode & 0o777 == 0o600  # it may hold passwords


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("words", [["config", "check"], ["flows", "--config"]], ids=" ".join)
def test_a_file_of_another_kind_is_called_that(
    name: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = tmp_path / name
    path.write_text(OTHERS[name])
    code, out, err = answer(capsys, *words, str(path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    golden(err.removeprefix("ferry: "))


@pytest.mark.parametrize(
    "text",
    ["clusters: a, b\n", "topics:\n\nclusters = a\n", "! mirror\n - = x\n", "  clusters:a\n\ttopics.exclude:\n"],
)
def test_a_properties_file_with_colons_is_one(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(text)
    _, out, err = answer(capsys, "config", "check", str(path))
    assert "properties file" not in out + err
    assert "error" in out


@pytest.mark.parametrize(
    ("lines", "cells", "found"),
    [
        ("ferry.schedule = none", "-", (None, None, None)),
        ("ferry.schedule = @daily", "@daily", ("@daily", None, None)),
        ("ferry.schedule = none\nferry.schedule.lag.records = 1000", "1000 records", (None, 1000, None)),
        (
            "ferry.schedule = @daily\nferry.schedule.lag.records = 1\nferry.schedule.lag.seconds = 600",
            "600 s",
            ("@daily", 1, 600),
        ),
    ],
)
def test_what_starts_the_runs_of_a_flow_is_listed_a_lag_as_well(
    lines: str,
    cells: str,
    found: tuple[str | None, int | None, int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "flows.properties"
    path.write_text(f"{FILE}{lines}\n")
    _, out, _ = answer(capsys, "flows", "--config", str(path))
    assert all(line.rstrip().endswith(cells) for line in out.splitlines() if "->" in line), out
    _, out, _ = answer(capsys, "flows", "--config", str(path), "--json")
    assert {(one["schedule"], one["lag_records"], one["lag_seconds"]) for one in json.loads(out)["flows"]} == {found}


@pytest.mark.parametrize("words", [["flows"], ["config", "check"], ["lag", "a->b"]], ids=" ".join)
def test_a_file_that_ferry_config_names_is_called_that(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    nowhere = tmp_path / "nope"
    monkeypatch.setenv("FERRY_CONFIG", str(nowhere))
    code, _, err = answer(capsys, *words)
    assert (code, "FERRY_CONFIG" in err) == (2, True)
    golden(err)
    _, _, named = answer(capsys, "--config", str(nowhere), *words)
    assert "FERRY_CONFIG" not in named


@pytest.mark.parametrize("flow", ["a", "a->", "->b", "a->b->c", "a=>b"])
def test_a_flow_in_another_form_is_answered_with_the_flows(
    flow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    code, _, err = answer(capsys, "lag", "--config", str(path), "--", flow)
    assert code == 2
    golden(err.removeprefix("ferry: "))
