"""The demo has an end, and its last word says what goes on running and how to stop it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaException

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load, parse_settings
from ferry.dev import RunningCluster
from ferry.errors import Refused, Unreachable
from ferry.features.switch.settings import SwitchSettings
from ferry_airflow.demo import __main__ as demo
from ferry_airflow.demo.compare import Compared
from ferry_airflow.demo.data import TOPICS
from ferry_airflow.home import LocalHome
from ferry_airflow.report_places import nowhere
from ferry_airflow.rest import AirflowRest
from tests.golden import Golden

FILE = """\
clusters = primary, backup
primary.bootstrap.servers = localhost:1
backup.bootstrap.servers = localhost:2
primary->backup.enabled = true
"""


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(demo, "HOME", tmp_path / ".demo")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (Refused("run r failed"), 2), (KafkaException("no broker"), 3)],
    ids=["interrupted", "refused", "no answer"],
)
@pytest.mark.parametrize("keep", [False, True])
def test_the_last_word_says_what_goes_on(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    golden: Golden,
    *,
    keep: bool,
) -> None:
    def started(**_: Any) -> Sequence[RunningCluster]:
        raise error

    monkeypatch.setattr(demo, "up_all", lambda *_, **__: started())
    assert demo.main(["--keep"] if keep else []) == code
    said = capsys.readouterr().err
    first, *_, last = said.splitlines()
    golden(first)
    assert last == (demo.GOES_ON if keep else demo.STOPPED)
    assert demo.HOME.exists() is keep


def test_every_step_has_an_end(golden: Golden) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Unreachable) as caught, demo.at_most(0.05, lambda: "waiting for nothing"):
        threading.Event().wait(30)
    golden(caught.value)
    assert signal.getsignal(signal.SIGALRM) == before
    with demo.at_most(30, lambda: ""):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


class Runs:
    """In the place of Airflow: finished runs, one more each time it is asked."""

    def __init__(self, states: Sequence[str]) -> None:
        self.states, self.asked = states, 0

    def runs(self, dag: str) -> list[dict[str, str]]:
        self.asked += 1
        return [{"dag_run_id": f"r{number}", "state": state} for number, state in enumerate(self.states[: self.asked])]

    def wait_dag(self, dag: str) -> None: ...

    def pause(self, dag: str, *, paused: bool) -> None:
        assert not paused


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> demo.Demo:
    """A demo with nothing to wait for and nothing to show."""
    monkeypatch.setattr(demo, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(demo, "show_runs", lambda *_: None)
    monkeypatch.setattr(demo, "stop_live", lambda: True)
    return demo.Demo(keep=True)


def test_runs_go_on_until_nothing_lags(monkeypatch: pytest.MonkeyPatch, steps: demo.Demo) -> None:
    lags = iter([900, 40, 7, 0])
    monkeypatch.setattr(demo, "lag", lambda _: next(lags))
    airflow = Runs(["success"] * 20)
    steps.replicate(cast("AirflowRest", airflow), flow())
    assert next(lags, None) is None
    # Three with producers; one more may have begun before they stopped, so that it is asked for another.
    assert airflow.asked >= demo.RUNS + 3


def test_where_airflow_is_is_said_before_its_runs_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], steps: demo.Demo
) -> None:
    home = LocalHome(path=demo.HOME, port=40123, environment={}, password="f0und")
    monkeypatch.setattr(steps, "fill_source", lambda: (None, None, flow(), 0))
    monkeypatch.setattr("ferry_airflow.local.start", lambda *_, **__: SimpleNamespace(home=home))

    refused = Refused("it waits")

    def waiting(*_: object) -> None:
        raise refused

    monkeypatch.setattr(demo, "AirflowRest", waiting)
    with pytest.raises(Refused) as caught:
        steps.run()
    assert caught.value is refused
    assert "Airflow: http://127.0.0.1:40123  login admin, password f0und" in capsys.readouterr().out


def test_a_failed_run_ends_the_demo(monkeypatch: pytest.MonkeyPatch, steps: demo.Demo, golden: Golden) -> None:
    monkeypatch.setattr(demo, "lag", lambda _: 900)
    with pytest.raises(Refused) as refused:
        steps.replicate(cast("AirflowRest", Runs(["success", "failed", "success", "success"])), flow())
    golden(refused.value)


def test_producers_that_ended_early_fail_the_demo(
    monkeypatch: pytest.MonkeyPatch, steps: demo.Demo, golden: Golden
) -> None:
    monkeypatch.setattr(demo, "lag", lambda _: 900)
    monkeypatch.setattr(demo, "stop_live", lambda: False)
    with pytest.raises(Unreachable) as caught:
        steps.replicate(cast("AirflowRest", Runs(["success"] * 9)), flow())
    golden(caught.value)


@pytest.mark.parametrize(
    ("differences", "at_least", "equal"), [((), 5, True), ((), 6, False), (("orders-0: something",), 5, False)]
)
def test_sides_are_equal_when_nothing_differs_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, differences: tuple[str, ...], at_least: int, *, equal: bool
) -> None:
    asked = {}

    def compare(source: str, target: str, copies: dict[str, str]) -> tuple[Compared, ...]:
        asked.update(copies)
        return (Compared(topic="orders", partitions=1, records=5, differences=differences),)

    class Side:
        bootstrap = "nowhere"

    side = cast("RunningCluster", Side())
    monkeypatch.setattr(demo, "compare", compare)
    assert demo.show_comparison(flow(), side, side, at_least=at_least) is equal
    assert asked == {topic.name: f"primary.{topic.name}" for topic in TOPICS}


def test_the_buttons_of_the_demos_page_work_by_its_file() -> None:
    demo.HOME.mkdir()
    sides = [cast("RunningCluster", SimpleNamespace(bootstrap=f"localhost:{port}")) for port in (1, 2)]
    settings = load(demo.write_config(*sides))
    assert not settings.problems
    there = settings.flow(demo.FLOW)
    assert nowhere(there, {}) is None, "a drill's report has a place"
    assert demo.REPORTS.is_absolute()
    assert there.report.folder == str(demo.REPORTS)
    back = settings.flow("backup->primary")
    assert back.airflow.schedule is None, "the way back copies nothing by itself"
    assert not [topic.name for topic in TOPICS if back.topics.selection.why_not(topic.name)]
    assert there.of(SwitchSettings).approve_own, "who is alone may approve of the own drill"


def flow() -> FlowConfig:
    """The demo's flow, between clusters that are not there."""
    return parse_settings(FILE, "f").flow(demo.FLOW)
