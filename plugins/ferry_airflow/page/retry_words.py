"""A task that Airflow tries again: which try is under way or comes next, and how the tries before it ended; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ferry_airflow.page.filters import counted, moment

UNDER_WAY = frozenset({"running", "deferred", "up_for_reschedule"})
"""The states of a task whose try has begun."""
BETWEEN = "up_for_retry"
"""The state of a task between two tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A task of an active run of which a try has ended without success; times are epoch ms."""

    task: str
    state: str
    number: int
    """The try that is under way, or that comes next."""
    most: int | None
    """How many tries it has in all; None: not known."""
    ended: int
    """How many tries have ended without success."""
    last: int
    """The number of the newest of these."""
    ended_ms: int | None
    """When that one ended; None: not known."""
    began_ms: int | None = None
    """When the try began that is under way; None: it has not begun, or this is not known."""
    due_ms: int | None = None
    """When the next try begins, if the task is between two tries; None: not known."""
    why: str = ""
    """Why the newest of the ended tries ended; empty: not known."""

    @property
    def counted(self) -> str:
        """The try, and of how many it is."""
        return f"try {self.number}" if self.most is None else f"try {self.number} of {self.most}"

    @property
    def short(self) -> str:
        """The try, and how the last one ended, for a row of a list."""
        return f"{self.counted.capitalize()} of {self.task}. {before_of(self)}."

    @property
    def log(self) -> str:
        """The part of a sentence that leads to the log of the newest of the ended tries."""
        return f"the log of try {self.last} shows why"


def now_of(retry: Retry, *, paused: bool, now_ms: int) -> str:
    """Return what a task is at: a try that is under way, and since when, or when the next one begins.

    `paused`: whether Airflow begins no task of the DAG.
    """
    its = f"{retry.counted.capitalize()} of its task {retry.task}"
    if retry.state in UNDER_WAY:
        since = ", and since when is not known" if retry.began_ms is None else f" since {moment(retry.began_ms)}"
        return f"{its} is under way{since}."
    if paused:
        return f"{its} begins when its DAG is unpaused."
    if retry.state != BETWEEN:
        return f"{its} waits for Airflow to begin it."
    if retry.due_ms is None:
        return f"{its} has not begun, and when it begins is not known here."
    if retry.due_ms > now_ms:
        return f"{its} begins at {moment(retry.due_ms)}."
    return f"{its} was due at {moment(retry.due_ms)}, and Airflow has not begun it."


def before_of(retry: Retry) -> str:
    """Return how the tries before ended, as a clause without a full stop."""
    at = "at a time that is not known" if retry.ended_ms is None else f"at {moment(retry.ended_ms)}"
    if retry.ended == 1:
        return f"Try {retry.last} ended without success {at}"
    return f"{counted(retry.ended, 'try', 'tries')} ended without success, try {retry.last} {at}"
