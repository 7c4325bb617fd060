"""Two deployments on one lane may take turns with the same configuration, but not with different ones."""

from __future__ import annotations

from dataclasses import replace

from ferry.errors import Refused
from ferry.ledger.ledger import LedgerView
from ferry.ledger.runs import newest_run, opened_run
from ferry.model import RunRecord
from ferry.words import to_the_second

SHOWN_DIGITS = 12
"""Digits of a digest that sentences and tables show."""


def admitted(view: LedgerView, record: RunRecord, *, take_over: bool) -> RunRecord:
    """Return the run record that may be written, with the deployment that it takes the lane from, if it takes it.

    Raises Refused, naming both deployments, when another deployment has the lane and the run may not take it over.
    """
    last = _other_owner(view, record)
    if last is None:
        # A run that is opened again under its name after a failure replaces its own record: `took_over` stays.
        earlier = opened_run(view, record.lane, record.run)
        return record if earlier is None else replace(record, took_over=earlier.record.took_over)
    if not take_over:
        raise Refused(_sentence(view, record, last))
    return replace(record, took_over=last.deployment)


def conflict(view: LedgerView, record: RunRecord) -> str | None:
    """Return why `record` may not open its lane unless it takes it over, in one sentence; None when it may."""
    last = _other_owner(view, record)
    return None if last is None else _sentence(view, record, last)


def _other_owner(view: LedgerView, record: RunRecord) -> RunRecord | None:
    """Return the lane's newest run, when another deployment opened it with another configuration.

    A record from before there were deployments names none, and conflicts with no deployment.
    """
    opened = newest_run(view, record.lane)
    if opened is None or not opened.record.deployment or not record.deployment:
        return None
    last = opened.record
    same = last.deployment == record.deployment or last.config_digest == record.config_digest
    return None if same else last


def _sentence(view: LedgerView, record: RunRecord, last: RunRecord) -> str:
    own = [run for run in view.runs if run.record.lane == record.lane and run.record.deployment == record.deployment]
    mine = max(own, key=lambda run: run.generation, default=None)
    before = f"last run {_run(mine.record)}" if mine is not None else "no run yet"
    return (
        f"lane {record.lane} of flow {record.flow} is used by deployment {last.deployment} (configuration "
        f"{last.config_digest[:SHOWN_DIGITS]}, last run {_run(last)}); deployment {record.deployment} "
        f"(configuration {record.config_digest[:SHOWN_DIGITS]}, {before}) would copy by another configuration: make "
        "both files equal; or set the same ferry.deployment in both if they are one deployment; or take the lane over "
        "with ferry run --take-over (in Airflow: take_over in the trigger form)"
    )


def _run(record: RunRecord) -> str:
    return f"{record.run} at {to_the_second(record.started_ms)}"
