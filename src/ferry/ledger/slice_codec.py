"""The lines of a plan: its slices, its topic changes, and the head with the rest."""

from __future__ import annotations

from dataclasses import asdict, fields

from ferry.ledger.codec import Json, gap_json
from ferry.ledger.run_codec import refusal_json
from ferry.model import ChangeKind, Plan, Slice, TopicChange, TopicPartition, parse_topic_id

_SLICE_FIELDS = tuple(one.name for one in fields(Slice) if one.name not in ("source", "target"))


def slice_json(piece: Slice) -> Json:
    """A slice as the documented JSON object."""
    body = {name: getattr(piece, name) for name in _SLICE_FIELDS}  # `asdict` takes a second for 10,000
    for name in ("since", "target_end", "read_epoch", "read_end", "target_epoch"):  # no earlier Ferry knows them
        if body[name] < 0:
            del body[name]
    for name in ("compacted", "transform", "transform_digest"):
        if not body[name]:
            del body[name]
    return {
        "topic": piece.source.topic,
        "partition": piece.source.partition,
        "target_topic": piece.target.topic,
        "target_partition": piece.target.partition,
        **body,
    }


def parse_slice(body: Json) -> Slice:
    """Inverse of `slice_json`."""
    rest = {
        name: value
        for name, value in body.items()
        if name not in {"topic", "partition", "target_topic", "target_partition", "source_topic_id", "target_topic_id"}
    }
    return Slice(
        source=TopicPartition(topic=body["topic"], partition=body["partition"]),
        target=TopicPartition(topic=body["target_topic"], partition=body["target_partition"]),
        source_topic_id=parse_topic_id(body["source_topic_id"]),
        target_topic_id=parse_topic_id(body["target_topic_id"]),
        **rest,
    )


def change_json(change: TopicChange) -> Json:
    """A topic change as the documented JSON object; `was` where there is something to say."""
    body = {**asdict(change), "kind": change.kind.value, "configs": dict(change.configs), "was": dict(change.was)}
    if not change.was:
        del body["was"]
    return body


def parse_change(body: Json) -> TopicChange:
    """Inverse of `change_json`."""
    return TopicChange(
        **{
            **body,
            "kind": ChangeKind(body["kind"]),
            "configs": tuple(sorted(body["configs"].items())),
            "was": tuple(sorted(body.get("was", {}).items())),
        }
    )


def plan_head_json(plan: Plan) -> Json:
    """Everything of a plan but its slices."""
    return {
        "v": plan.version,
        "kind": "plan",
        "flow": str(plan.flow),
        "lane": plan.lane,
        "run": plan.run,
        "generation": plan.generation,
        "slots": plan.slots,
        "changes": [change_json(change) for change in plan.changes],
        "drift": [change_json(change) for change in plan.drift],
        "refusals": [refusal_json(refusal) for refusal in plan.refusals],
        "notes": list(plan.notes),
        "gaps": [gap_json(gap) for gap in plan.gaps],
        "paused": list(plan.paused),
        "source_cluster_id": plan.source_cluster_id,
        "target_cluster_id": plan.target_cluster_id,
        "max_seconds": plan.max_seconds,
        "caught_up": plan.caught_up,
        **({"lifted": [kind.value for kind in plan.lifted]} if plan.lifted else {}),
    }
