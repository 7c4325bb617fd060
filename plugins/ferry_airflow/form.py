"""Fields of the trigger forms that several DAGs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

from ferry.config.flow.flow import FlowConfig
from ferry.config.text.filters import LEGAL_NAME
from ferry.model.switch import SwitchOptions
from ferry.units import LONG_MAX, Duration, Size
from ferry_airflow.measures import APPROVAL_SECONDS, BYTES, RUN_SECONDS, SECONDS

_AN_HOUR = 3600.0
_OWN = "empty, or more than the flow allows: the flow's own."
_BEGINS_WITH_A_NUMBER = r"^\s*\+?\d[\w.\s]*$"
"""What Airflow refuses at once. The task that reads the field refuses the rest."""
TO_COPY = ("Source topics to copy", "; empty: all that the flow selects.")
LONGEST_TOPIC, LONGEST_GROUP = 249, 255
"""Kafka's own limit of a topic's name, and more than a group's name usually has."""
MOST_OFFERED = 200
"""The most names of a list to choose from; a longer one would make each of the flow's DAGs large."""


def flag(title: str, description: str, *, default: bool = False) -> Param:
    """Return a field for something to be done or not."""
    return Param(default=default, type="boolean", title=title, description=description)


def names_param(title: str, description: str, longest: int, offered: Sequence[str] = ()) -> Param:
    """Return a field for names of topics or groups; may be left empty.

    If names are `offered`, Airflow's form lets a user choose among them and type no others.
    """
    items = {"type": "string", "minLength": 1, "maxLength": longest}
    more: dict[str, Any] = {"examples": list(offered)} if offered else {}
    return Param(None, type=["null", "array"], items=items, title=title, description=description, **more)


def topics_param(flow: FlowConfig, what: str, rest: str) -> Param:
    """Return a field for source topics that a run is narrowed to; its description is `what`, then `rest`."""
    names = named_topics(flow)
    offered = names if len(names) <= MOST_OFFERED else ()
    return names_param("Topics", f"{what}{'' if offered else ', one per line'}{rest}", LONGEST_TOPIC, offered)


def named_topics(flow: FlowConfig) -> tuple[str, ...]:
    """Return the topics that the file selects for a flow, if it names each of them; empty if it has a pattern.

    Heartbeats topics, which a flow takes without a name in the file, are not among them.
    """
    selected = flow.topics.filter
    names = selected.include.items
    return tuple(filter(selected.takes, names)) if all(LEGAL_NAME.fullmatch(name) for name in names) else ()


def budget_params() -> dict[str, Any]:
    """Return the fields for a run's budgets, and the switches that every run has."""
    return {
        "max_bytes": measured_param(BYTES, "Most bytes", f"Budget of this run in bytes as stored; {_OWN}"),
        "max_records": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Most records",
            description=f"Budget of this run in records; {_OWN}",
        ),
        "max_seconds": measured_param(RUN_SECONDS, "Most seconds", f"Time of this run's copy step; {_OWN}"),
        "take_over": flag(
            "Take the lane over", "Continue even if the last run was of another deployment with another configuration."
        ),
        "dry_run": flag("Dry run", "Only show what a run would do now; nothing is written anywhere."),
    }


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
        "approval_timeout_seconds": measured_param(
            APPROVAL_SECONDS, "Approval within", "A week at most; after that nothing is done.", _AN_HOUR
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
        "quiet_seconds": measured_param(
            SECONDS, "Quiet for", "Time without new records before producers count as stopped.", default.quiet_seconds
        ),
        "quiet_timeout_seconds": measured_param(
            SECONDS, "Quiet within", "Stop if that takes longer.", default.quiet_timeout_seconds
        ),
        "drain_timeout_seconds": measured_param(
            SECONDS, "Drained within", "Stop if copying the last records takes longer.", default.drain_timeout_seconds
        ),
    }


def measured_param(reader: Size | Duration, title: str, description: str, default: float | None = None) -> Param:
    """Return a field for a size or a duration: text with units, or a plain number. Without a default it may be empty.

    Airflow's form shows the first type that is not null: a field for text.
    """
    number = "number" if reader == SECONDS else "integer"
    bounds: dict[str, Any] = {"minimum": reader.least} | ({} if reader.most == LONG_MAX else {"maximum": reader.most})
    return Param(
        None if default is None or isinstance(reader, Size) else reader.text(default),
        type=[*(["null"] if default is None else []), "string", number],
        pattern=_BEGINS_WITH_A_NUMBER,
        title=title,
        description=f"{description} Write {reader.form}.",
        **bounds,
    )
