"""Switches as ledger records.

```
["switch", id]               who opened which switch, who approved it, and what it was asked for
["switch", id, step]         who did a step, with what it found
["switch", id, step, "begun"]  who began it last; it does not count once the step is done
["switch", id, step, part]   the rows of what a step found, as JSON lines; they count when the step's record names them
["switch", id, "end"]        finished or abandoned, by whom and why
```

They are in the ledger on the cluster that is switched to: that cluster is there, whatever happens to the other one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Literal

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, PLAIN, Kind, enum, many, typed
from ferry.codec.schema import of_type
from ferry.errors import BadInput
from ferry.ledger.codec import LEDGER_VERSION, Json, decode_key, decode_value, encode, head
from ferry.ledger.ledger import LedgerView, pauses
from ferry.ledger.plan_codec import PART_BYTES
from ferry.ledger.reading import checked, reading
from ferry.model import LedgerRecord, Record
from ferry.model.switch import (
    POINT_OF_NO_RETURN,
    Evidence,
    Step,
    StepBegun,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
)

END, BEGUN = "end", "begun"
ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
"""The form of a switch's id, which is part of a file's name."""


def switch_record(switch: Switch) -> Record:
    """Make the record that opens a switch."""
    body = {"v": LEDGER_VERSION, "kind": "switch", **SWITCH.dump(switch)}
    return Record(key=encode(["switch", switch.id]), value=encode(body))


def _id(text: str) -> str:
    if not ID.fullmatch(text):
        raise ValueError(f"{text!r:.120} is not an id of a switch")
    return text


_HOOKS = replace(many(), schema=lambda: of_type(tuple[Literal["command", "url"], ...]))
_OF_OPTION: Mapping[str, tuple[Kind, str]] = {
    "leave_groups": (many(), ""),
    "leave_topics": (many(), ""),
    "lost_at_ms": (PLAIN, "when the source was lost, of a failover; null: not given"),
    "stop": (_HOOKS, "which stop hooks were given in place of the file's, as of redirect"),
    "redirect": (_HOOKS, "which hooks were given in place of the file's; what they are is not kept"),
}
_OPTIONS = Form(
    SwitchOptions,
    *(
        F(one.name, kind=kind, default=one.default, says=says)
        for one in fields(SwitchOptions)
        for kind, says in [_OF_OPTION.get(one.name, (PLAIN, ""))]
    ),
)

SWITCH = Form(
    Switch,
    F("id", kind=Kind(None, _id)),
    F("verb", kind=enum(Verb)),
    F("flow", "named", FLOW, says="as it was named"),
    F("via", kind=FLOW, says="the flow along which clients move; of a failback the reverse of flow"),
    F("who"),
    F("approved_by"),
    F("approved_ms"),
    F("at_ms"),
    F("options", kind=_OPTIONS.kind),
)

parse_switch = SWITCH.load
"""Return the switch of a JSON object that `switch_json` made; options of a later Ferry are skipped."""


switch_json = SWITCH.dump
"""Return a switch as the documented JSON object."""

_STEP = (
    F("who"),
    F("begun_ms", says="when it was begun last"),
    F("first_ms", default=None, omit=lambda one: one.first_ms is None, says="when it was begun first, if that differs"),
)
_BEGUN = Form(StepBegun, *head("switch-step"), F("state", lambda _: "begun"), *_STEP, F("token"))
_EVIDENCE = (
    F("sentence", lambda done: done.evidence.sentence, typed(str)),
    F("facts", lambda done: dict(done.evidence.facts), typed(dict[str, Any]), says="per step, see docs/failover.md"),
)
_DONE = Form(StepDone, *head("switch-step"), F("state", lambda _: "done"), *_STEP, F("done_ms"), *_EVIDENCE)


def begun_record(switch: str, begun: StepBegun) -> Record:
    """Make the record that an operator begins a step, or begins it again.

    Its key is not that of the step that is done: a process that sleeps before it writes this replaces nothing.
    """
    return Record(key=encode(["switch", switch, begun.step.value, BEGUN]), value=encode(_BEGUN.dump(begun)))


def done_records(switch: str, done: StepDone, part_bytes: int = PART_BYTES) -> list[Record]:
    """Make the records of a step that is done: its rows in parts, and after them the record with their digest."""
    parts: list[list[bytes]] = []
    filled = part_bytes
    for row in done.evidence.rows:
        line = encode(row)
        if filled + len(line) > part_bytes:
            parts.append([])
            filled = 0
        parts[-1].append(line)
        filled += len(line) + 1
    values = [b"\n".join(part) for part in parts]
    body = {**_DONE.dump(done), "parts": len(values), "digest": _digest(values)}
    key = ["switch", switch, done.step.value]
    return [
        *(Record(key=encode([*key, number]), value=value) for number, value in enumerate(values)),
        Record(key=encode(key), value=encode(body)),
    ]


def is_of_step(key: bytes, switch: str, step: Step) -> bool:
    """Return whether a key is one of `done_records` for the step."""
    of, at = ["switch", switch, step.value], decode_key(key)
    return at[:3] == of and at[3:] != [BEGUN]


def _digest(values: list[bytes]) -> str:
    return hashlib.sha256(b"\n\n".join(values)).hexdigest()


SWITCH_END = Form(
    SwitchEnd,
    *head("switch-end"),
    F("outcome", kind=enum(SwitchOutcome)),
    F("who"),
    F("why"),
    F("at_ms"),
    F(
        "opposite",
        default=None,
        omit=lambda end: end.opposite is None,
        says="the opposite switch because of which a switch that had promoted was abandoned; empty: none",
    ),
)

parse_end = SWITCH_END.load
"""Return the end of a record that `end_record` made."""


def end_record(switch: str, end: SwitchEnd) -> Record:
    """Make the record that a switch has ended."""
    return Record(key=encode(["switch", switch, END]), value=encode(SWITCH_END.dump(end)))


def no_end_record(switch: str) -> Record:
    """Make the record that takes back the end of a switch: it continues."""
    return Record(key=encode(["switch", switch, END]), value=None)


def open_switches(view: LedgerView) -> dict[str, SwitchState]:
    """Return the switches of a ledger that have not ended, by id; the rows of the others are not read.

    Raises BadInput when a step's rows are incomplete, or not those that were written.
    """
    keys = [key[1:] for key, _ in view.of_kind("switch")]
    ended = {name for name, *rest in keys if rest == [END]}
    return switch_states(view, {str(name) for name, *_ in keys} - ended)


def pause_reason(state: SwitchState) -> str:
    """Return the reason of a switch's pause. It begins with the switch's id, by which the pause is recognised."""
    switch = state.switch
    return f"{switch.id}: {switch.verb} to {switch.via.target}"


def paused_by(view: LedgerView, now_ms: int) -> SwitchState | None:
    """Return the switch that paused the flow, without its rows; None if no pause of a switch is in force.

    A switch that was abandoned before it promoted does not count: it has ended its pause, or died before that. A
    hand-back to MirrorMaker 2 adds its own reason to that of a pause.
    """
    held = pauses(view, now_ms).get("")
    if held is None:
        return None
    for state in switch_states(view, with_rows=False).values():
        is_abandoned = state.end is not None and state.end.outcome is SwitchOutcome.ABANDONED
        if is_abandoned and POINT_OF_NO_RETURN not in state.done:
            continue
        if f"{held.why};".startswith(f"{pause_reason(state)};"):
            return state
    return None


def switch_states(
    view: LedgerView, only: Collection[str] | None = None, *, with_rows: bool = True
) -> dict[str, SwitchState]:
    """Return all switches of a ledger (or `only` those) by id, in the order in which they were opened.

    Without rows the steps have what they found as a sentence and facts. Raises BadInput when a step's rows are
    incomplete, or not those that were written.
    """
    opened: dict[str, LedgerRecord] = {}
    steps: dict[str, dict[str, LedgerRecord]] = {}
    tries: dict[str, dict[str, LedgerRecord]] = {}
    rows: dict[tuple[str, str], dict[int, bytes]] = {}
    for key, record in view.of_kind("switch"):
        if only is not None and key[1] not in only:
            continue
        match key[1:]:
            case [str(name)]:
                opened[name] = record
            case [str(name), str(step)]:
                steps.setdefault(name, {})[step] = record
            case [str(name), str(step), int(number)]:
                if with_rows:
                    rows.setdefault((name, step), {})[number] = record.value or b""
            case [str(name), str(step), "begun"]:
                tries.setdefault(name, {})[step] = record
    found = [
        _state(
            name,
            record,
            _with_tries(steps.get(name, {}), tries.get(name, {})),
            {step: parts for (of, step), parts in rows.items() if of == name} if with_rows else None,
        )
        for name, record in opened.items()
    ]
    return {state.switch.id: state for state in sorted(found, key=lambda state: state.offset)}


def _with_tries(steps: Mapping[str, LedgerRecord], tries: Mapping[str, LedgerRecord]) -> dict[str, LedgerRecord]:
    """Return the records of steps that are done, and after them those of steps that were only begun."""
    return {**steps, **{step: record for step, record in tries.items() if step not in steps}}


def _state(
    name: str,
    opened: LedgerRecord,
    steps: Mapping[str, LedgerRecord],
    rows: Mapping[str, Mapping[int, bytes]] | None,
) -> SwitchState:
    with reading(f"record of switch {name}, opened at ledger offset {opened.offset},"):
        return checked(_parsed(name, opened, steps, rows))


def _parsed(
    name: str,
    opened: LedgerRecord,
    steps: Mapping[str, LedgerRecord],
    rows: Mapping[str, Mapping[int, bytes]] | None,
) -> SwitchState:
    """Return the state. An end that abandons does not count after a promotion, unless an opposite switch was begun.

    The process that wrote it had read the ledger before the promotion.
    """
    done: dict[Step, StepDone] = {}
    begun: dict[Step, StepBegun] = {}
    end = None
    ended_at = -1
    for word, record in steps.items():
        body = decode_value(record.value or b"", f"record of switch {name} at ledger offset {record.offset}")
        if word == END:
            end, ended_at = parse_end(body), record.offset
        elif body["state"] == "done":
            step = Step(word)
            done[step] = _done(name, step, body, None if rows is None else rows.get(word, {}))
        else:  # an earlier Ferry wrote it under the key of the step that is done
            step = Step(word)
            begun[step] = _BEGUN.load(body, step=step)
    if end is not None and end.outcome is SwitchOutcome.ABANDONED and end.opposite == "":
        promoted = steps.get(POINT_OF_NO_RETURN)
        if POINT_OF_NO_RETURN in done and promoted is not None and promoted.offset < ended_at:
            end = None
    body = decode_value(opened.value or b"", f"switch {name} at ledger offset {opened.offset}")
    return SwitchState(switch=parse_switch(body), offset=opened.offset, done=done, begun=begun, end=end)


def _done(name: str, step: Step, body: Json, parts: Mapping[int, bytes] | None) -> StepDone:
    """Return a step that is done; without its rows if `parts` is None."""
    there = parts or {}
    values = [there[number] for number in range(min(body["parts"], len(there))) if number in there]
    if parts is not None and (len(values) != body["parts"] or _digest(values) != body["digest"]):
        raise BadInput(
            f"what step {step} of switch {name} found is not whole in the ledger any more: read it from an export "
            "(ferry ledger export), and find out who wrote to the ledger"
        )
    lines: list[dict[str, Any]] = [json.loads(line) for value in values for line in value.split(b"\n") if line]
    evidence = Evidence(sentence=body["sentence"], facts=body["facts"], rows=tuple(lines))
    return _DONE.load(body, step=step, evidence=evidence)


STEP = Form(
    StepDone,
    F("step", kind=enum(Step)),
    *_STEP,
    F("done_ms"),
    *_EVIDENCE,
    F(
        "rows",
        lambda done: list(done.evidence.rows),
        typed(list[dict[str, Any]]),
        says="per step, see docs/failover.md",
    ),
)

step_json = STEP.dump
"""Return a step that is done, as the documented JSON object."""
