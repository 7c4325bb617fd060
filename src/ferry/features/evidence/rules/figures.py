"""The figures of a drill: what would be lost, how the copying went, and which goals are missed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ferry.model import Receipt, Verified
from ferry.model.check import Check
from ferry.model.evidence import Compared, EvidenceKind, Goal, GroupMoved, Loss, PassedOver, Sample, oldest_loss, summed
from ferry.plan.rules.lag import PartitionLag
from ferry.plan.rules.passed_over import passed_clause
from ferry.words import agreeing, count_of, several

SAMPLES = 60
"""The most points in time for which a report shows lag and throughput."""

_MOST_FINDINGS = 50
_SHORTEST_MS = 250

LOST_SECONDS = "RPO: age of the oldest record that would be lost"
RTO = "RTO"
REREAD = "records read twice"
NOT_KNOWN = "what was skipped on purpose, or became a dead letter, is not known"
"""What a report has next to the loss where it does not count these."""
LISTED = "the groups that the source lists to Ferry's login"
"""Of which groups alone `REREAD` is measured, if there may be others that the login may not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Receipts of one chunk, and when (ms) they were read."""

    at_ms: int
    receipts: Sequence[Receipt]


def losses_of(lags: Iterable[PartitionLag]) -> tuple[Loss, ...]:
    """Return what a failover would lose of each partition, from the lag of the lane."""
    return tuple(
        Loss(
            source=lag.source,
            target=lag.target,
            position=lag.position,
            source_end=lag.source_end,
            records=lag.records,
            bytes=lag.bytes,
            seconds=lag.seconds,
        )
        for lag in lags
    )


def beside_the_loss(passed: Collection[PassedOver] | None) -> str:
    """Say what a target lacks, its losses apart: what was `passed` over, dead letters, and more; empty if nothing.

    None: that is not known.
    """
    return NOT_KNOWN if passed is None else passed_clause(passed)


def samples_of(began_ms: int, offsets: int, chunks: Sequence[Committed]) -> tuple[Sample, ...]:
    """Return lag and rates in equal steps from the start of the copying to its last chunk; `offsets` were to be copied.

    The amounts of a chunk are spread evenly over the time since the slot's chunk before it.
    """
    if not chunks:
        return ()
    whole = max(max(chunk.at_ms for chunk in chunks) - began_ms, 1)
    step = max(_SHORTEST_MS, -(-whole // SAMPLES))
    count = -(-whole // step)
    brought = [[0.0, 0.0, 0.0] for _ in range(count)]  # offsets, records, bytes of each step
    since: dict[int, int] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.at_ms):
        for slot in {receipt.slot for receipt in chunk.receipts}:
            own = [receipt for receipt in chunk.receipts if receipt.slot == slot]
            amounts = (
                sum(receipt.end - receipt.start for receipt in own),
                sum(receipt.records for receipt in own),
                sum(receipt.bytes for receipt in own),
            )
            begin = since.get(slot, began_ms) - began_ms
            _spread(brought, step, begin, max(chunk.at_ms - began_ms, begin + 1), amounts)
            since[slot] = chunk.at_ms
    found, left = [], float(offsets)
    for at, (copied, records, size) in enumerate([[0.0, 0.0, 0.0], *brought]):
        left -= copied
        found.append(
            Sample(
                at_ms=began_ms + at * step,
                lag_records=max(0, round(left)),
                records_per_second=round(records * 1000 / step, 3),
                bytes_per_second=round(size * 1000 / step, 3),
            )
        )
    return tuple(found)


def _spread(brought: list[list[float]], step: int, begin: int, end: int, amounts: tuple[int, int, int]) -> None:
    """Add amounts that came evenly between two times (ms from the first step's begin) to the steps that they touch."""
    last = len(brought) - 1
    for at in range(min(begin // step, last), min((end - 1) // step, last) + 1):
        upper = end if at == last else min(end, (at + 1) * step)
        share = (upper - max(begin, at * step)) / (end - begin)
        for place, amount in enumerate(amounts):
            brought[at][place] += amount * share


def compared_of(result: Verified) -> Compared:
    """Return a comparison in short, with its first findings as sentences."""
    findings = [
        f"{one.kind} at {one.source} offsets {one.source_range[0]} to {one.source_range[1]}, {one.target} offsets "
        f"{one.target_range[0]} to {one.target_range[1]}"
        for one in result.differences
    ]
    findings += [left.message for left in result.not_compared if left.asked]
    more = len(findings) - _MOST_FINDINGS
    return Compared(
        equal=result.is_equal,
        complete=result.is_complete,
        partitions=result.partitions,
        records=result.records,
        bytes=result.bytes,
        seconds=round(result.seconds, 3),
        differences=len(result.differences) + result.more,
        findings=(*findings[:_MOST_FINDINGS], *([f"and {more} more"] if more > 0 else [])),
    )


def together(every: Sequence[Compared]) -> Compared | None:
    """Combine several comparisons into one; None if there was none."""
    if not every:
        return None
    findings = [finding for one in every for finding in one.findings]
    more = len(findings) - _MOST_FINDINGS
    return Compared(
        equal=all(one.equal for one in every),
        complete=all(one.complete for one in every),
        partitions=sum(one.partitions for one in every),
        records=sum(one.records for one in every),
        bytes=sum(one.bytes for one in every),
        seconds=round(sum(one.seconds for one in every), 3),
        differences=sum(one.differences for one in every),
        findings=(*findings[:_MOST_FINDINGS], *([f"and {more} more"] if more > 0 else [])),
    )


def goals_of(
    *,
    losses: Sequence[Loss] | None,
    rpo_seconds: float | None,
    rto_s: float | None,
    rto_seconds: float | None,
    groups: Sequence[GroupMoved] | None,
    moves: bool = True,
    all_groups: bool = True,
    of: str = "",
) -> tuple[Goal, ...]:
    """Return the figures that have goals. `losses` None: they were not counted; `groups` None: none was to be moved.

    `moves`: whether the time that groups are out of service was to be measured. `all_groups`: these are all groups;
    otherwise it is not known what the others read twice. `of`: of which groups alone that is measured; empty: of all.
    """
    oldest = oldest_loss(losses or ())
    found = [Goal(name=LOST_SECONDS, unit="s", wanted=rpo_seconds, measured=oldest)]
    if moves and (rto_s is not None or rto_seconds is not None):
        found.append(Goal(name=RTO, unit="s", wanted=rto_seconds, measured=rto_s))
    if groups is not None:
        twice = summed([group.reread for group in groups]) if all_groups else None
        found.append(Goal(name=REREAD, unit="records", wanted=0, measured=twice, of=of))
    return tuple(found)


def untried(groups: Iterable[GroupMoved], paused: Sequence[str], *, copied: int | None = None) -> tuple[str, ...]:
    """Say what a drill did not test, a sentence each: paused topics, and groups that were not moved.

    With `copied` 0 records the drill tested nothing, which is not success. None: it had nothing to copy.
    """
    idle = [group.group for group in groups if not group.committed and group.exact is not None]
    found = []
    if paused:
        found.append(f"paused, so not copied: {several(sorted(paused))}; `ferry resume` ends that")
    if copied == 0:
        remedy = "" if paused else ": begin earlier with --from"
        found.append(f"nothing was copied, so nothing was tried out{remedy}")
    if idle:
        there = agreeing(len(idle), "group was", "groups were")
        found.append(f"{there} not tried out: {several(sorted(idle))}; their notes say why")
    return tuple(found)


def deviations_of(
    goals: Iterable[Goal],
    groups: Iterable[GroupMoved],
    verification: Compared | None,
    checks: Iterable[Check],
) -> tuple[str, ...]:
    """Return what is not as it should be, a sentence each."""
    found = []
    for goal in goals:
        if goal.is_met is False:
            measured = "is not known" if goal.measured is None else f"is {goal.measured:g} {goal.unit}"
            found.append(f"{goal.name} {measured}, the goal is {goal.wanted:g} {goal.unit} at most")
    for group in groups:
        if group.exact is not None and group.exact < group.committed:
            found.append(
                f"group {group.group} does not continue at the same record in {group.committed - group.exact} of "
                f"{count_of(group.committed, 'partition')}"
            )
        if group.skipped:
            found.append(f"group {group.group} would skip {count_of(group.skipped, 'record')} at most")
    if verification is not None and verification.equal and not verification.records:
        found.append("no record was compared, so the content is not known to be equal")
    if verification is not None and not verification.equal:
        found.append(
            f"the content differs in {count_of(verification.differences, 'place')}"
            if verification.differences
            else "not all of the content could be compared"
        )
    found += [f"{check.name}: {check.message}" for check in checks if not check.ok]
    return tuple(found)


def nothing_sampled(kind: EvidenceKind) -> str:
    """Say why a report has no lag and throughput over time, in one sentence."""
    if kind is EvidenceKind.TABLETOP:
        return "A tabletop drill copies nothing, so there is nothing to draw."
    if kind is EvidenceKind.FAILOVER:
        return "A failover copies nothing, because its source may be gone, so there is nothing to draw."
    if kind in (EvidenceKind.SHADOW, EvidenceKind.PARTIAL):
        return "Nothing was copied, so there is nothing to draw."
    return "Nothing was left to copy, or the ledger no longer keeps those runs, so there is nothing to draw."
