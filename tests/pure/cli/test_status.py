"""`ferry status`: a flow that cannot be read is not known, and the others are shown."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.commands import status
from ferry.commands.flow_status import FlowStatus
from ferry.config.flow.flow import FlowConfig
from ferry.errors import Unreachable
from ferry.features.observe.rules.alerts import RUNS_LOOKED_AT
from ferry.ledger.history import PastState
from ferry.model import Flow, TopicPartition
from ferry.plan import lag
from ferry.plan.rules.lag import PartitionLag
from ferry.plan.rules.lag_start import LaneState
from ferry.program import main
from tests.golden import Golden

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
    def look(flow: FlowConfig, *, patience_s: float, runs: int) -> tuple[list[Any], LaneState]:
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
    assert (gone["flow"], gone["lag"], gone["words"]) == ("a->c", None, ["unreachable"])
    assert gone["next_ms"] is not None  # the schedule is the file's
    assert "does not answer" in gone["why"]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ("never ran",)),
        ({"state": PastState.SUCCESS}, ("healthy",)),
        ({"state": PastState.OPEN}, ("running",)),
        ({"state": PastState.UNPLANNED}, ("planning",)),
        ({"state": PastState.OPEN, "silent_since_ms": 1}, ("unfinished",)),
        ({"state": PastState.PARTIAL, "over_rpo": 1}, ("partial", "behind")),
        ({"state": PastState.FAILED}, ("failed",)),
        ({"state": PastState.SUCCESS, "late": True, "over_rpo": 1}, ("behind", "late")),
        ({"state": PastState.SUCCESS, "over_rpo": 1, "paused": ("", "orders")}, ("paused",)),
        ({"state": PastState.SUCCESS, "paused": ("orders",)}, ("healthy",)),
        ({"paused": ("",)}, ("paused",)),
        ({"why": "grant DESCRIBE"}, ("not known",)),
        ({"why": "no answer", "unreachable": True}, ("unreachable",)),
    ],
)
def test_a_flow_has_the_words_of_the_page(facts: dict[str, Any], words: tuple[str, ...]) -> None:
    assert FlowStatus(flow=Flow(source="a", target="b"), lane="live", **facts).words == words


def test_people_see_both_and_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    _, out, _ = asked(tmp_path, capsys)
    assert "never ran" in out
    (gone,) = [line for line in out.splitlines() if line.startswith("a->c: ")]
    golden(gone)
    assert "orders is paused" in out


def partition(number: int, records: int | None, seconds: float | None) -> PartitionLag:
    place = TopicPartition(topic="orders", partition=number)
    return PartitionLag(
        source=place, target=place, position=0, source_end=records, records=records, bytes=None, seconds=seconds
    )


def one_flow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lags: list[PartitionLag], seen: LaneState, *lines: str
) -> Path:
    """A file with one flow and these lines, whose clusters answer with this lag and this lane."""
    monkeypatch.setattr(lag, "look_at_lag", lambda flow, *, patience_s, runs: (lags, seen))
    file = tmp_path / "one.properties"
    file.write_text("\n".join((FILE.replace("a->c.enabled = true\n", ""), *lines)))
    return file


@pytest.mark.parametrize(
    ("line", "lags", "over", "code"),
    [
        ("", [partition(0, 9, 99.0)], None, 0),
        ("ferry.rpo.records = 9", [partition(0, 9, 99.0)], 0, 0),
        ("ferry.rpo.records = 8", [partition(0, 9, 99.0), partition(1, 0, 0.0)], 1, 1),
        ("ferry.rpo.seconds = 60", [partition(0, 9, 99.0), partition(1, 1, 61.0)], 2, 1),
        ("ferry.rpo.records = 8", [partition(0, None, None)], 1, 1),
    ],
)
def test_a_lag_beyond_the_recovery_point_is_marked_and_exits_1(
    line: str,
    lags: list[PartitionLag],
    over: int | None,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = one_flow(monkeypatch, tmp_path, lags, LaneState(), line)
    for words in (["--json"], []):
        with pytest.raises(SystemExit) as ended:
            main(["status", "--config", str(file), *words])
        assert ended.value.code == code
        out = capsys.readouterr().out
        if words:
            assert [one["over_rpo"] for one in json.loads(out)["flows"]] == [over]
        else:
            assert ("behind" in out) is bool(over)


def ended_run(state: PastState, ended_ms: int) -> Any:
    """The newest run of a lane, as far as `ferry status` reads it."""
    record = SimpleNamespace(run="r1", started_ms=ended_ms - 2000)
    return SimpleNamespace(
        state=state,
        opened=SimpleNamespace(record=record),
        report=SimpleNamespace(records=5, started_ms=ended_ms - 2000, seconds=2.0),
        is_silent=lambda now_ms: False,
        progress=None,
    )


@pytest.mark.parametrize(
    ("hours", "state", "line", "late"),
    [
        (2, PastState.SUCCESS, "", False),
        (4, PastState.SUCCESS, "", True),
        (4, PastState.SUCCESS, "ferry.alert.late.intervals = 5", False),
        (4, PastState.SUCCESS, "ferry.alert.late.intervals = 0", None),
        (4, PastState.OPEN, "", True),
        (2, PastState.UNPLANNED, "", False),
    ],
)
def test_a_success_too_long_ago_for_the_schedule_is_late(
    hours: int,
    state: PastState,
    line: str,
    late: bool | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = LaneState(newest=ended_run(state, wall_ms() - hours * 3_600_000))
    file = one_flow(monkeypatch, tmp_path, [], seen, line)
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(file), "--json"])
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert (ended.value.code, flow["late"]) == (1 if late else 0, late)


@pytest.mark.parametrize(
    ("hours", "failures", "late"),
    [
        ((72,), 3, True),
        ((72, 2), 3, False),
        ((), 3, False),
        ((), RUNS_LOOKED_AT - 1, None),
    ],
    ids=["a crash loop", "a success in time", "young", "not known"],
)
def test_the_last_success_counts_whatever_the_newest_run_is(
    hours: tuple[int, ...],
    failures: int,
    late: bool | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = wall_ms()
    earlier = [
        *(ended_run(PastState.SUCCESS, now - one * 3_600_000) for one in hours),
        *(ended_run(PastState.UNPLANNED, now - (failures - at) * 300_000) for at in range(failures)),
    ]
    seen = LaneState(newest=ended_run(PastState.UNPLANNED, now - 60_000), earlier=tuple(earlier))
    file = one_flow(monkeypatch, tmp_path, [], seen)
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(file), "--json"])
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert (ended.value.code, flow["late"]) == (1 if late else 0, late)


def test_a_flow_is_not_late_by_a_schedule_that_is_a_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = LaneState(newest=ended_run(PastState.SUCCESS, wall_ms() - 86_400_000))
    file = one_flow(monkeypatch, tmp_path, [], seen)
    file.write_text(file.read_text().replace("a->b.ferry.schedule = @hourly", ""))
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(file), "--json"])
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert (ended.value.code, flow["late"]) == (0, None)


def test_the_lag_of_a_paused_flow_is_not_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = LaneState(paused=frozenset({""}))
    file = one_flow(monkeypatch, tmp_path, [partition(0, 9, 99.0)], seen, "ferry.rpo.records = 8")
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(file), "--json"])
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert (ended.value.code, flow["over_rpo"]) == (0, 1)


def test_a_paused_flow_is_not_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = LaneState(newest=ended_run(PastState.SUCCESS, wall_ms() - 14_400_000), paused=frozenset({""}))
    with pytest.raises(SystemExit) as ended:
        main(["status", "--config", str(one_flow(monkeypatch, tmp_path, [], seen)), "--json"])
    (flow,) = json.loads(capsys.readouterr().out)["flows"]
    assert (ended.value.code, flow["late"], flow["next_ms"]) == (0, None, None)


def test_watching_is_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(tmp_path, capsys, "--watch", "5", "--json")
    assert (code, "--watch" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (("--watch", "7"), 7),
        (("--watch",), 10),
        (("--watch", "--quiet"), 10),
        (("--watch=3",), 3),
        (("--watch", "--patience", "1"), 10),
        (("--watch", "--quiet", "--patience", "1"), 10),
    ],
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
    assert out.count("newest run") == 2
