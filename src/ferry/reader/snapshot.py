"""What the page shows of a flow: figures made from one poll, by threads that no request waits for; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from ferry.features.lanes.rules.listing import lane_names
from ferry.features.switch.rules.steps import clients_by
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import LedgerView, pauses
from ferry.ledger.report import Report
from ferry.ledger.switch_codec import switch_states
from ferry.ledger.units import read_ranges
from ferry.model import OpenedRun, Pause
from ferry.model.switch import Step, move_of
from ferry.plan.rules.lag import PartitionLag, TotalLag, total_of
from ferry.reader.charts import Spell
from ferry.reader.documents import Moved, RunDigest, TopicRow, TopicRun, Trouble
from ferry.reader.lag_history import Column
from ferry.reader.lag_point import LagPoint
from ferry.reader.limits import MOST_REFUSALS

MOST_TOPICS = 1000
"""Topics of one run that are kept for plots over time: those with the most to copy."""
MOST_UNDONE = 6
"""The most entries that are kept of what else a run left undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun(PastRun):
    """A run as the reader has read it."""

    silent: tuple[str, ...] = ()
    """The clusters that did not answer its copy, as the outcome of its tasks has them."""


def digest_of(past: PastRun) -> RunDigest:
    """Return a run as a digest."""
    record, report = past.opened.record, past.report
    receipts = report.kept if report else ()
    due: Counter[str] = Counter()
    for piece in report.plan.kept if report else ():
        due[piece.source.topic] += piece.offsets
    for place, (low, high) in read_ranges(report.plan.dealt if report else ()).items():
        due[place.topic] += high - low
    records: Counter[str] = Counter()
    size: Counter[str] = Counter()
    ages: dict[str, int] = {}
    for one in receipts:
        records[one.source.topic] += one.records
        size[one.source.topic] += one.bytes
        if one.latency is not None:
            ages[one.source.topic] = max(ages.get(one.source.topic, 0), one.latency.max)
    for unit in report.dealt if report else ():
        records[unit.source.topic] += unit.records
        size[unit.source.topic] += unit.bytes
    uncounted = {piece.source.topic for piece in report.uncounted} if report else set()
    kept = nlargest(MOST_TOPICS, due, key=lambda topic: (size[topic], due[topic]))
    refusals = report.refusals if report else ()
    undone = left_undone(report) if report else []
    return RunDigest(
        run=record.run,
        generation=past.opened.generation,
        state=past.state,
        started_ms=record.started_ms,
        ended_ms=record.started_ms + int((report.seconds if report else 0) * 1000),
        slices=len(report.plan.slices) if report else 0,
        due=due.total(),
        records=records.total(),
        bytes=size.total(),
        latency_ms=max(ages.values(), default=None),
        refused=len(refusals),
        refusals=tuple(refusals[:MOST_REFUSALS]),
        kinds=dict(Counter(refusal.kind.value for refusal in refusals).most_common()),
        gaps=(report.plan.gaps if report else ())[:MOST_REFUSALS],
        notes=(report.notes if report else ())[:MOST_REFUSALS],
        topics={
            topic: TopicRun(
                due=due[topic],
                records=records[topic],
                bytes=size[topic],
                latency_ms=ages.get(topic),
                uncounted=topic in uncounted,
            )
            for topic in kept
        },
        who=_who(past.opened),
        undone=tuple(undone[:MOST_UNDONE]),
        undone_in_all=len(undone),
        uncounted=bool(uncounted),
        idle=past.state is PastState.SUCCESS and report is not None and _did_nothing(report),
        progress=past.progress,
        cut_short=report is not None and report.plan.cut_short,
        silent=past.silent if isinstance(past, ReadRun) else (),
    )


def _did_nothing(report: Report) -> bool:
    """Return whether a run had nothing to do and wrote no group, as the ledger decides which runs it keeps."""
    return report.plan.is_idle and not (report.groups and report.groups.offsets)


def left_undone(report: Report) -> list[tuple[str, str]]:
    """Return what was not refused but is not as it should be, each with a word: unfinished, a group, a difference."""
    newer = f"run {report.superseded} has the lane now, and it, or " if report.superseded else ""
    found = [
        ("unfinished", f"{one.name} was not copied up to {one.end}: {newer}the next run copies the rest.")
        for one in report.unfinished
    ]
    found += [
        ("unfinished", f"{one.name} was not copied up to {one.end} by this run: a later run copied the rest.")
        for one in report.later
    ]
    found += [("group", one.message) for one in (report.groups.failed if report.groups else ())]
    return found + [("differs", str(one)) for one in (report.verified.complaints if report.verified else ())]


def _who(opened: OpenedRun) -> str:
    origin = opened.record.origin
    return origin.dag_id or origin.host


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A flow as of its last poll. `number` changes with every poll; 0: it was not polled yet."""

    number: int = 0
    looked_ms: int = 0
    """When the last poll was tried."""
    ledger_ms: int = 0
    """The time of the ledger's part; 0: it was never read."""
    lag_ms: int = 0
    """The time of the lag."""
    never_ran: bool = False
    """Whether the ledger has no run of the flow's own lane."""
    records_in_ledger: int = 0
    topics: tuple[TopicRow, ...] = ()
    lags: Mapping[str, Sequence[PartitionLag]] = field(default_factory=dict)
    """Partitions by source topic, in order."""
    total: TotalLag | None = None
    runs: tuple[RunDigest, ...] = ()
    """Newest first, as many as were read by now."""
    known_runs: int = 0
    """How many of the flow's own lane are in the ledger."""
    lanes: tuple[str, ...] = ()
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    """Pauses by source topic; the key "" is the whole flow."""
    history: tuple[LagPoint, ...] = ()
    columns: tuple[Column, ...] = ()
    """The lag history of each partition, of fewer polls if there are many partitions."""
    spells: tuple[Spell, ...] = ()
    moved: Moved | None = None
    """The switch along the flow that promoted its target last."""
    troubles: tuple[Trouble, ...] = ()
    hindrances: tuple[Trouble, ...] = ()
    """What prevents a poll and is not an outage; not of a cluster."""

    @property
    def last_run(self) -> RunDigest | None:
        """The newest run."""
        return self.runs[0] if self.runs else None

    @property
    def is_paused(self) -> bool:
        """Whether the whole flow is paused."""
        return "" in self.pauses

    @property
    def paused_topics(self) -> tuple[str, ...]:
        """Topics that are paused on their own, by name."""
        return tuple(sorted(topic for topic in self.pauses if topic))


def by_topic(lags: Iterable[PartitionLag]) -> dict[str, list[PartitionLag]]:
    """Return partitions by source topic, in the order of the topics' names."""
    found: dict[str, list[PartitionLag]] = {}
    for lag in lags:
        found.setdefault(lag.source.topic, []).append(lag)
    return dict(sorted(found.items()))


def apart_of(
    lags: Mapping[str, Sequence[PartitionLag]], pauses: Mapping[str, Pause]
) -> tuple[TotalLag, TotalLag] | None:
    """Return the lag of the topics that are not paused on their own, and of those that are; None if none is."""
    held = {topic for topic in pauses if topic}
    if not held:
        return None
    active = [lag for topic, parts in lags.items() if topic not in held for lag in parts]
    return total_of(active), total_of([lag for topic in held for lag in lags.get(topic, ())])


def topic_rows(lags: Mapping[str, Sequence[PartitionLag]], held: Mapping[str, Pause]) -> tuple[TopicRow, ...]:
    """Return a row for each topic, also for those that are paused and do not exist."""
    rows = [
        TopicRow(topic=topic, target=parts[0].target.topic, total=total_of(parts), paused=held.get(topic))
        for topic, parts in lags.items()
    ]
    nothing = total_of(())
    rows += [
        TopicRow(topic=topic, target="", total=nothing, paused=pause)
        for topic, pause in held.items()
        if topic and topic not in lags
    ]
    return tuple(sorted(rows, key=lambda row: row.topic))


def ledger_parts(view: LedgerView, now_ms: int) -> tuple[dict[str, Pause], tuple[str, ...]]:
    """Return the pauses in force, and the names of the lanes."""
    return pauses(view, now_ms), tuple(lane_names(view))


def moved_of(view: LedgerView) -> Moved | None:
    """Return the switch to the ledger's cluster that promoted it last."""
    last = clients_by(switch_states(view, with_rows=False).values())
    move = None if last is None else move_of(last)
    if last is None or move is None:
        return None
    return Moved(
        verb=last.switch.verb,
        switch=last.switch.id,
        cluster=last.switch.via.target,
        since_ms=move.at_ms,
        end=None if last.end is None else last.end.outcome,
        redirected=Step.REDIRECT in last.done,
        found=None if move.found is None else tuple(move.found),
    )
