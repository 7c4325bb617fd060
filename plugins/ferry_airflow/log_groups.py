"""Which lines of a task's log Airflow folds: those of clients. `ferry_airflow.task_log` applies it."""

from __future__ import annotations

import re
from collections import Counter

from ferry.words import SAYS

GROUP, END_GROUP = "::group::", "::endgroup::"
"""What Airflow folds is between such lines."""

KAFKA, SPARK, HOOKS, PYTHON = "Kafka client", "Spark", "Airflow hooks", "Python warnings"
"""The names of the groups."""

GROUPS = {
    "kafka": KAFKA,
    "py4j": SPARK,
    "pyspark": SPARK,
    "SQLQueryContextLogger": SPARK,
    "airflow.task.hooks.airflow.providers.apache.spark": SPARK,
    "airflow.task.hooks": HOOKS,
    "py.warnings": PYTHON,
}
"""The group of a logger and of those below it: the first row that fits. Lines of other loggers are in none."""

_VARYING = re.compile(r"\d+(\.\d+)?(?= (secs|ms)\b)")


def group_of(logger: str, text: str) -> str | None:
    """Return the group that a line belongs to; None for a line of Ferry or of the author of a DAG."""
    for name, group in GROUPS.items():
        if logger == name or logger.startswith(f"{name}."):
            return None if group == SPARK and text.startswith(SAYS) else group
    return None


class Groups:
    """Which group of a log is open. The lines of a group are together, and a line of none ends it."""

    def __init__(self) -> None:
        self._open: str | None = None

    def before(self, group: str | None) -> list[str]:
        """Return the lines that Airflow needs before a line of this group, None: of no group."""
        if group == self._open:
            return []
        lines = [END_GROUP] if self._open is not None else []
        self._open = group
        return lines if group is None else [*lines, f"{GROUP}{group}"]


class Repeats:
    """What a client has printed already. Lines that differ only in a waiting time are the same."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def shown(self, text: str) -> str | None:
        """Return the line if it is to be shown: the first time, and the 10th, 100th, ... with that number."""
        kind = _VARYING.sub("#", text)
        self._seen[kind] += 1
        count = self._seen[kind]
        if count == 1:
            return text
        return f"{text} (printed {count} times)" if str(count).strip("0") == "1" else None
