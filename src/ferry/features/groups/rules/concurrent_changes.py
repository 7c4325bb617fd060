"""What changed while group offsets were read: what others wrote to the ledger, and groups that others moved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ferry.features.groups.rules.checkpoints import TargetGroups, Write
from ferry.ledger.codec import decode_key
from ferry.ledger.ledger import fold, pauses
from ferry.ledger.reading import read_as, text
from ferry.messages.catalogue import said, sentence
from ferry.model import CommittedOffset, LedgerRecord, Left, Why


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentChanges:
    """What others did meanwhile. `why`, if any, is the reason to leave all groups alone.

    `taken` are the groups that others wrote, each with what wrote it.
    """

    why: str | None = None
    taken: Mapping[str, str] = field(default_factory=dict)


def concurrent_changes(
    records: Iterable[LedgerRecord], lane: str, *, own: Collection[int] = (), now_ms: int, is_run: bool
) -> ConcurrentChanges:
    """Return what ledger records since the reading began mean. Those at the offsets `own` are Ferry's, and skipped.

    With `is_run` a run or a schedule read the groups, and a newer run of the lane stops the write. Without it an
    operator asked, and only a pause stops the write.
    """
    others = [one for one in records if one.offset not in own]
    view = fold(others, end=-1)
    newer = max((one for one in view.runs if one.record.lane == lane), key=lambda one: one.generation, default=None)
    pause = pauses(view, now_ms).get("")
    why = None
    if pause is not None:
        why = f"{pause.who} paused the flow ({pause.why}) while they were checked"
    elif newer is not None and is_run:
        why = f"run {newer.record.run} began while they were checked"
    taken = {}
    for record in others:
        if record.key.startswith(b'["group",') and (key := decode_key(record.key))[1:2] == [lane]:
            # Without a value: `ferry groups rollback` restored all that Ferry wrote of the group.
            taken[key[2]] = (
                "a rollback" if record.value is None else f"run {read_as(record, lambda body: text(body['run']))}"
            )
    return ConcurrentChanges(why=why, taken=taken)


def left_to_others(taken: Mapping[str, str], groups: Collection[str]) -> list[Left]:
    """Return a `Left` for each of `groups` that another process wrote meanwhile, because it had newer offsets."""
    return [
        Left(
            group=group,
            place=None,
            why=Why.MOVED,
            message=sentence("group.written-meanwhile", group=group, by=run),
        )
        for group, run in taken.items()
        if group in groups
    ]


def still_there(
    writes: Mapping[str, list[Write]], now: TargetGroups, alias: str
) -> tuple[dict[str, list[Write]], list[Left]]:
    """Return the writes whose target partitions still have the offset that they were decided on.

    For each other write there is a `Left` with the reason.
    """
    found: dict[str, list[Write]] = {}
    left: list[Left] = []
    for group, ones in writes.items():
        if (error := now.failed.get(group)) is not None:
            left.append(Left(group=group, place=None, why=Why.FAILED, message=said(error)))
            continue
        there, pending = now.offsets.get(group, {}), now.pending.get(group, frozenset())
        kept = []
        for write in ones:
            place = write.checkpoint.target
            if place in pending:
                why, how = Why.PENDING, "another client commits it in a transaction now"
            elif there.get(place) != write.before:
                why, how = Why.MOVED, f"from {_said(write.before)} to {_said(there.get(place))}"
            else:
                kept.append(write)
                continue
            left.append(
                Left(
                    group=group,
                    place=place,
                    why=why,
                    message=sentence("group.changed-meanwhile", group=group, place=str(place), target=alias, how=how),
                )
            )
        if kept:
            found[group] = kept
    return found, left


def _said(at: CommittedOffset | None) -> str:
    return "none" if at is None else str(at.offset)
