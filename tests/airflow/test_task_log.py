"""The log of a task's process, without a server: what stands where, and which errors have a trace."""

from __future__ import annotations

import json
import logging
import socket
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from ferry.errors import FerryError, Refused
from ferry.words import SAYS
from ferry_airflow.base import airflow_errors, final_failure, flow_named
from ferry_airflow.failing import Failure
from ferry_airflow.log_groups import END_GROUP, GROUP, GROUPS, KAFKA, PYTHON, SPARK
from ferry_airflow.operators import FerryCopyOperator, FerryPlanOperator
from ferry_airflow.task_log import TaskLog, page_of
from tests.airflow.submitting import outputs_closed

SENTENCE = "topic t is paused: resume it"
LINK = "/ferry/flow/a/b/run/r"


class Kept(logging.Handler):
    """The handler of Airflow, and the end of structlog: what came, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []
        self.traces = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname.lower(), record.getMessage()))

    def __call__(self, _: Any, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        self.lines.append((level, event["event"]))
        self.traces += "exc_info" in event
        raise structlog.DropEvent

    @property
    def unfolded(self) -> list[str]:
        """The lines of no group."""
        found, depth = [], 0
        for _, text in self.lines:
            depth += text.startswith(GROUP) - (text == END_GROUP)
            if not depth and text != END_GROUP:
                found.append(text)
        assert depth == 0, "each group has an end"
        return found


class Named:
    """A logger of Airflow, which has its name and nothing else that counts here."""

    def __init__(self, name: str = "") -> None:
        self.name = name


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """The process of a task before Ferry's part of it: Airflow's handler, structlog's processors, loggers as new."""
    kept, before = Kept(), structlog.get_config()
    # The command line, of other tests in this process, silences clients.
    loggers = [logging.getLogger(name) for name in GROUPS]
    levels = [(logger, logger.level, logger.disabled) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
        logger.disabled = False
    monkeypatch.setattr(logging.getLogger(), "handlers", [kept])
    structlog.configure(
        processors=[structlog.stdlib.PositionalArgumentsFormatter(), kept],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=Named,
        cache_logger_on_first_use=False,
    )
    yield kept
    structlog.configure(**before)
    for logger, level, is_disabled in levels:
        logger.setLevel(level)
        logger.disabled = is_disabled


def run(operator: BaseOperator, execute: Callable[[], object]) -> None:
    """Do what Airflow's task runner does around `execute`."""
    runner = structlog.get_logger("task").bind()
    operator.pre_execute({})
    try:
        execute()
    except Exception:
        runner.exception("Task failed with exception")
    runner.info("::group::Post Execute")
    runner.info("::endgroup::")


def plan() -> FerryPlanOperator:
    """A task of a flow whose page is known."""
    task = FerryPlanOperator(task_id="plan", config="f", flow="a->b")
    task.run_link = LINK
    return task


def test_what_a_client_prints_is_folded_and_no_cause_is_lost(kept: Kept) -> None:
    task, client = plan(), logging.getLogger("kafka.net.manager")

    def execute() -> None:
        task.log.warning("a line of Ferry's")
        for tries in range(250):
            client.error("Connection failed: 111 ECONNREFUSED (backoff 0.%02d secs)", tries)
        client.warning("Sending username and password in the clear")
        task.log.warning("Ferry's last line")

    run(task, execute)
    assert kept.unfolded == ["a line of Ferry's", "Ferry's last line"]
    folded = kept.lines[1:-3]
    assert folded[0] == ("info", f"{GROUP}{KAFKA}")
    assert [level for level, _ in folded[1:-1]] == ["error"] * 3 + ["warning"], "1, 10 and 100 times"
    assert folded[1] == ("error", "Connection failed: 111 ECONNREFUSED (backoff 0.00 secs)")


def test_a_warning_of_a_library_is_folded(kept: Kept) -> None:
    """Airflow gives Python's warnings to this logger of structlog, such as that of GitWildMatchPattern."""
    task = plan()

    def execute() -> None:
        structlog.wrap_logger(Named("py.warnings")).warning("GitWildMatchPattern is deprecated", category="X")
        logging.getLogger("py.warnings").warning("x.py:1: DeprecationWarning: y is deprecated")
        task.log.warning("a line of Ferry's")

    run(task, execute)
    assert kept.unfolded == ["a line of Ferry's"]
    assert [text for _, text in kept.lines].count(f"{GROUP}{PYTHON}") == 1


def test_what_spark_submit_prints_is_folded_but_for_the_lines_of_ferry(kept: Kept) -> None:
    hook = SparkSubmitHook.__new__(SparkSubmitHook)  # its own constructor reads a connection
    BaseHook.__init__(hook)

    def execute() -> None:
        for line in ("Spark-Submit cmd: x", "Traceback (most recent call last):", "ValueError: y", f"{SAYS}copied 3"):
            hook.log.info(line)
        logging.getLogger("py4j").error("the gateway is gone")

    run(plan(), execute)
    assert kept.unfolded == [f"{SAYS}copied 3"]
    assert [text for _, text in kept.lines].count(f"{GROUP}{SPARK}") == 2
    assert [text for _, text in kept.lines][3] == "ValueError: y"


@pytest.mark.parametrize("error", [Refused(SENTENCE), FerryError(SENTENCE)])
def test_the_sentence_of_a_refusal_stands_last_once_and_without_a_trace(
    error: FerryError, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/team")

    def execute() -> None:
        logging.getLogger("kafka").error("what a client has to say")
        with airflow_errors():
            raise error

    run(plan(), execute)
    *_, where, last = kept.unfolded
    assert last == SENTENCE
    assert where.endswith(f" https://airflow.example{LINK}")
    assert [text for _, text in kept.lines].count(SENTENCE) == 1
    assert ("error", SENTENCE) in [(level.replace("exception", "error"), text) for level, text in kept.lines]
    assert kept.traces == 0


SUBMIT = """#!{python}
import sys
from pathlib import Path
from ferry.errors import Refused, Unreachable
from ferry.run.spark.job_end import write_end
from ferry.words import SAYS
print("26/11/28 INFO SparkContext: Running Spark", flush=True)
print(SAYS + "0 of 4 slices", flush=True)
write_end(Path(sys.argv[sys.argv.index("--end") + 1]), {error}("topic t is paused: resume it"))
print("Traceback (most recent call last):", "26/11/28 INFO ShutdownHookManager: Deleting", sep="\\n", flush=True)
sys.exit(2)
"""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FerryCopyOperator:
    """A task whose spark-submit is a program of `tmp_path`, and whose run has a page."""
    config = tmp_path / "flows.properties"
    config.write_text("clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    task = FerryCopyOperator(task_id="copy", config=str(config), flow="a->b", conn_id="there")
    task.run_link = LINK
    return task


@pytest.mark.parametrize(("error", "is_final"), [("Refused", True), ("Unreachable", False)])
def test_the_reason_of_a_copy_that_failed_in_spark_stands_last(
    copy: FerryCopyOperator, error: str, is_final: bool, kept: Kept, tmp_path: Path
) -> None:
    submit = tmp_path / "spark-submit"
    submit.write_text(SUBMIT.format(python=sys.executable, error=error))
    submit.chmod(0o755)
    failed = submitted(copy)
    assert isinstance(failed, AirflowFailException) == is_final
    *_, said, where, last = kept.unfolded
    assert (said, last) == (f"{SAYS}0 of 4 slices", SENTENCE)
    assert where.endswith(f" https://airflow.example{LINK}")
    assert kept.traces == 0
    assert "Traceback (most recent call last):" in [text for _, text in kept.lines], "in the group of Spark"


@pytest.mark.parametrize("mode", [None, 0o600])
def test_a_spark_submit_that_cannot_be_started_is_named_with_the_worker(
    copy: FerryCopyOperator, mode: int | None, kept: Kept, tmp_path: Path
) -> None:
    if mode is not None:
        (tmp_path / "spark-submit").touch(mode)
    failed = submitted(copy)
    assert isinstance(failed, Failure)
    assert not isinstance(failed, AirflowFailException), "another worker may have it"
    assert "'spark-submit'" in str(failed)
    assert socket.gethostname() in str(failed)
    assert (kept.unfolded[-1], kept.traces) == (str(failed), 0)


def submitted(task: FerryCopyOperator) -> Exception:
    """The error of a job that is started as the task starts it."""
    raised: list[Exception] = []

    def execute() -> None:
        try:
            task.submit(task.spark_connection(), flow_named(task), {}, ["--run", "r"])
        except Exception as error:
            raised.append(error)
            raise

    with outputs_closed():
        run(task, execute)
    (found,) = raised
    return found


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), AirflowFailException("of another operator")])
def test_an_error_that_ferry_did_not_foresee_has_its_trace(error: Exception, kept: Kept) -> None:
    def execute() -> None:
        raise error

    run(plan(), execute)
    assert kept.traces == 1


def test_a_process_that_runs_several_tasks_has_one_log(kept: Kept) -> None:
    def fail() -> None:
        raise final_failure(SENTENCE)

    spark = FerryCopyOperator(task_id="copy", config="f", flow="a->b", conn_id="spark_default")
    for task in (plan(), spark):
        run(task, fail)
    assert [type(handler) for handler in logging.getLogger().handlers] == [TaskLog]
    assert [text for _, text in kept.lines].count(SENTENCE) == 2


@pytest.mark.parametrize(
    ("link", "base_url", "page"),
    [
        (LINK, "http://localhost:8080", f"http://localhost:8080{LINK}"),
        ("", "http://localhost:8080", ""),
        (LINK, "", ""),
    ],
)
def test_the_page_is_named_where_it_is_known(link: str, base_url: str, page: str) -> None:
    task = plan()
    task.run_link = link
    assert page_of(task, base_url) == page
