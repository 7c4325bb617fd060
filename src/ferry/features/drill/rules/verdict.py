"""The outcome of a drill, in one word and one sentence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ferry.features.evidence.rules.figures import beside_the_loss
from ferry.model.evidence import EvidenceOutcome, GroupMoved, Loss, PassedOver, StepOutcome, TimelineStep
from ferry.words import agreeing, count_of, several


def outcome_of(steps: Sequence[TimelineStep], refusals: Sequence[str], deviations: Sequence[str]) -> EvidenceOutcome:
    """Return `failed` if a step failed, else `refused` if a step was refused, else `deviations` or `success`."""
    if any(step.outcome is StepOutcome.FAILED for step in steps):
        return EvidenceOutcome.FAILED
    if any(step.outcome is StepOutcome.REFUSED for step in steps):
        return EvidenceOutcome.REFUSED
    return EvidenceOutcome.DEVIATIONS if deviations or refusals else EvidenceOutcome.SUCCESS


def loss_sentence(
    losses: Sequence[Loss], source: str, passed: Collection[PassedOver] | None = (), *, part: bool = False
) -> str:
    """Say what a failover would have lost, and what it lacks because it was `passed` over on purpose.

    `passed` None: what was skipped is not known. `part`: the losses are those of some topics only.
    """
    clause = beside_the_loss(passed)
    said = _loss(losses, source, "nothing more" if clause else "nothing", part=part)
    return f"{said}; {clause}" if clause else said


def _loss(losses: Sequence[Loss], source: str, none: str, *, part: bool) -> str:
    if not losses:
        return "the flow has no partition"
    these = " of these topics" if part else ""
    unknown = sum(loss.records is None for loss in losses)
    records = sum(loss.records or 0 for loss in losses)
    ages = [loss.seconds for loss in losses if loss.records]
    known = [age for age in ages if age is not None]
    oldest = f"the oldest {max(known):.1f} s old" if known and len(known) == len(ages) else "of an age not known"
    lost = f"at most {count_of(records, 'record')}, {oldest}," if records else none
    if unknown:
        there = f"{unknown} of {count_of(len(losses), 'partition')} did not answer"
        return f"what would be missing{these}, had {source} been lost, is not known: {there}; {lost} of the others"
    return f"had {source} been lost, {lost} would be missing{these}"


def shadow_sentence(
    records: int,
    equal: bool | None,
    groups: Sequence[GroupMoved],
    rto_s: float | None,
    target: str,
    *,
    knows_groups: bool,
) -> str:
    """Say what a shadow drill showed. `knows_groups`: as in `partial_sentence`."""
    content = {True: "are equal", False: "are not all equal", None: "were not compared"}[equal]
    time = f", {rto_s:.2f} s after the loss" if rto_s is not None else ""
    there = _continued(groups, "in these topics", time, knows_groups=knows_groups)
    return (
        f"{agreeing(records, 'record was', 'records were')} copied to scratch topics of {target} and {content}; {there}"
    )


def partial_sentence(
    topics: Sequence[str], equal: bool | None, groups: Sequence[GroupMoved], target: str, *, knows_groups: bool
) -> str:
    """Say what a partial drill showed.

    `knows_groups`: the source listed all its groups, and all that the file takes reported their offsets.
    """
    content = {True: "is equal", False: "is not all equal", None: "was not compared"}[equal]
    there = _continued(groups, "there", knows_groups=knows_groups)
    what = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    return f"the copy of {what} on {target} {content}; {there}"


def _continued(groups: Sequence[GroupMoved], where: str, time: str = "", *, knows_groups: bool) -> str:
    """Say how many groups would continue where they were; share groups and those that the file leaves out never do.

    A group that had read beyond the copy would continue at its end: it is named with the number of these offsets. So is
    a group without a committed offset, which was not tried out.
    """
    if groups:
        right = [group for group in groups if group.committed and group.exact == group.committed]
        exact = sum(group.beyond == 0 for group in right)
        others = "" if knows_groups else ", and of other groups it is not known"
        said = f"{exact} of {count_of(len(groups), 'group')} would continue at the same record{time}{others}"
        ahead = [group for group in right if group.beyond]
        if ahead:
            them = several([f"{group.where} {count_of(group.beyond or 0, 'offset')}" for group in ahead])
            why = f"because {'it' if len(ahead) == 1 else 'they'} had read beyond it"
            said += f"; {len(ahead)} would continue at the end of the copy, {why} ({them})"
        idle = [group.where for group in groups if not group.committed]
        return said + (f"; {agreeing(len(idle), 'was', 'were')} not tried out ({several(idle)})" if idle else "")
    if knows_groups:
        return f"no consumer group that the file takes has offsets {where}"
    return f"which groups have offsets {where} is not known"
