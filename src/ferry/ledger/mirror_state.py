"""What the ledger keeps of MirrorMaker 2's topics: up to where they were written, and when.

```
["mirror", lane]     what the lane's runs last wrote to them
```
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ferry.config.flow.parts import Periodic
from ferry.ledger.codec import LEDGER_VERSION, Json, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.sentence_codec import NOTED, with_codes
from ferry.model import Record, Sentence


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


def _parse_state(body: Json) -> MirrorState:
    # A later Ferry may add fields that this one does not know.
    known = {name: body[name] for name in MirrorState.__slots__ if name in body}
    return MirrorState(**known | {"notes": with_codes(body["notes"], body.get("noted", ()))})


def mirror_record(lane: str, state: MirrorState) -> Record:
    """Make the record of what was written."""
    noted = [NOTED.dump(one) for one in state.notes if isinstance(one, Sentence)]
    body = {"v": LEDGER_VERSION, "kind": "mirror", **asdict(state), **({"noted": noted} if noted else {})}
    return Record(key=_key(lane), value=encode(body))


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
