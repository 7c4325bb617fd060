"""The records of a run: who opened it, what it fenced, its attempts, and what its tasks refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, enum, fields, many
from ferry.ledger.codec import Json, encode, head
from ferry.ledger.reading import read_as, slots
from ferry.ledger.sentence_codec import CODE_SAYS, FACTS, FACTS_SAY
from ferry.model import (
    NOTHING_FILTERED,
    Attempt,
    FilterCounts,
    Flow,
    LedgerRecord,
    Origin,
    Record,
    Refusal,
    RefusalKind,
    RunRecord,
)


def run_record(run: RunRecord) -> Record:
    """Make the record that opens a run."""
    return Record(key=encode(["run", run.lane, run.run]), value=encode(RUN.dump(run)))


def fenced_record(lane: str, run: str, generation: int, slots: int, flows: Collection[Flow]) -> Record:
    """Make the record of the slots that a run has fenced, and of the names of the flow that it fenced them under.

    All earlier writers wrote before this record. It also keeps the number and the names when the run records that had
    them are compacted away.
    """
    found = Fenced(run=run, generation=generation, slots=slots, flows=frozenset(flows))
    return Record(key=encode(["fenced", lane]), value=encode(FENCED.dump(found)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """How many slots a run has fenced, and under which names of the flow; a record may lack the names."""

    run: str
    generation: int
    slots: int
    flows: frozenset[Flow]


_SLOTS = Kind(None, slots)
FENCED = Form(
    Fenced,
    *head("fenced"),
    F("run"),
    F("generation"),
    F("slots", kind=_SLOTS),
    F(
        "flows",
        kind=Kind(lambda flows: sorted(map(str, flows)), lambda names: frozenset(map(Flow.parse, names))),
        default=frozenset(),
    ),
)


def writers_of(record: LedgerRecord) -> tuple[int, frozenset[Flow]]:
    """Return how many slots may have writers, and under which names of the flow, from a run or fenced record.

    Other fields are not read: a rebuild, which is the remedy for a damaged record, must not stop at them.
    """
    return read_as(record, _parse_writers)


def _parse_writers(body: Json) -> tuple[int, frozenset[Flow]]:
    names = [*body.get("flows", ()), *([body["flow"]] if "flow" in body else [])]
    return slots(body["slots"]), frozenset(map(Flow.parse, names))


RUN = Form(
    RunRecord,
    *head("run"),
    F("flow", kind=FLOW),
    F("lane"),
    F("run"),
    F("slots", kind=_SLOTS),
    F("config_digest"),
    F("started_ms"),
    F("origin", kind=fields(Origin)),
    # A kept record may lack these two: they need no new version of the format.
    F("deployment", default=""),
    F("took_over", default=""),
)

parse_run = RUN.load
"""Return the run of a record that `run_record` made."""


def attempt_record(lane: str, run: str, generation: int, started_ms: int, origin: Origin) -> Record:
    """Make the record that begins an execution of a run's copy step; its offset is the attempt's number."""
    begun = Attempt(run=run, generation=generation, number=-1, started_ms=started_ms, origin=origin)
    return _attempt_record(lane, begun)


def ended_record(lane: str, attempt: Attempt) -> Record:
    """Make the record that ends an attempt."""
    return _attempt_record(lane, replace(attempt, ended=True))


def _attempt_record(lane: str, attempt: Attempt) -> Record:
    return Record(key=encode(["attempt", lane, attempt.run]), value=encode(_ATTEMPT.dump(attempt)))


_ATTEMPT = Form(
    Attempt,
    *head("attempt"),
    F("generation"),
    F("started_ms"),
    F("origin", kind=fields(Origin)),
    F("ends", lambda attempt: attempt.number if attempt.ended else None),
)


def parse_attempt(run: str, offset: int, body: Json) -> Attempt:
    """Return the attempt of a record of `attempt_record` or `ended_record`.

    The run's id is in the key; `offset` is the record's ledger offset.
    """
    ends = body["ends"]
    return _ATTEMPT.load(body, run=run, number=offset if ends is None else ends, ended=ends is not None)


REFUSAL = Form(
    Refusal,
    F("topic", says="name at the source"),
    F("partition", least=None, says="null: the whole topic"),
    F("kind", kind=enum(RefusalKind, more=True), says="a stable word; more may come"),
    F("message", says="one sentence with the remedy"),
    F("code", default="", omit=lambda one: not one.code, says=CODE_SAYS),
    F("facts", kind=FACTS, default=(), omit=lambda one: not one.facts, says=FACTS_SAY),
)

parse_refusal = REFUSAL.load
"""Return the refusal of a JSON object that `refusal_json` made."""

refusal_json = REFUSAL.dump
"""Return a refusal as the documented JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the tasks of a run refused, and the slots that stopped because the run's time was over."""

    refusals: tuple[Refusal, ...] = ()
    time_over: frozenset[int] = frozenset()
    sifted: Mapping[str, FilterCounts] = field(default_factory=dict)
    """What transforms read and kept in the attempt that reported last, by source topic."""


OUTCOME = Form(
    Outcome,
    *head("outcome"),
    F("refusals", kind=many(REFUSAL.kind)),
    F("time_over", kind=Kind(sorted, frozenset)),
    F(
        "sifted",
        kind=Kind(
            lambda found: {topic: list(counts) for topic, counts in found.items()},
            lambda body: {topic: FilterCounts(*counts) for topic, counts in body.items()},
        ),
        default=NOTHING_FILTERED,
        omit=lambda found: not found.sifted,
    ),
)


def outcome_record(lane: str, run: str, outcome: Outcome) -> Record:
    """Make the record of what the tasks of a run refused."""
    return Record(key=encode(["outcome", lane, run]), value=encode(OUTCOME.dump(outcome)))
