"""What the steps of a switch found, as parts of a report."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.model import TopicPartition
from ferry.model.evidence import GroupMoved, Loss, StepOutcome
from ferry.model.evidence import Step as Told
from ferry.model.switch import Json, Step, SwitchState

_SAME = frozenset({"exact", "gap", "start"})
"""How an offset was found that leads to the very record that comes next; of a start nothing was read before."""


def told_steps(state: SwitchState) -> tuple[Told, ...]:
    """The steps that are done, in the order in which they were, and who has approved."""
    switch = state.switch
    return tuple(
        Told(
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


def _loss(row: Json, counted: Json | None) -> Loss:
    end, copied = row["source_end"], row["copied_end"]
    records = max(0, end - copied) if counted is None else counted["records"]
    seconds = counted["seconds"] if counted is not None else None if records else 0.0
    return Loss(
        source=TopicPartition(row["topic"], row["partition"]),
        target=TopicPartition(row["target_topic"], row["target_partition"]),
        position=copied,
        source_end=end,
        records=records,
        bytes=None,
        seconds=seconds,
    )


def told_groups(state: SwitchState) -> tuple[GroupMoved, ...]:
    """The groups that were moved, and those that were left."""
    return tuple(_group(row) for row in state.rows(Step.GROUPS))


def _group(row: Json) -> GroupMoved:
    words: Sequence[str] = tuple(row["how"].values())
    same = sum(word in _SAME for word in words)
    whole = row["outcome"] == "moved" and same == len(words)
    return GroupMoved(
        group=row["group"],
        target_group=row["group"],
        partitions=len(words),
        committed=len(row["offsets"]),
        exact=same,
        reread=0 if whole else None,
        skipped=0 if whole else None,
        note="; ".join(([row["why"]] if row["why"] else []) + list(row["notes"])),
    )
