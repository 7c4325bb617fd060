"""Which fields of the drill form belong to which kind of drill, and which values cannot work; pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.report import DIRS, FOLDER
from ferry.features.evidence.acts.places import is_allowed_place
from ferry.model.evidence import EvidenceKind

FIELDS: Mapping[EvidenceKind, frozenset[str]] = {
    EvidenceKind.TABLETOP: frozenset(),
    EvidenceKind.SHADOW: frozenset({"topics", "from", "max_bytes", "clean"}),
    EvidenceKind.PARTIAL: frozenset({"topics", "groups"}),
    EvidenceKind.FULL: frozenset({"id", "leave_groups", "leave_topics", "leave_active"}),
}
"""The fields that only one kind of drill uses, without those that are never empty."""


def foreign_field(kind: EvidenceKind, form: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first filled field of another kind, and a sentence about it; None when there is none."""
    known = frozenset().union(*FIELDS.values())
    for name in sorted(known - FIELDS[kind]):
        if form.get(name):
            why = f"a {kind} drill has no {name}: leave the field empty, or choose another kind of drill"
            return name, why
    return None


def nowhere(flow: FlowConfig, form: Mapping[str, Any]) -> str | None:
    """Return why a report cannot go where the form or the file says; None when it can.

    Either an operator could not find it there, or the form may not name that place.
    """
    asked = str(form.get("report") or "")
    if asked and not is_allowed_place(flow.report, asked):
        return not_allowed("report", asked)
    named = asked or flow.report.folder
    if "://" in named or Path(named).is_absolute():
        return None
    return (
        f"{FOLDER} ({named}) is not a full path, so it would depend on each worker's folder: give {FOLDER} a full path "
        "or a URL, or name one in the form"
    )


def not_allowed(field: str, named: str) -> str:
    """Return that a form may not name a place, and what to do.

    The right to trigger a DAG is not a right to write anywhere.
    """
    return (
        f"{field}: {named} is not a place that the form may name: name {FOLDER}, a folder below it, or a place that "
        f"the file lists in {DIRS}"
    )
