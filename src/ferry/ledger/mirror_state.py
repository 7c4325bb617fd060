"""What the ledger keeps of MirrorMaker 2's topics: up to where they were written, and when.

```
["mirror", lane]     what the lane's runs last wrote to them
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ferry.codec.form import F, Form
from ferry.codec.kinds import many
from ferry.config.flow.parts import Periodic
from ferry.ledger.codec import Json, encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.sentence_codec import noted_in, with_codes
from ferry.model import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorState:
    """What was written last; times are ms, -1 is never."""

    synced: int = -1
    """The generation of the last run whose offset syncs were written."""
    synced_receipts: int = 0
    """How many receipts that run had then: a run that is resumed has more later."""
    checkpoints_at_ms: int = -1
    heartbeats_at_ms: int = -1
    source_heartbeats_at_ms: int = -1
    run: str = ""
    """The run after which the state was recorded."""
    notes: tuple[str, ...] = ()
    """What prevented the writing, in sentences."""


def mirror_state(view: LedgerView, lane: str) -> MirrorState:
    """Return what the lane's runs wrote last."""
    record = view.by_key.get(_key(lane).decode())
    if record is None or record.value is None:
        return MirrorState()
    return read_as(record, _parse_state)


_STATE = Form(
    MirrorState,
    *head("mirror"),
    F("synced", default=-1, least=-1),
    F("synced_receipts", default=0),
    F("checkpoints_at_ms", default=-1, least=-1),
    F("heartbeats_at_ms", default=-1, least=-1),
    F("source_heartbeats_at_ms", default=-1, least=-1),
    F("run", default=""),
    F("notes", kind=many()),
    noted_in("notes"),
)


def _parse_state(body: Json) -> MirrorState:
    state = _STATE.load(body)
    return replace(state, notes=with_codes(state.notes, body.get("noted", ())))


def mirror_record(lane: str, state: MirrorState) -> Record:
    """Make the record of what was written."""
    return Record(key=_key(lane), value=encode(_STATE.dump(state)))


def mirror_notes(view: LedgerView, lane: str, run: str) -> tuple[str, ...]:
    """Return what prevented the writing of the topics after a run.

    Nothing when a later run has written to them since.
    """
    state = mirror_state(view, lane)
    return state.notes if state.run == run else ()


def is_due(periodic: Periodic, last_ms: int, now_ms: int) -> bool:
    """Return whether something that was done at `last_ms` must be done again."""
    if not periodic.enabled or periodic.interval_s is None:
        return False
    # A clock that was put back must not delay it for longer than its interval.
    return last_ms < 0 or not 0 <= now_ms - last_ms < periodic.interval_s * 1000


def _key(lane: str) -> bytes:
    return encode(["mirror", lane])
