"""How a drill ended, in one word and one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.model.evidence import EvidenceOutcome, GroupMoved, Loss, StepOutcome, TimelineStep
from ferry.words import count_of


def outcome_of(steps: Sequence[TimelineStep], refusals: Sequence[str], deviations: Sequence[str]) -> EvidenceOutcome:
    """The word. What was refused before anything was copied is `refused`, later it is `failed`."""
    if any(step.outcome is StepOutcome.FAILED for step in steps):
        return EvidenceOutcome.FAILED
    if any(step.outcome is StepOutcome.REFUSED for step in steps):
        return EvidenceOutcome.REFUSED
    return EvidenceOutcome.DEVIATIONS if deviations or refusals else EvidenceOutcome.SUCCESS


def loss_sentence(losses: Sequence[Loss], source: str) -> str:
    """What a failover would have lost."""
    if not losses:
        return "the flow has no partition"
    unknown = sum(loss.records is None or loss.seconds is None for loss in losses)
    records = sum(loss.records or 0 for loss in losses)
    oldest = max((loss.seconds or 0.0 for loss in losses), default=0.0)
    lost = f"at most {count_of(records, 'record')}, the oldest {oldest:.1f} s old," if records else "nothing"
    more = f", and of {count_of(unknown, 'partition')} that is not known" if unknown else ""
    return f"had {source} been lost, {lost} would be missing{more}"


def shadow_sentence(
    records: int, equal: bool | None, groups: Sequence[GroupMoved], rto_s: float | None, target: str
) -> str:
    """What a shadow drill showed."""
    content = {True: "are equal", False: "are not all equal", None: "were not compared"}[equal]
    exact = sum(bool(group.committed) and group.exact == group.committed and not group.beyond for group in groups)
    there = (
        f"{exact} of {count_of(len(groups), 'group')} would go on at the same record"
        if groups
        else "no group stands on these topics"
    )
    time = f", {rto_s:.2f} s after the loss" if rto_s is not None and groups else ""
    return f"{records} records were copied to scratch topics of {target} and {content}; {there}{time}"


def partial_sentence(topics: Sequence[str], equal: bool | None, groups: Sequence[GroupMoved], target: str) -> str:
    """What a partial drill showed."""
    content = {True: "is equal", False: "is not all equal", None: "was not compared"}[equal]
    exact = sum(bool(group.committed) and group.exact == group.committed for group in groups)
    there = (
        f"{exact} of {count_of(len(groups), 'group')} would go on at the same record"
        if groups
        else "no group stands there"
    )
    what = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    return f"the copy of {what} on {target} {content}; {there}"
