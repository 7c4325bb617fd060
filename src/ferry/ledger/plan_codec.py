"""A plan as ledger records: split below the broker's record limit, sealed with count and digest.

An unsealed plan does not exist: a driver that dies while it writes leaves nothing that a task could follow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, enum, many
from ferry.errors import BadInput
from ferry.ledger.acl_codec import ACL_CHANGE
from ferry.ledger.codec import GAP, LEDGER_VERSION, SEAL, Json, decode_value, encode
from ferry.ledger.reading import checked, reading
from ferry.ledger.run_codec import REFUSAL
from ferry.ledger.sentence_codec import read_sentence, sentence_fields
from ferry.ledger.slice_codec import CHANGE, SLICE
from ferry.ledger.unit_codec import ERA_FORM, parse_unit_lines, unit_lines
from ferry.model import PLAN_VERSION, Plan, Record, RefusalKind

# The seal is one record, so the lists of a plan that may be long are in its parts, a line each. Earlier Ferrys skip
# lines that they do not know, such as those of ACLs: the run that planned has made the changes.
_LINES = {
    "refusals": "refusal",
    "changes": "change",
    "drift": "drift",
    "notes": "note",
    "gaps": "gap",
    "acls": "acl",
    "units": "unit",
    "eras": "era",
}

PLAN = Form(
    Plan,
    F("v", lambda plan: plan.version),
    F("kind", lambda _: "plan"),
    F("flow", kind=FLOW),
    F("lane"),
    F("run"),
    F("generation"),
    F("slots"),
    F("slices", lambda plan: plan.kept, many(SLICE.kind)),
    *(
        F(name, kind=many(one.kind))
        for name, one in (("refusals", REFUSAL), ("changes", CHANGE), ("drift", CHANGE), ("gaps", GAP))
    ),
    F("notes", kind=many()),
    F("acls", kind=many(ACL_CHANGE.kind)),
    F("units", lambda plan: plan.dealt, Kind(unit_lines)),
    F("eras", kind=many(ERA_FORM.kind)),
    F("paused", kind=many()),
    F("source_cluster_id"),
    F("target_cluster_id"),
    F("max_seconds"),
    F("caught_up", default=0),  # a kept plan may lack it
    F("flow_paused", default=False, omit=lambda plan: not plan.flow_paused),
    F("cut_short", default=False, omit=lambda plan: not plan.cut_short),
    F("lifted", kind=many(enum(RefusalKind)), default=(), omit=lambda plan: not plan.lifted),
)

PART_BYTES = 400_000
"""Uncompressed bytes of one plan record: below the default message.max.bytes (1 MiB), however long the names are."""


def plan_records(plan: Plan, part_bytes: int = PART_BYTES) -> list[Record]:
    """Return the plan's records in the order in which they must be written; the seal is the last."""
    head = PLAN.dump(plan)
    lines = [encode(piece) for piece in head.pop("slices")]
    for name, word in _LINES.items():
        lines += [encode({word: item, **sentence_fields(item)}) for item in head.pop(name)]
    head["notes"] = []  # where some kept plans have them
    parts: list[list[bytes]] = [[]]
    filled = 0
    for line in lines:
        if filled + len(line) > part_bytes and parts[-1]:
            parts.append([])
            filled = 0
        parts[-1].append(line)
        filled += len(line) + 1
    values = [b"\n".join(part) for part in parts]
    digest = hashlib.sha256(b"\n\n".join(values)).hexdigest()
    seal: Json = {"v": LEDGER_VERSION, "kind": "seal", "parts": len(values), "digest": digest, "head": head}
    if plan.is_idle:
        seal["idle"] = True
    prefix = ["plan", plan.lane, plan.run, plan.generation]
    records = [Record(key=encode([*prefix, index]), value=value) for index, value in enumerate(values)]
    return [*records, Record(key=encode([*prefix, SEAL]), value=encode(seal))]


def is_idle_seal(value: bytes | None) -> bool:
    """Return whether a seal shows that its plan has nothing to do; a seal of an earlier Ferry does not show it."""
    if value is None or b'"idle":true' not in value:
        return False
    with reading("seal of a plan in the ledger"):
        return json.loads(value).get("idle") is True


def parse_plan(parts: Mapping[int, bytes], seal: bytes, where: str) -> Plan:
    """Return the plan from its parts and seal.

    Raises BadInput when a part is missing or changed, or the format is newer.
    """
    with reading(where):
        return _parsed(parts, decode_value(seal, where), where)


def _parsed(parts: Mapping[int, bytes], body: Json, where: str) -> Plan:
    try:
        values = [parts[index] for index in range(body["parts"])]
    except KeyError as missing:
        raise BadInput(
            f"{where}: part {missing} of {body['parts']} is missing from the ledger; start a new run"
        ) from None
    if hashlib.sha256(b"\n\n".join(values)).hexdigest() != body["digest"]:
        raise BadInput(f"{where}: the parts do not have the sealed digest {body['digest'][:12]}; start a new run")
    head: Json = body["head"]
    if head["v"] > PLAN_VERSION:
        raise BadInput(
            f"{where} has format {head['v']}, this Ferry reads up to {PLAN_VERSION}: upgrade Ferry on this machine"
        )
    rows = [json.loads(line) for value in values for line in value.split(b"\n") if line]
    found = {name: [row[word] for row in rows if word in row] for name, word in _LINES.items()}
    found["notes"] = [*head["notes"], *(read_sentence(row["note"], row) for row in rows if "note" in row)]
    kept, units = [SLICE.load(row) for row in rows if "topic" in row], parse_unit_lines(found["units"])
    return checked(PLAN.load({**head, **found}, slices=(*kept, *units)))
