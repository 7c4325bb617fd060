"""The report of a run as a value: its state, its figures and its sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from ferry.config.flow.guards import GUARD_KEYS
from ferry.ledger.units import done_ranges
from ferry.messages.catalogue import caused, sentence
from ferry.model import (
    NOT_THROTTLED,
    FilterCounts,
    Gap,
    GroupOutcome,
    Left,
    Plan,
    Receipt,
    Refusal,
    RefusalKind,
    Resolution,
    RunVerified,
    Sentence,
    Slice,
    ThrottleTime,
    TopicPartition,
    VerifyMode,
    Why,
)
from ferry.words import agreeing, count_of


class RunState(StrEnum):
    """How a run ended, as far as the ledger shows."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run as evidence.

    `unfinished` are slices without receipts up to their end that were not refused. `left` are those for which the run's
    time did not suffice: the next run continues there, and nothing is wrong. `done` counts the slices that the run
    copied to their end. Of those in `later` a later run copied the rest: they are not missing.
    """

    plan: Plan
    started_ms: int
    receipts: tuple[Receipt, ...]
    refusals: tuple[Refusal, ...]
    unfinished: tuple[Slice, ...]
    left: tuple[Slice, ...]
    done: int
    later: tuple[Slice, ...] = ()
    sifted: Mapping[str, FilterCounts] = field(default_factory=dict)
    """What transforms read and kept in the run's last attempt, by source topic."""
    groups: GroupOutcome | None = None
    """The outcome of the consumer groups; None when they were not processed (yet)."""
    verified: RunVerified | None = None
    """The result of the verification of the copy; None when there was none (yet)."""
    verify_due: VerifyMode = VerifyMode.OFF
    """How the run was to verify itself."""
    superseded: str = ""
    """The newest run of the lane, which has what is unfinished of this one.

    Empty: it is this one, or nothing is unfinished.
    """
    uncounted: tuple[Slice, ...] = ()
    """Slices whose receipts the ledger has deleted, because their copies were deleted later.

    No figure includes them.
    """

    @property
    def kept(self) -> tuple[Receipt, ...]:
        """The receipts whose records keep the number of their partition."""
        return tuple(one for one in self.receipts if not one.dealt)

    @property
    def dealt(self) -> tuple[Receipt, ...]:
        """The receipts of repartitioned topics."""
        return tuple(one for one in self.receipts if one.dealt)

    @property
    def records(self) -> int:
        """Number of records copied."""
        return sum(receipt.records for receipt in self.receipts)

    @property
    def bytes(self) -> int:
        """Bytes copied, as stored."""
        return sum(receipt.bytes for receipt in self.receipts)

    @property
    def batches(self) -> int:
        """Number of batches written."""
        return sum(receipt.batches for receipt in self.receipts)

    @property
    def transcoded(self) -> int:
        """Number of those batches that were encoded again."""
        return sum(receipt.transcoded for receipt in self.receipts)

    @property
    def missing(self) -> int:
        """Number of source offsets in the copied ranges of which the source has no record."""
        return sum(receipt.missing or 0 for receipt in self.receipts)

    @property
    def dead_letters(self) -> int:
        """Number of records on which a transform failed, and that are dead letters."""
        return sum(receipt.dead_letters for receipt in self.receipts)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the plan, and those about the copy."""
        about_copy = missing_notes(self.plan, self.receipts), transform_notes(self.receipts), dealt_notes(self.dealt)
        taken = superseded_notes(self.plan, self.superseded)
        return (*self.plan.notes, *taken, *chain.from_iterable(about_copy), *sifted_notes(self.sifted))

    @property
    def throttled(self) -> ThrottleTime:
        """How long the run's tasks were throttled, all together."""
        return throttling(self.receipts)

    @property
    def seconds(self) -> float:
        """Seconds from opening the run to its last receipt."""
        last = max((receipt.at_ms for receipt in self.receipts), default=self.started_ms)
        return max(0, last - self.started_ms) / 1000

    @property
    def state(self) -> RunState:
        """How the run ended.

        `success`: it refused and left nothing, no group failed, and no difference was found. `failed`: no part of the
        run's work was done. `partial`: all other cases. The work of a run is its slices. Where it has none, partitions
        that rightly have nothing to copy count as work done.
        """
        if not self.refusals and not self.unfinished and not self.later:
            failed = self.groups is not None and self.groups.failed
            differs = self.verified is not None and not self.verified.equal
            return RunState.PARTIAL if failed or differs else RunState.SUCCESS
        in_part = self.receipts or self.done or (not self.plan.copies and self.plan.caught_up)
        return RunState.PARTIAL if in_part else RunState.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardCount:
    """How often a guard refused, and how often a policy skipped or restarted in place of a refusal."""

    refused: int = 0
    skipped: int = 0
    restarted: int = 0


GUARDS = frozenset(guard.kind for guard in GUARD_KEYS) | {RefusalKind.STUCK.value}
"""The kinds of refusals that a policy, or an operator by hand, may lift."""


class Tripped(NamedTuple):
    """A guard by the word of its refusals, what followed (a field of GuardCount), and the source topic."""

    guard: str
    did: str
    topic: str
    """Empty when the whole flow is meant, or the plan keeps no name."""


def tripped(refusals: Iterable[Refusal], gaps: Iterable[Gap], lifted: Iterable[RefusalKind] = ()) -> Counter[Tripped]:
    """Count how often each guard tripped, by topic; `lifted` is what was skipped without a gap."""
    counts = Counter(
        Tripped(refusal.kind.value, "refused", refusal.topic) for refusal in refusals if refusal.kind.value in GUARDS
    )
    counts.update(
        Tripped(gap.why.value, "skipped" if gap.how is Resolution.SKIP else "restarted", gap.source.topic)
        for gap in gaps
    )
    counts.update(Tripped(kind.value, "skipped", "") for kind in lifted)
    return counts


def guard_counts(
    refusals: Iterable[Refusal], gaps: Iterable[Gap], lifted: Iterable[RefusalKind] = ()
) -> dict[str, GuardCount]:
    """Count the guards that tripped, by the word of their refusals; the arguments are those of `tripped`."""
    by_guard: dict[str, Counter[str]] = {}
    for (guard, did, _), count in tripped(refusals, gaps, lifted).items():
        by_guard.setdefault(guard, Counter())[did] += count
    return {guard: GuardCount(**counts) for guard, counts in sorted(by_guard.items())}


def missing_notes(plan: Plan, receipts: Iterable[Receipt]) -> list[Sentence]:
    """Return a note for each partition that lacks offsets though its topic shows no compaction.

    It is not a refusal. Compaction that was switched off has left such holes for ever, and no answer of a broker
    distinguishes them from those of a damaged log. Nothing else on a broker makes them: retention and DeleteRecords
    move the log's start.
    """
    compacted = {piece.source for piece in plan.slices if piece.compacted}
    found: dict[TopicPartition, tuple[int, int, int]] = {}
    for receipt in receipts:
        if receipt.missing and receipt.source not in compacted:
            missing, start, end = found.get(receipt.source, (0, receipt.start, receipt.end))
            found[receipt.source] = missing + receipt.missing, min(start, receipt.start), max(end, receipt.end)
    return [
        sentence("copy.holes", place=str(place), missing=missing, start=start, last=end - 1)
        for place, (missing, start, end) in sorted(found.items())
    ]


def transform_notes(receipts: Iterable[Receipt]) -> list[Sentence]:
    """Return what each transform made of the offsets that receipts have.

    These are the ledger's own figures, which no retry doubles. Some offsets have no record in the copy: a transform
    left it out, or they were markers or compacted. Receipts do not show which; the job counts that while it reads.
    """
    found: dict[str, list[int]] = {}
    for receipt in receipts:
        if receipt.transform:
            counts = found.setdefault(receipt.transform, [0, 0, 0])
            counts[0] += receipt.end - receipt.start
            counts[1] += receipt.records
            counts[2] += receipt.dead_letters
    return [
        sentence(
            "transform.counts",
            transform=name,
            offsets=offsets,
            records=written,
            letters=letters,
            others=offsets - written - letters,
        )
        for name, (offsets, written, letters) in sorted(found.items())
    ]


def sifted_notes(sifted: Mapping[str, FilterCounts]) -> list[Sentence]:
    """Return what transforms left out in an attempt, as counted while records were read."""
    return [
        sentence("transform.sifted", topic=topic, records=one.read, left_out=one.left_out)
        for topic, one in sorted(sifted.items())
    ]


def read_of(units: Iterable[Receipt]) -> dict[tuple[str, str], int]:
    """Return by source and target topic how many offsets were read for repartitioned copies.

    Each offset counts once for all partitions.
    """
    by_topics: dict[tuple[str, str], list[Receipt]] = {}
    for unit in units:
        by_topics.setdefault((unit.source.topic, unit.target.topic), []).append(unit)
    return {topics: sum(high - low for low, high in done_ranges(own).values()) for topics, own in by_topics.items()}


def dealt_notes(units: Collection[Receipt]) -> list[Sentence]:
    """Return a note for each repartitioned topic of a run."""
    read = read_of(units)
    found = []
    for topic, target in sorted(read):
        own = [unit for unit in units if (unit.source.topic, unit.target.topic) == (topic, target)]
        records, letters = sum(unit.records for unit in own), sum(unit.dead_letters for unit in own)
        found.append(
            sentence(
                "transform.dealt",
                topic=topic,
                offsets=read[topic, target],
                records=records,
                partitions=len({unit.target for unit in own}),
                target=target,
                letters=letters,
            )
        )
    return found


def superseded_notes(plan: Plan, newer: str) -> list[Sentence]:
    """Return the note that the run `newer` began before this one was finished, and what follows from that.

    An empty `newer` means that there is none.
    """
    return [sentence("run.superseded", run=plan.run, newer=newer, lane=plan.lane)] if newer else []


def unfinished_sentence(report: Report, piece: Slice) -> str:
    """Return how far the run came with a slice that it did not finish, and which run copies the rest."""
    if piece in report.later:
        return f"{_come(report, piece)}: a later run copied the rest"
    rest = f"ferry run --resume {report.plan.run}, or the next run, copies the rest"
    if report.superseded:
        rest = f"run {report.superseded} has the lane now, and it, or the next run, copies the rest"
    return f"{_come(report, piece)}: {rest}"


def _come(report: Report, piece: Slice) -> str:
    end = max((receipt.end for receipt in report.receipts if receipt.target == piece.target), default=piece.start)
    if piece.dealt:
        return f"{piece.name} has come through {end - piece.start} of {piece.offsets} offsets"
    return f"{piece.source} was copied up to offset {end} of {piece.end}"


def as_known(figure: str, report: Report) -> str:
    """Return a figure of what a run copied, as far as the ledger still has its receipts; empty where it has none."""
    if not report.uncounted:
        return figure
    return f"at least {figure}" if report.records else ""


UNKNOWN = "how much the run copied is not known any more"
"""In place of figures of a run of which no receipt is left."""


def uncounted_sentence(report: Report) -> str | None:
    """Return what the figures of a run lack; None when they are complete."""
    if not report.uncounted:
        return None
    known = f"the run copied at least {count_of(report.records, 'record')}" if report.records else UNKNOWN
    return f"not counted: {count_of(len(report.uncounted), 'slice')} whose receipts the ledger has forgotten: {known}"


def pieces_sentence(plan: Plan) -> str:
    """Return how many slices a plan has, and how many units if any."""
    slices, units = count_of(len(plan.kept), "slice"), count_of(len(plan.dealt), "unit")
    if not plan.dealt:
        return slices
    return f"{slices}, {units}" if plan.kept else units


def missing_sentence(count: int) -> str | None:
    """Return how many offsets have no record; None where all have."""
    there = agreeing(count, "offset in what was copied has", "offsets in what was copied have")
    return f"missing at the source: {there} no record" if count else None


def throttling(receipts: Iterable[Receipt]) -> ThrottleTime:
    """Return how long the tasks with these receipts were throttled, all together."""
    return sum((receipt.throttled for receipt in receipts), NOT_THROTTLED)


def throttled_sentence(found: ThrottleTime) -> str | None:
    """Return what throttled a run's tasks, and for how long; None when nothing did."""
    parts = [
        f"{ms / 1000:.1f} s by {who}"
        for ms, who in (
            (found.ferry, "ferry.throttle.bytes.per.second"),
            (found.source, "quotas of the source's brokers"),
            (found.target, "quotas of the target's brokers"),
        )
        if ms
    ]
    return f"throttled, added up over tasks: {', '.join(parts)}" if parts else None


def without_groups(report: Report, why: object) -> Report:
    """Return the report of a run whose groups could not be processed; `why` is an error or a text."""
    left = Left(group="", place=None, why=Why.FAILED, message=caused("groups.none-translated", why))
    return replace(report, groups=GroupOutcome(groups=0, offsets=0, unchanged=0, left=(left,), inexact={}))


def verified_sentences(found: RunVerified | None) -> list[str]:
    """Return the result of a run's verification in sentences; none when there was no verification."""
    return [] if found is None else [*(f"differs: {complaint}" for complaint in found.complaints), found.sentence]


def not_verified(report: Report, why: str) -> Report:
    """Return the report of a run that should have verified itself and could not."""
    found = RunVerified(
        mode=report.verify_due,
        generation=report.plan.generation,
        equal=False,
        partitions=0,
        records=0,
        bytes=0,
        seconds=0.0,
        not_compared=(f"what was copied was not verified: {why}",),
    )
    return replace(report, verified=found)
