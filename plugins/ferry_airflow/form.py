"""Fields of the trigger forms that several DAGs have."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from ferry.model.switch import SwitchOptions

APPROVAL_SECONDS = 3600
MOST_APPROVAL_SECONDS = 7 * 24 * 3600
"""The user who triggers the DAG sets how long an approval may be used: at most this long."""
TO_COPY = "Source topics to copy, one per line; empty: all that the flow selects."
LONGEST_TOPIC, LONGEST_GROUP = 249, 255
"""Kafka's own limit of a topic's name, and more than a group's name usually has."""


def flag(title: str, description: str, *, default: bool = False) -> Param:
    """Return a field for something to be done or not."""
    return Param(default=default, type="boolean", title=title, description=description)


def names_param(title: str, description: str, longest: int) -> Param:
    """Return a field for names of topics or groups; may be left empty."""
    items = {"type": "string", "minLength": 1, "maxLength": longest}
    return Param(None, type=["null", "array"], items=items, title=title, description=description)


def topics_param(description: str) -> Param:
    """Return a field for source topics that a run is narrowed to."""
    return names_param("Topics", description, LONGEST_TOPIC)


def budget_params() -> dict[str, Any]:
    """Return the fields for a run's budgets, and the switches that every run has."""
    return {
        "max_bytes": _budget("Most bytes", "Budget of this run in bytes as stored"),
        "max_records": _budget("Most records", "Budget of this run in records"),
        "max_seconds": _budget("Most seconds", "Time of this run's copy step in seconds"),
        "take_over": flag(
            "Take the lane over", "Continue even if the last run was of another deployment with another configuration."
        ),
        "dry_run": flag("Dry run", "Only show what a run would do now; nothing is written anywhere."),
    }


def _budget(title: str, what: str) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title=title,
        description=f"{what}; empty, or more than the flow allows: the flow's own.",
    )


def approval_params(what: str) -> dict[str, Any]:
    """Return the fields of everything that needs an approval; `what` is a switch or a drill."""
    return {
        "dry_run": flag("Dry run", "Only show the steps and the checks; no approval is asked for."),
        "reason": Param(
            None, type=["null", "string"], maxLength=500, title="Reason", description="Shown to the approvers."
        ),
        "id": Param(
            None,
            type=["null", "string"],
            pattern="^[A-Za-z0-9._-]{1,100}$",
            title="Continue",
            description=f"The id of a {what} that is not finished; empty: a new one.",
        ),
        "approval_timeout_seconds": Param(
            APPROVAL_SECONDS,
            type="integer",
            minimum=1,
            maximum=MOST_APPROVAL_SECONDS,
            title="Approval within",
            description="Seconds, a week at most; after them nothing is done.",
        ),
    }


def leaving_params() -> dict[str, Any]:
    """Return the fields for the groups that a switch leaves."""
    return {
        "leave_groups": names_param(
            "Groups to leave", "Consumer groups that are not moved, one per line.", LONGEST_GROUP
        ),
        "leave_active": flag("Leave active groups", "Do not move groups that have members, instead of refusing."),
    }


def topics_to_leave() -> Param:
    """Return the field for the transformed topics that a failback leaves."""
    return names_param(
        "Topics to leave",
        "Transformed copies that are not copied back: records written to them since the switch stay where they are; "
        "one per line.",
        LONGEST_TOPIC,
    )


def waiting_params() -> dict[str, Any]:
    """Return the fields for the times that a planned switch waits."""
    default = SwitchOptions()
    return {
        "quiet_seconds": seconds_param(
            "Quiet for", "Seconds without new records before producers count as stopped.", default.quiet_seconds
        ),
        "quiet_timeout_seconds": seconds_param(
            "Quiet within", "Stop if that has not happened after this many seconds.", default.quiet_timeout_seconds
        ),
        "drain_timeout_seconds": seconds_param(
            "Drained within",
            "Stop if the last records are not copied after this many seconds.",
            default.drain_timeout_seconds,
        ),
    }


def seconds_param(title: str, description: str, default: float) -> Param:
    """Return a field for a time in seconds."""
    return Param(default, type="number", minimum=0, title=title, description=description)
