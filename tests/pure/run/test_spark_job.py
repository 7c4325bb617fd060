"""How a job on Spark ends: its exit code, the error that it leaves for its task, and what it ends in Spark."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Corrupt, FerryError, Refused, Retryable, Superseded, Unreachable
from ferry.kafka.admin.topics import NotPermitted
from ferry.run.spark.job import TERMINATED, on_spark, run_job
from ferry.run.spark.job_end import JobEnd, Terminated, end_of_job, write_end

FILE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"


@pytest.mark.parametrize("error", [BadInput, Refused, NotPermitted, Superseded, Corrupt, Retryable, Unreachable])
def test_the_task_reads_the_error_that_the_driver_left(error: type[FerryError], tmp_path: Path) -> None:
    path = tmp_path / "end.json"
    assert end_of_job(path) is None
    assert write_end(path, error("topic t: über\nzwei"))
    assert end_of_job(path) == JobEnd(sentence="topic t: über\nzwei", final=error not in (Retryable, Unreachable))


def test_a_place_that_cannot_be_written_to_is_no_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "end.json"
    assert not write_end(path, Refused("no"))
    assert end_of_job(path) is None


Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a job whose work returns or raises this, and leaves an error at `end`; its exit code."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("ferry.run.spark.parent_watch.watch", lambda _: None)
    (tmp_path / "flow.properties").write_text(FILE)

    def ran(outcome: int | BaseException, end: Path | None, flow: str = "a->b") -> int:
        def work(_: FlowConfig, __: object) -> int:
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return run_job(work, config=tmp_path / "flow.properties", clients=None, flow=flow, end=end)

    return ran


@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_code_is_that_of_the_work(run: Run, code: int, tmp_path: Path) -> None:
    assert run(code, tmp_path / "end.json") == code
    assert end_of_job(tmp_path / "end.json") is None


@pytest.mark.parametrize("error", [Refused("topic t is gone"), Retryable("a leader moved"), Unreachable("no answer")])
def test_an_error_is_an_exit_code_and_is_said_once(
    run: Run, error: FerryError, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end, nowhere = tmp_path / "end.json", tmp_path / "gone" / "end.json"
    assert run(error, end) == error.exit_code != 0
    left = end_of_job(end)
    assert left is not None
    assert (left.sentence, str(error) in capsys.readouterr().out) == (str(error), False), "the task prints it"
    for path in (None, nowhere):
        assert run(error, path) == error.exit_code
        assert str(error) in capsys.readouterr().out


def test_a_flow_that_is_not_there_is_an_error_of_the_job(run: Run, tmp_path: Path) -> None:
    end = tmp_path / "end.json"
    assert run(0, end, flow="a->c") == BadInput.exit_code
    left = end_of_job(end)
    assert left is not None
    assert left.final
    assert "a->c" in left.sentence


def test_a_job_that_was_terminated_is_not_done_and_leaves_no_error(run: Run, tmp_path: Path) -> None:
    assert run(Terminated(), tmp_path / "end.json") == TERMINATED != 0
    assert end_of_job(tmp_path / "end.json") is None


class Session:
    """A session of Spark that notes what is done with it."""

    def __init__(self) -> None:
        self.acts: list[str] = []

    def addTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        self.acts.append(f"tag {tag}")

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        self.acts.append(f"interrupt {tag}")

    def stop(self) -> None:
        self.acts.append("stop")


def on_session(session: Session, work: Callable[[Any], int]) -> int:
    return on_spark(
        lambda: cast("SparkSession", session),
        "ferry-3",
        work,
        what="run r of a->b",
        broken=lambda: session.acts.append("broken"),
    )


def test_a_session_ends_with_its_work() -> None:
    session = Session()
    assert on_session(session, lambda _: 7) == 7
    assert session.acts == ["tag ferry-3", "stop"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Refused("no"), Refused),
        (Superseded("by run r2"), Superseded),
        (PySparkException("Job aborted"), Retryable),
        (Terminated(), Terminated),
        (ZeroDivisionError(), ZeroDivisionError),
    ],
    ids=lambda one: one.__name__ if isinstance(one, type) else type(one).__name__,
)
def test_work_that_fails_is_interrupted_before_its_session_ends(
    error: BaseException, raised: type[BaseException]
) -> None:
    def fails(_: object) -> int:
        raise error

    session = Session()
    with pytest.raises(raised):
        on_session(session, fails)
    assert session.acts == ["tag ferry-3", "interrupt ferry-3", "broken", "stop"]
