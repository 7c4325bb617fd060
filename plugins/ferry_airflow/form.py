"""Fields of the trigger forms that several DAGs have."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

TO_COPY = "Source topics to copy, one per line; empty: all that the flow selects."


def topics_param(description: str) -> Param:
    """Source topics that a run is narrowed to."""
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "minLength": 1, "maxLength": 249},
        title="Topics",
        description=description,
    )


def budget_params() -> dict[str, Any]:
    """A run's budgets, and the switches that every run has."""
    return {
        "max_bytes": _budget("Most bytes", "Budget of this run in bytes as stored"),
        "max_records": _budget("Most records", "Budget of this run in records"),
        "max_seconds": _budget("Most seconds", "Time of this run's copy step"),
        "take_over": Param(
            default=False,
            type="boolean",
            title="Take the lane over",
            description="Go on although the last run was another deployment's, by another configuration.",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description="Only show what a run would do now; nothing is written anywhere.",
        ),
    }


def _budget(title: str, what: str) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title=title,
        description=f"{what}; empty, or more than the flow allows: the flow's own.",
    )
