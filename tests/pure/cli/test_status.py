"""`ferry status`: a flow that cannot be read is not known, and the others are shown."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.commands import status
from ferry.config.flow.flow import FlowConfig
from ferry.errors import Unreachable
from ferry.plan import lag
from ferry.plan.rules.lag_start import LaneState
from ferry.program import main

FILE = """clusters = a, b, c
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
c.bootstrap.servers = c:1
a->b.enabled = true
a->c.enabled = true
topics = orders
a->b.ferry.schedule = @hourly
"""


def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(file), *words])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


@pytest.fixture(autouse=True)
def _one_of_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(flow: FlowConfig, *, patience_s: float) -> tuple[list[Any], LaneState]:
        if flow.flow.target == "c":
            raise Unreachable(f"cluster c does not answer within {patience_s:g} s")
        return [], LaneState(paused=frozenset({"orders"}))

    monkeypatch.setattr(lag, "look_at_lag", look)


def test_a_flow_whose_cluster_does_not_answer_is_not_known_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(tmp_path, capsys, "--json")
    there, gone = json.loads(out)["flows"]
    assert code == 1
    assert (there["flow"], there["state"], there["why"], there["paused"]) == ("a->b", None, "", ["orders"])
    assert there["next_ms"] is not None
    assert (gone["flow"], gone["lag"], gone["next_ms"]) == ("a->c", None, None)
    assert "does not answer" in gone["why"]


def test_people_see_both_and_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(tmp_path, capsys)
    assert "never ran" in out
    assert "a->c: not known: cluster c does not answer" in out
    assert "orders is paused" in out


def test_watching_is_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(tmp_path, capsys, "--watch", "5", "--json")
    assert (code, "--watch" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "seconds"), [(("--watch", "7"), 7), (("--watch",), 10), (("--watch", "--quiet"), 10), (("--watch=3",), 3)]
)
def test_the_table_comes_again_until_the_user_interrupts(
    words: tuple[str, ...],
    seconds: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "time", SimpleNamespace(sleep=wait))
    code, out, _ = asked(tmp_path, capsys, *words)
    assert (code, waited) == (130, [seconds, seconds])
    assert out.count("never ran") == 2
