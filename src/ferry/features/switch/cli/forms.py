"""The JSON answers about switches: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, enum, many, optional, typed
from ferry.features.switch.rules.readiness import Readiness
from ferry.ledger.sentence_codec import OF_MESSAGE
from ferry.model.check import Check
from ferry.model.switch import POINT_OF_NO_RETURN, Step, SwitchOutcome, SwitchState, Verb, next_step

CHECK = Form(
    Check,
    F(
        "name",
        says="a stable word: source, replication, lag, refusals, topics, target, retention, groups, checkpoints, "
        "outside, acls, clock, ledger, writers, stranded, reverse, transforms, clusters, opposite, offsets, copied",
    ),
    F("ok"),
    F("message"),
    F("known", says="false: it is not known, and holds up no switch"),
    F("warns", says="true: read it before a switch, which it does not hold up"),
    *OF_MESSAGE,
)

READINESS = Form(
    Readiness,
    F("ready"),
    F("checks", kind=many(CHECK.kind)),
    F("partitions"),
    F("records", says="not copied, of all partitions"),
    F("seconds", says="age of the oldest record that is not copied; null: not known"),
)

CLIENTS = Form(
    SwitchState,
    F("cluster", "switch.via.target"),
    F("switch", "switch.id"),
    F(
        "since_ms",
        lambda state: state.done[POINT_OF_NO_RETURN].done_ms,
        typed(int),
        says="when it promoted the cluster",
    ),
    F("finished", lambda state: state.end is not None, typed(bool), says="false: clients are being moved"),
    name="clients",
)
"""The cluster on which clients are, of the switch that promoted last."""

UNFINISHED = "unfinished"

_STATE = Kind(
    lambda end: UNFINISHED if end is None else end.outcome.value,
    schema=lambda: {"enum": [UNFINISHED, *(one.value for one in SwitchOutcome)]},
)

LINE = Form(
    SwitchState,
    F("id", "switch.id"),
    F("verb", "switch.verb", enum(Verb)),
    F("flow", "switch.named", FLOW),
    F("to", "switch.via.target"),
    F("opened_ms", "switch.at_ms"),
    F("who", "switch.who"),
    F("approved_by", "switch.approved_by"),
    F("state", "end", _STATE),
    F("next_step", next_step, optional(enum(Step))),
    name="switch",
)
"""One switch in a list."""
