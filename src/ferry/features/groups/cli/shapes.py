"""The JSON that `ferry groups` answers with: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ferry.features.groups.rules.checkpoints import Write
from ferry.ledger.checkpoint_codec import left_json, outcome_json
from ferry.model import Flow, GroupOutcome

if TYPE_CHECKING:
    from ferry.features.groups.acts.checkpoint import Looked

Json = dict[str, Any]


def groups_json(found: GroupOutcome) -> Json:
    """What became of groups, without the time."""
    return {name: value for name, value in outcome_json(found).items() if name != "at_ms"}


def sync_json(flow: Flow, run: str | None, looked: Looked, done: GroupOutcome | None) -> Json:
    """`ferry groups sync`; run null is a dry run: `writes` are then what would be written."""
    return {
        "flow": str(flow),
        "run": run,
        "writes": [_write_json(one) for writes in looked.decided.writes.values() for one in writes],
        "unchanged": looked.decided.unchanged,
        "left": [left_json(one) for one in (looked.left if done is None else done.left)],
    }


def _write_json(write: Write) -> Json:
    one = write.checkpoint
    return {
        "group": one.group,
        "outcome": one.outcome.value,
        "source_topic": one.source.topic,
        "source_partition": None if one.read else one.source.partition,
        **({"read": list(one.read), "read_again_at_most": one.again} if one.read else {}),
        "source_offset": one.source_offset,
        "target_topic": one.target.topic,
        "target_partition": one.target.partition,
        "target_offset": one.target_offset,
        "before": None if write.before is None else write.before.offset,
    }
