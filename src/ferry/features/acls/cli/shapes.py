"""The JSON that `ferry acls` answers with: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from ferry.codec.form import Json
from ferry.config.flow.flow import FlowConfig
from ferry.ledger.acl_codec import acl_change_json, acl_json
from ferry.plan.rules.acls import AclDiff


def acl_diff_json(flow: FlowConfig, diff: AclDiff, due_ms: int | None) -> Json:
    """`ferry acls diff`: the target's ACLs beside what the source's ask for; due_seconds null: no run changes any."""
    return {
        "flow": str(flow.flow),
        "policy": flow.acls.policy.value,
        "due_seconds": None if due_ms is None else due_ms / 1000,
        "changes": [acl_change_json(change) for change in diff.changes],
        "in_step": diff.in_step,
        "kept": [acl_json(binding) for binding in (*diff.kept, *diff.foreign, *diff.bereft)],
        "left_out": [{**acl_json(out.binding), "why": out.why} for out in diff.left_out],
        "unmapped_principals": list(diff.unmapped),
        "other_topics": list(diff.others),
    }
