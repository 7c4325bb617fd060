"""The errors that end a task and need no trace, because their sentence names the cause and what to do."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ferry.errors import FerryError


class Failure(AirflowException):
    """An error that another try of the task may not meet."""


class FinalFailure(Failure, AirflowFailException):
    """An error that another try meets again: Airflow does not try."""


DECLARED = (Failure, FerryError)
