"""What the ledger shows about runs: the owner of a lane, the slots to fence, plans, attempts and outcomes."""

from __future__ import annotations

from functools import partial

from ferry.errors import BadInput
from ferry.ledger.codec import SEAL, decode_key, encode
from ferry.ledger.kinds import KINDS_OF_RUN
from ferry.ledger.ledger import LedgerView
from ferry.ledger.plan_codec import is_idle_seal, parse_plan
from ferry.ledger.reading import read_as, whole
from ferry.ledger.run_codec import FENCED, OUTCOME, Fenced, Outcome, parse_attempt
from ferry.model import Attempt, Flow, LedgerRecord, OpenedRun, Plan, Record


def newest_run(view: LedgerView, lane: str) -> OpenedRun | None:
    """Return the run that owns the lane: the one with the highest generation."""
    return max((run for run in view.runs if run.record.lane == lane), key=lambda run: run.generation, default=None)


def opened_run(view: LedgerView, lane: str, run: str) -> OpenedRun | None:
    """Return the newest run record with this run id; None when there is none, or the ledger has deleted it."""
    found = [opened for opened in view.remembered(lane) if opened.record.run == run]
    return found[-1] if found else None


def has_run(view: LedgerView, lane: str) -> bool:
    """Return whether the lane has receipts, or a run that may have read the source.

    A switch opens a run of the flow back only to record where that flow begins: that run has not read the source.
    """
    if any(decode_key(key.encode())[1] == lane for key in view.keys("last")):
        return True
    newest = {one.record.run: one for one in view.remembered(lane)}
    return any(_may_have_looked(view, one) for one in newest.values())


def _may_have_looked(view: LedgerView, opened: OpenedRun) -> bool:
    try:
        found = sealed_plan(view, opened.record.lane, opened.record.run, opened.generation)
    # it is before a summary, which only a run that reads the source writes, or cannot be read
    except (LookupError, BadInput):
        return True
    return found is None or found[0].looked


def slots_to_fence(view: LedgerView, lane: str) -> int:
    """Return how many slots any run of the lane may have writers on: all are fenced before positions are read.

    When a run is opened again under its name, compaction may drop its earlier record; what was fenced then still
    counts.
    """
    opened = [run.record.slots for run in view.runs if run.record.lane == lane]
    fenced = [one.slots for one in _fenced(view, lane)]
    return max([*opened, *fenced], default=0)


def flows_to_fence(view: LedgerView, lane: str) -> frozenset[Flow]:
    """Return every name of the flow under which runs of the lane may have writers: an alias may have been renamed.

    Runs find each other in the ledger, which is the target's; their writers' names contain the target's alias.
    """
    opened = {run.record.flow for run in view.runs if run.record.lane == lane}
    fenced = [one.flows for one in _fenced(view, lane)]
    return frozenset(opened.union(*fenced))


def _fenced(view: LedgerView, lane: str) -> list[Fenced]:
    return [read_as(record, FENCED.load) for key, record in view.of_kind("fenced") if key[1] == lane]


def superseded_by(view: LedgerView, lane: str, generation: int) -> OpenedRun | None:
    """Return the newer run of the lane, if there is one; a task that sees it must stop."""
    newest = newest_run(view, lane)
    return newest if newest is not None and newest.generation > generation else None


def newest_attempt(view: LedgerView, lane: str, run: str, generation: int) -> Attempt | None:
    """Return the last attempt at an opened run; None before the first."""
    for key, record in view.of_kind("attempt"):
        if key[1:] == [lane, run]:
            last = read_as(record, partial(parse_attempt, run, record.offset))
            return last if last.generation == generation else None
    return None


def newer_attempt(view: LedgerView, lane: str, run: str, generation: int, number: int) -> Attempt | None:
    """Return why the attempt with this number must stop: a later one at the same opened run, or its own end.

    None when it need not. An end does not affect attempts that began after the one that it names.
    """
    last = newest_attempt(view, lane, run, generation)
    if last is not None and (last.number > number or (last.ended and last.number == number)):
        return last
    return None


def expired(view: LedgerView, lane: str, keep: int) -> list[Record]:
    """Return tombstones for the records (of KINDS_OF_RUN) of runs that the ledger deletes.

    The newest run stays. Of the runs before it, two groups stay: the `keep` newest that copied, refused or changed
    something, and the `keep` newest that did nothing. So idle runs displace none that copied. Only a run that has
    fenced their slots may write the tombstones. Receipts stay, because they are the offset map. Those of units are
    deleted: the last one of each target partition stays, under a key of its own.
    """
    runs = last_openings(view, lane)
    idle = [run for run in runs[:-1] if _did_nothing(view, run)]
    busy = [run for run in runs[:-1] if run not in idle]
    kept = {run.record.run for run in (*runs[-1:], *busy[-keep:], *idle[-keep:])}
    known = [key for kind in KINDS_OF_RUN for key, _ in view.of_kind(kind)]
    left = [decode_key(key.encode()) for key in view.rolled.left]
    return [
        Record(key=encode(key), value=None)
        for key in [*known, *left]
        if key and key[0] in KINDS_OF_RUN and key[1] == lane and key[2] not in kept
    ]


def busy_runs(view: LedgerView, lane: str) -> list[OpenedRun]:
    """Return the runs that count as busy in `expired`, and the newest one if it is, oldest first."""
    return [run for run in last_openings(view, lane) if not _did_nothing(view, run)]


def last_openings(view: LedgerView, lane: str) -> list[OpenedRun]:
    """Return the runs of the lane that the ledger remembers, oldest first; each as it was opened last."""
    last = {run.record.run: run.generation for run in view.remembered(lane)}
    return [run for run in view.remembered(lane) if last[run.record.run] == run.generation]


def _did_nothing(view: LedgerView, opened: OpenedRun) -> bool:
    """Return whether a run has no sealed plan, or one with nothing to do, and wrote no group."""
    lane, run = opened.record.lane, opened.record.run
    key = _seal_key(lane, run, opened.generation)
    seal = view.by_key.get(key)
    if seal is None:
        return key not in view.rolled.left  # plans of idle runs are not among those
    if not is_idle_seal(seal.value):
        return False
    record = view.by_key.get(encode(["checkpoint", lane, run]).decode())
    return record is None or not read_as(record, lambda body: whole(body["offsets"]))


def _seal_key(lane: str, run: str, generation: int) -> str:
    return encode(["plan", lane, run, generation, SEAL]).decode()


def has_plan(view: LedgerView, opened: OpenedRun) -> bool:
    """Return whether a run sealed a plan at this generation; the plan itself may be before the summary."""
    key = _seal_key(opened.record.lane, opened.record.run, opened.generation)
    seal = view.by_key.get(key)
    return key in view.rolled.left if seal is None else seal.value is not None


def is_remembered(view: LedgerView, opened: OpenedRun) -> bool:
    """Return whether the ledger still has a run's record, and so its plan if there was one."""
    return any(one.generation == opened.generation for one in view.remembered(opened.record.lane))


def sealed_plan(view: LedgerView, lane: str, run: str, generation: int) -> tuple[Plan, int] | None:
    """Return the plan that a run sealed at this generation, and the offset of its seal; None when there is none.

    A run that is opened again under its name has another generation, and so a plan of its own. Raises LookupError when
    the ledger has a plan that this view was not given, because it is before the summary.
    """
    ends = (encode(["plan", lane, run, generation, end]).decode() for end in (0, SEAL))
    if any(key in view.rolled.left and key not in view.by_key for key in ends):
        raise LookupError(f"the view has no plan of run {run} (lane {lane}), the ledger has: read it with the run's")
    seal: LedgerRecord | None = None
    parts: dict[int, bytes] = {}
    for key, record in view.of_kind("plan"):
        if key[1:4] != [lane, run, generation]:
            continue
        if key[4] == SEAL:
            seal = record
        elif record.value is not None:
            parts[key[4]] = record.value
    if seal is None or seal.value is None:
        return None
    return parse_plan(parts, seal.value, f"plan of run {run}"), seal.offset


def outcome(view: LedgerView, lane: str, run: str) -> Outcome | None:
    """Return the outcome that a run's copy step recorded; None when it did not (yet)."""
    for key, record in view.of_kind("outcome"):
        if key[1:] == [lane, run]:
            return read_as(record, OUTCOME.load)
    return None
