"""Records that are passed over on purpose: said in the plan, and kept in the ledger as gaps."""

from __future__ import annotations

from ferry.decide.facts import Facts
from ferry.model import Gap, Plan, Refusal, RefusalKind


def is_passed(refusal: Refusal) -> bool:
    """Whether records were deleted at the source before they were copied; `ferry.guard.retention.passed` decides."""
    return refusal.kind is RefusalKind.RETENTION_PASSED


def passed_note(refusal: Refusal) -> str:
    """The note in place of such a refusal, where the flow's guard says skip."""
    what, _, _ = refusal.message.partition(":")
    return f"{what}: skipped, as ferry.guard.retention.passed says"


def gaps_of(plan: Plan, facts: Facts) -> tuple[Gap, ...]:
    """What the plan's slices leave out between the last receipts and their own beginnings."""
    return tuple(
        Gap(
            source=piece.source,
            start=last.end,
            end=piece.start,
            why=RefusalKind.RETENTION_PASSED,
            run=plan.run,
            at_ms=facts.now_ms,
        )
        for piece in plan.slices
        if (last := facts.receipts.get(piece.target)) is not None and last.end < piece.start
    )
