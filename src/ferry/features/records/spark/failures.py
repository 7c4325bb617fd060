"""Why Spark ended a job of the record path, as a part of one sentence. No record's value is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from ferry.errors import FerryError
from ferry.features.records.acts.cutoffs import Failure, parse_unread
from ferry.model import TopicPartition
from ferry.run.spark.stage import ERRORS

SPARKS = (PySparkException, Py4JJavaError)
"""What Spark raises in the driver for a job that failed."""

_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?:: (.*))?", re.DOTALL)
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_PLACE = re.compile(r"line (\d+), position (\d+)")
_JAVA = re.compile(r"\b(?:[a-z_]\w*\.)+([A-Z]\w*(?:Error|Exception))\b")
_UNREAD = re.compile(r"^ferry\.(?:\w+\.)*Unread: (\[.*\])$", re.MULTILINE)
_WORKER_DIED = ("Python worker exited unexpectedly", "Python worker failed to connect back", "Worker died")
_MOST_TEXT = 200
_MOST_LINE = 600


def ferry_error_of(error: BaseException) -> FerryError | None:
    """Return what Ferry's own code raised in a task; None when it was something else."""
    lines = _traceback(error).strip().splitlines()
    for at in range(len(lines) - 1, -1, -1):
        found = re.match(r"ferry\.(?:\w+\.)*(\w+): (.*)", lines[at])
        if found is not None and found[1] in ERRORS:
            return ERRORS[found[1]](" ".join([found[2], *lines[at + 1 :]]).strip())
    return None


def unread_of(error: BaseException) -> dict[TopicPartition, Failure]:
    """Return the source partitions that a task could not read on; empty when the failure was another one."""
    found = _UNREAD.search(_traceback(error))
    return parse_unread(found[1]) if found is not None else {}


def cause_of(error: BaseException) -> str:
    """Return what happened, and where in the transform: never a value, nor a Java stack.

    A message of Spark, or of an exception, may have values of records in it; its kind and its place have not.
    """
    traceback = _traceback(error)
    if traceback:
        return _of_python(traceback)
    if isinstance(error, PySparkException):
        condition = error.getCondition() or type(error).__name__
        return condition + _in_sql(error)
    text = str(error)
    if any(sign in text for sign in _WORKER_DIED):
        return "a Python worker died: it was killed, had no memory left, or crashed in native code"
    kinds = [kind for kind in _JAVA.findall(text.partition("Driver stacktrace:")[0]) if kind != "SparkException"]
    return kinds[-1] if kinds else type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of Spark's message about a query, shortened, without Java's stack and the SQLSTATE.

    It is for queries that Spark has not begun to carry out: later the message may have values of records in it.
    """
    text = str(error)
    if isinstance(error, Py4JJavaError):
        text = str(error.java_exception.getMessage() or error.java_exception.getClass().getSimpleName())
    line = next(iter(text.strip().splitlines()), "") or type(error).__name__
    return line.partition(" SQLSTATE")[0].strip()[:_MOST_LINE]


def _traceback(error: BaseException) -> str:
    if not isinstance(error, PySparkException):
        return ""
    parameters: Mapping[str, str] = error.getMessageParameters() or {}
    return parameters.get("traceback") or ""


def _of_python(traceback: str) -> str:
    """Return the exception's kind, and the line of the innermost frame."""
    lines = [line for line in traceback.strip().splitlines() if line and not line.startswith(" ")]
    found = _RAISED.match(lines[-1]) if lines else None
    kind = found[1] if found is not None else "an exception"
    frames = _FRAME.findall(traceback)
    if not frames:
        return kind
    file, line, function = frames[-1]
    return f"{kind} in {function} ({file}, line {line})"


def _in_sql(error: PySparkException) -> str:
    try:
        contexts = error.getQueryContext()
        fragment = contexts[0].fragment() if contexts else ""
        place = _PLACE.search(contexts[0].summary()) if contexts else None
    except Exception:
        return ""
    where = "" if place is None else f", line {place[1]}, column {place[2]}"
    shown = " ".join(fragment.split())
    return f" in {shown[:_MOST_TEXT]}{where}" if shown else ""
