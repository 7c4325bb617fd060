"""Which fields of the drill form belong to which kind of drill; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
