"""The JSON answers of `ferry acls`: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from dataclasses import replace

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import PLAIN
from ferry.config.flow.flow import FlowConfig
from ferry.features.acls.rules.acls import AclDiff, LeftOut
from ferry.ledger.acl_codec import ACL, ACL_CHANGE

LEFT_OUT = Form(
    LeftOut,
    *(replace(one, kind=PLAIN) if one.name == "pattern_type" else one for one in ACL.within("binding")),
    F("why", says="half a sentence"),
)
"""An ACL of the source that is not copied; its pattern type may be one that no copy has."""


def acl_diff_json(flow: FlowConfig, diff: AclDiff, due_ms: int | None) -> Json:
    """Return the answer of `ferry acls diff`. `due_seconds` is null if no run changes ACLs."""
    return {
        "flow": str(flow.flow),
        "policy": flow.acls.rules.policy.value,
        "due_seconds": None if due_ms is None else due_ms / 1000,
        "changes": [ACL_CHANGE.dump(change) for change in diff.changes],
        "in_step": diff.in_step,
        "kept": [ACL.dump(binding) for binding in (*diff.kept, *diff.foreign, *diff.bereft)],
        "left_out": [LEFT_OUT.dump(out) for out in diff.left_out],
        "unmapped_principals": list(diff.unmapped),
        "other_topics": list(diff.others),
    }
