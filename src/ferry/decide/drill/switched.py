"""What the steps of a switch found, as parts of a report, and as one of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.decide.drill.figures import deviations_of, goals_of
from ferry.decide.switch.steps import next_step
from ferry.model import TopicPartition
from ferry.model.evidence import (
    EvidenceCluster,
    EvidenceKind,
    EvidenceOutcome,
    EvidenceReport,
    GroupMoved,
    Loss,
    Sample,
    StepOutcome,
    TimelineStep,
)
from ferry.model.switch import Json, Step, SwitchOutcome, SwitchState
from ferry.words import count_of

RTO_MEANS = "from when clients were to stop until the other cluster was tried out"

_SAME = frozenset({"exact", "gap", "start"})
"""How an offset was found that leads to the very record that comes next; of a start nothing was read before."""


def told_steps(state: SwitchState) -> tuple[TimelineStep, ...]:
    """The steps that are done, in the order in which they were, and who has approved."""
    switch = state.switch
    return tuple(
        TimelineStep(
            name=f"{switch.verb}-{done.step}",
            title=f"{switch.verb.capitalize()}: {done.step}",
            began_ms=done.begun_ms,
            ended_ms=done.done_ms,
            outcome=StepOutcome.DONE,
            detail=done.evidence.sentence,
            approved_by=switch.approved_by,
            approved_ms=switch.approved_ms,
        )
        for done in sorted(state.done.values(), key=lambda done: done.begun_ms)
    )


def out_of_service_s(state: SwitchState) -> float | None:
    """Seconds in which clients had no cluster: from when they were to stop until the new one was tried out.

    Of an unplanned failover from its begin. None as long as that is not over.
    """
    begun = state.done.get(Step.QUIET) or state.done.get(Step.STOP)
    end = state.done.get(Step.SMOKE)
    return None if begun is None or end is None else (end.done_ms - begun.begun_ms) / 1000


def told_losses(state: SwitchState) -> tuple[Loss, ...]:
    """What the new cluster has not, by partition: as counted when the flow was stopped, or as the failover told it."""
    counted = {(row["topic"], row["partition"]): row for row in state.rows(Step.LOSS)}
    return tuple(_loss(row, counted.get((row["topic"], row["partition"]))) for row in state.rows(Step.STOP))


def _loss(row: Json, told: Json | None) -> Loss:
    """Nothing is known of a partition whose source did not answer: what was seen of it is in `unknown_losses`."""
    end, copied = row["source_end"], row["copied_end"]
    certain = row["source_known"] == "source" if told is None else told["certain"]
    records = max(0, end - copied) if told is None else told["records"]
    seconds = told["seconds"] if told is not None else None if records else 0.0
    return Loss(
        source=TopicPartition(row["topic"], row["partition"]),
        target=TopicPartition(row["target_topic"], row["target_partition"]),
        position=copied,
        source_end=end if certain else None,
        records=records if certain else None,
        bytes=None,
        seconds=seconds if certain else None,
    )


def unknown_losses(state: SwitchState) -> tuple[str, ...]:
    """What was seen of partitions whose loss nobody knows, in a sentence; none where all of them answered."""
    unsure = [row for row in state.rows(Step.LOSS) if not row["certain"]]
    if not unsure:
        return ()
    records = sum(row["records"] for row in unsure)
    worst = max(row["seconds"] for row in unsure)
    known = f"{count_of(records, 'record')} of them {'is' if records == 1 else 'are'} known to be lost"
    sentence = (
        f"{count_of(len(unsure), 'partition')} did not answer when the loss was counted: {known}, and what came in the "
        f"{worst:.1f} s since somebody last saw them is not known"
    )
    return (sentence,)


def lost_sentence(losses: Sequence[Loss]) -> str:
    """What a switch has lost: a number only where every partition told its own."""
    unknown = sum(loss.records is None for loss in losses)
    if unknown:
        there = count_of(len(losses), "partition")
        return f"how many records were lost is not known: {unknown} of {there} did not answer"
    records = sum(loss.records or 0 for loss in losses)
    return f"{count_of(records, 'record')} {'was' if records == 1 else 'were'} lost" + (", at most" if records else "")


def told_groups(state: SwitchState) -> tuple[GroupMoved, ...]:
    """The groups that were moved, and those that were left."""
    frozen = {row["group"]: row for row in state.rows(Step.FREEZE) if "group" in row}
    return tuple(_group(row, frozen.get(row["group"])) for row in state.rows(Step.GROUPS))


def _group(row: Json, frozen: Json | None) -> GroupMoved:
    words: Sequence[str] = tuple(row["how"].values())
    kept: Sequence[Json] = row["kept"]
    same = sum(word in _SAME for word in words)
    # Where it was found further on than it had read on the old cluster, nobody compared what it has read.
    whole = row["outcome"] == "moved" and same == len(words) and bool(words) and not kept
    return GroupMoved(
        group=row["group"],
        target_group=row["group"],
        partitions=len(words) + len(kept),
        committed=len(row["offsets"]),
        exact=same,
        reread=0 if whole else None,
        skipped=0 if whole else None,
        note="; ".join(
            ([row["why"]] if row["why"] else [])
            + ([f"{count_of(len(kept), 'partition')} left further on, where it stood"] if kept else [])
            + list(row["notes"])
        ),
        lag=None if frozen is None else _lag(frozen),
    )


def _lag(frozen: Json) -> int | None:
    """Of all partitions whose ends are known; None where none is."""
    known = [lag for _, _, _, lag in frozen["offsets"] if lag is not None]
    return sum(known) if known else None


def switch_report(
    state: SwitchState,
    *,
    lane: str,
    policy: str,
    clusters: tuple[EvidenceCluster, ...],
    version: str,
    rpo_seconds: float | None,
    rto_seconds: float | None,
    samples: tuple[Sample, ...] = (),
) -> EvidenceReport:
    """The report of a switch, finished or not, from what the ledger has of it. Goals are seconds.

    `samples` are of its drain.
    """
    switch, end = state.switch, state.end
    steps, losses, groups = told_steps(state), told_losses(state), told_groups(state)
    service_s = out_of_service_s(state)
    goals = goals_of(
        losses=losses,
        rpo_seconds=rpo_seconds,
        rto_s=service_s,
        rto_seconds=rto_seconds,
        groups=groups if Step.GROUPS in state.done else None,
    )
    deviations = deviations_of(goals, groups, None, ())
    due = next_step(state)
    if end is None:
        outcome, summary = EvidenceOutcome.FAILED, f"it is not finished: its next step is {due}"
    elif end.outcome is SwitchOutcome.ABANDONED:
        outcome, summary = EvidenceOutcome.REFUSED, f"{end.who} has given it up: {end.why}"
    else:
        outcome = EvidenceOutcome.DEVIATIONS if deviations else EvidenceOutcome.SUCCESS
        summary = f"clients were moved to {switch.via.target}; {lost_sentence(losses)}"
    stopped = state.done.get(Step.STOP)
    return EvidenceReport(
        id=switch.id,
        kind=EvidenceKind(switch.verb.value),
        flow=switch.via,
        lane=lane,
        policy=policy,
        clusters=clusters,
        who=switch.who,
        version=version,
        began_ms=switch.at_ms,
        ended_ms=max([switch.at_ms, *(step.ended_ms for step in steps), *([end.at_ms] if end is not None else [])]),
        outcome=outcome,
        summary=summary,
        steps=steps,
        goals=goals,
        losses=losses,
        losses_at_ms=stopped.done_ms if stopped is not None else 0,
        rto_s=service_s,
        rto_means="" if service_s is None else RTO_MEANS,
        groups=groups,
        samples=samples,
        deviations=deviations,
        notes=unknown_losses(state),
    )
