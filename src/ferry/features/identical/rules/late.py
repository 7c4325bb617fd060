"""Until when a batch with identical offsets may still arrive at the target, once its writers are fenced.

The broker compares a lane's batches with each other, not with the records of other producers. So clients may write when
each late batch is compared and refused, or when none can arrive any more (ADR 57, "What a switch needs").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ferry.errors import BadInput
from ferry.features.identical.rules.planned import LEASE_MS, MARGIN_MS
from ferry.ledger.codec import SEAL, decode_key
from ferry.ledger.ledger import LedgerView
from ferry.ledger.plan_codec import is_idle_seal
from ferry.ledger.rebuilt import newest_rebuild
from ferry.ledger.runs import busy_runs, sealed_plan
from ferry.ledger.switch_codec import switch_states
from ferry.model import Plan, Slice, TopicPartition
from ferry.model.switch import Step
from ferry.plan.rules.lag import PartitionLag
from ferry.protocol.driver import KEPT_RUNS

GENERATION, LANE = "generation", "lane"
"""Facts of the step `stop`: the run that fenced, and its lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A run whose tasks may have sent batches. They begin none later than a lease after the record of the `after` run.

    `after` is a generation; None: no run came after it yet. `ends` is up to where it planned each target partition;
    None: that is not known.
    """

    after: int | None
    ends: Mapping[TopicPartition, int] | None
    sources: Mapping[TopicPartition, TopicPartition] = field(default_factory=dict)
    """The source partitions, by target partition."""


def senders(view: LedgerView, lane: str) -> list[Sender]:
    """Return the runs of a lane that may have sent batches at the source's offsets, oldest first.

    A plan that the view does not have, or that cannot be read, is not known. Neither are the runs that the ledger has
    forgotten, if there are some: they are older than each busy run that it keeps. Nor are those that it lost before it
    was rebuilt. Runs before the step `stop` of a switch are left out: it ended when none of their batches could arrive.
    """
    stopped = stopped_at(view, lane)
    generations = sorted({run.generation for run in view.runs if run.record.lane == lane})
    busy = sorted(_busy(view, lane), key=lambda one: one[1])
    found = []
    kept, rebuilt = busy_runs(view, lane), newest_rebuild(view)
    if len(kept) >= KEPT_RUNS and kept[0].generation > stopped:
        found.append(Sender(after=kept[0].generation, ends=None))
    if rebuilt is not None and rebuilt.offset >= stopped:
        found.append(Sender(after=next((one for one in generations if one > rebuilt.offset), None), ends=None))
    for run, generation in busy:
        if generation < stopped:
            continue
        after = next((one for one in generations if one > generation), None)
        try:
            sealed = sealed_plan(view, lane, run, generation)
        except (LookupError, BadInput):
            found.append(Sender(after=after, ends=None))
            continue
        pieces = [] if sealed is None else _identical(sealed[0])
        if pieces:
            ends = {piece.target: piece.end for piece in pieces}
            sources = {piece.target: piece.source for piece in pieces}
            found.append(Sender(after=after, ends=ends, sources=sources))
    return found


def stopped_at(view: LedgerView, lane: str) -> int:
    """Return the generation of the newest run by which the step `stop` of a switch has fenced a lane; -1: none has.

    That step is done when no batch of an earlier run can arrive any more (`ferry.features.switch.acts.stop`).
    """
    found = (
        state.fact(Step.STOP, GENERATION)
        for state in switch_states(view).values()
        if state.fact(Step.STOP, LANE) == lane
    )
    return max((int(one) for one in found if one is not None), default=-1)


def _busy(view: LedgerView, lane: str) -> set[tuple[str, int]]:
    """Return run and generation of each plan with something to do, also of a run that was opened again under its name.

    Plans that are only in the summary all have something to do.
    """
    seals = [key for key, record in view.of_kind("plan") if record.value is not None and not is_idle_seal(record.value)]
    seals += [decode_key(key.encode()) for key in view.rolled.left if key not in view.by_key]
    return {(key[2], key[3]) for key in seals if key[:2] == ["plan", lane] and key[4] == SEAL}


def _identical(plan: Plan) -> list[Slice]:
    return [piece for piece in plan.slices if piece.producer is not None]


def lateness_of(idle_ms: Iterable[int | None]) -> int | None:
    """Return how late a request may arrive (ms), from `connections.max.idle.ms` of each broker.

    None: no bound is known, because a broker never closes an idle connection, or does not show that.
    """
    found = list(idle_ms)
    known = [one for one in found if one is not None and one >= 0]
    return max(known) + MARGIN_MS if known and len(known) == len(found) else None


def reaching(found: Iterable[Sender], place: TopicPartition, end: int) -> list[Sender]:
    """Return the runs that may have sent a batch of `place` which the broker would not compare and refuse.

    All that the partition has ends at `end`, and it is the lane's. Then a late batch before it is compared with what is
    there. One at the end is appended, wherever the log then ends. -1: the broker may compare none.
    """
    return [one for one in found if one.ends is None or one.ends.get(place, -1) > end]


def until_ms(some: Iterable[Sender], stamps: Mapping[int, int], fenced_ms: int, lateness: int | None) -> int | None:
    """Return until when batches of `some` runs may arrive (ms). None: there is no bound that is known.

    `stamps` is when the ledger had the records of runs, by generation. A run that no other one followed ends as if a
    run began at `fenced_ms`, and so does one whose successor has no stamp.
    """
    times = [fenced_ms if one.after is None else stamps.get(one.after, fenced_ms) for one in some]
    return None if lateness is None else max(times) + LEASE_MS + lateness


def without_found(lags: Iterable[PartitionLag], ends: Mapping[TopicPartition, int]) -> list[PartitionLag]:
    """Return lags without the records that the target has, but no receipt shows.

    `ends` are the ends of partitions that hold the lane's records alone, and those of copies that end before the
    position. How many bytes and seconds are left is not known.
    """
    found = []
    for lag in lags:
        there = ends.get(lag.target)
        if lag.position is None or lag.records is None or there is None or there == lag.position:
            found.append(lag)
            continue
        left = max(0, lag.records - (there - lag.position))
        known = replace(lag, position=there, records=left, bytes=None, bytes_from=None, seconds=None)
        found.append(known if left else replace(known, bytes=0, seconds=0.0))
    return found
