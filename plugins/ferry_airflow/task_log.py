"""The log of a task: what clients print is in groups that Airflow folds, and why a task failed is its last line."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

import structlog
from airflow.configuration import conf
from airflow.sdk import BaseOperator, Context

from ferry_airflow.failing import DECLARED
from ferry_airflow.log_groups import KAFKA, Groups, Repeats, group_of


class TaskLog(logging.Handler):
    """Passes lines on to the handlers of Airflow, in groups; no line of a client is lost but repeated ones.

    `task` is the task whose log it is.
    """

    def __init__(self, handlers: Sequence[logging.Handler], task: BaseOperator) -> None:
        super().__init__()
        self.task = task
        self._handlers = handlers
        self._groups = Groups()
        self._repeats = Repeats()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line on, after the beginning or the end of a group where that is due."""
        try:
            text = record.getMessage()
            group = group_of(record.name, text)
            if group == KAFKA:
                shown = self._repeats.shown(text)
                if shown is None:
                    return
                if shown != text:
                    record = logging.makeLogRecord({**record.__dict__, "msg": shown, "args": None})
            self._mark(group)
            self._pass(record)
        except Exception:  # as each handler of `logging` does it
            self.handleError(record)

    def begin_line(self, group: str | None) -> None:
        """Print what Airflow needs before a line of this group, None: of no group, that comes another way."""
        self.acquire()
        try:
            self._mark(group)
        finally:
            self.release()

    def _mark(self, group: str | None) -> None:
        for text in self._groups.before(group):
            self._pass(logging.LogRecord(__name__, logging.INFO, __file__, 0, text, None, None))

    def _pass(self, record: logging.LogRecord) -> None:
        for handler in self._handlers:
            if record.levelno >= handler.level:
                handler.handle(record)


class AirflowLines:
    """A processor of structlog, through which the lines of operators, hooks and Airflow's task runner come.

    For an error of DECLARED the task runner would print a trace. It prints the sentence instead, after a line with
    the URL of the page.
    """

    def __init__(self, log: TaskLog) -> None:
        self._log = log

    def __call__(self, logger: Any, _: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the line as it is to be printed."""
        name = event.get("logger_name") or getattr(logger, "name", None) or ""
        self._log.begin_line(group_of(str(name), str(event["event"])))
        error = event.get("exc_info")
        if error is True:
            error = sys.exc_info()[1]
        if isinstance(error, DECLARED):
            del event["exc_info"]
            event["event"] = str(error)
            page = page_of(self._log.task, conf.get("api", "base_url", fallback="") or "")
            if page:
                logging.getLogger(__name__).info("what the task did is on the page: %s", page)
        return event


def page_of(task: BaseOperator, base_url: str) -> str:
    """Return the URL of the page that the task's button opens; empty if it has none, or Airflow's URL is not set."""
    link = getattr(task, "report_link", "") or getattr(task, "run_link", "")
    return urljoin(base_url, link) if link and urlsplit(base_url).netloc else ""


class QuietLog:
    """A task whose log has what clients print in groups, and why it failed as its last line."""

    def pre_execute(self, context: Context) -> None:
        """Begin; Airflow calls this before it calls `execute`, and before it continues a task that was deferred."""
        assert isinstance(self, BaseOperator)
        super().pre_execute(context)  # type: ignore[misc]  # that of BaseOperator
        begin(self)


def begin(task: BaseOperator) -> None:
    """Have the lines of this process pass through a TaskLog, for the rest of the process: it belongs to one task.

    A process that runs several tasks, such as that of `dag.test()`, has one TaskLog for all.
    """
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, TaskLog):
            handler.task = task
            return
    log = TaskLog(root.handlers[:], task)
    root.handlers[:] = [log]
    processors = structlog.get_config()["processors"]
    if isinstance(processors, list):  # in place: loggers that exist already hold this list
        processors.insert(0, AirflowLines(log))
