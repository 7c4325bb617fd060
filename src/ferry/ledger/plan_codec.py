"""A plan as ledger records: split below the broker's record limit, sealed with count and digest.

An unsealed plan does not exist: a driver that dies while it writes leaves nothing that a task could act on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from ferry.errors import BadInput
from ferry.ledger.acl_codec import acl_change_json, parse_acl_change
from ferry.ledger.codec import LEDGER_VERSION, SEAL, Json, decode_value, encode, parse_gap
from ferry.ledger.reading import checked, reading
from ferry.ledger.run_codec import parse_refusal
from ferry.ledger.slice_codec import parse_change, parse_slice, plan_head_json, slice_json
from ferry.ledger.unit_codec import era_json, parse_era, parse_unit_lines, unit_lines
from ferry.model import PLAN_VERSION, Flow, Plan, Record, RefusalKind

_LINES = {"refusals": "refusal", "changes": "change", "drift": "drift", "notes": "note", "gaps": "gap"}

PART_BYTES = 400_000
"""Uncompressed bytes of one plan record: under the default message.max.bytes (1 MiB) whatever the names are."""


def plan_records(plan: Plan, part_bytes: int = PART_BYTES) -> list[Record]:
    """The plan's records in the order in which they must be written; the seal is the last."""
    lines = [encode(slice_json(piece)) for piece in plan.slices]
    head = plan_head_json(plan)
    # The seal is one record: what a plan may have thousands of stands in its parts.
    for name, word in _LINES.items():
        lines += [encode({word: item}) for item in head.pop(name)]
    head["notes"] = []  # where plans of earlier Ferrys have them
    lines += [encode({"acl": acl_change_json(change)}) for change in plan.acls]
    lines += [encode({"unit": line}) for line in unit_lines(plan.units)]
    lines += [encode({"era": era_json(era)}) for era in plan.eras]
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
    """Whether a seal says that its plan has nothing to do; one of an earlier Ferry does not say it."""
    if value is None or b'"idle":true' not in value:
        return False
    with reading("seal of a plan in the ledger"):
        return json.loads(value).get("idle") is True


def parse_plan(parts: Mapping[int, bytes], seal: bytes, where: str) -> Plan:
    """The plan from its parts and seal; BadInput when a part is missing or changed, or the format newer."""
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
    plan = Plan(
        flow=Flow.parse(head["flow"]),
        lane=head["lane"],
        run=head["run"],
        generation=head["generation"],
        slots=head["slots"],
        slices=tuple(parse_slice(row) for row in rows if "topic" in row),
        changes=tuple(parse_change(row["change"]) for row in rows if "change" in row),
        refusals=tuple(parse_refusal(row["refusal"]) for row in rows if "refusal" in row),
        gaps=tuple(parse_gap(row["gap"]) for row in rows if "gap" in row),
        notes=(*head["notes"], *(row["note"] for row in rows if "note" in row)),
        drift=tuple(parse_change(row["drift"]) for row in rows if "drift" in row),
        # Earlier Ferrys pass these lines over: whoever planned the run has made the changes.
        acls=tuple(parse_acl_change(row["acl"]) for row in rows if "acl" in row),
        lifted=tuple(RefusalKind(word) for word in head.get("lifted", ())),
        paused=tuple(head["paused"]),
        source_cluster_id=head["source_cluster_id"],
        target_cluster_id=head["target_cluster_id"],
        max_seconds=head["max_seconds"],
        caught_up=head.get("caught_up", 0),  # absent in plans of earlier Ferrys, which pass it over in turn
        units=parse_unit_lines(row["unit"] for row in rows if "unit" in row),
        eras=tuple(parse_era(row["era"]) for row in rows if "era" in row),
    )
    return checked(plan)
