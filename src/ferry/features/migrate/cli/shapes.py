"""The JSON that `ferry adopt` and `ferry hand-back` answer with: a contract, described in docs/json.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ferry.codec.form import Json
from ferry.features.migrate.rules.adoption import Takeover
from ferry.model import Flow

if TYPE_CHECKING:  # the shapes need no client of Kafka's
    from ferry.features.migrate.acts.hand_back import HandedBack


def adoption_json(flow: Flow, run: str | None, found: Takeover) -> Json:
    """`ferry adopt`; run null: a dry run, or nothing to adopt; -1 and null where nobody knows."""
    return {
        "flow": str(flow),
        "run": run,
        "by": found.left.by.value,
        "where": found.left.where,
        "partitions": [
            {
                "topic": row.source.topic,
                "partition": row.source.partition,
                "target_topic": row.target.topic,
                "target_partition": row.target.partition,
                "outcome": row.verdict.value,
                "position": row.position,
                "source_start": row.log_start,
                "source_end": row.source_end,
                "target_start": row.target_start,
                "target_end": row.target_end,
                "lost": row.lost,
                "doubled": row.doubled,
                "copy_end": row.seam.state.value,
                "why": row.why,
            }
            for row in found.rows
        ],
        "notes": list(found.notes),
    }


def hand_back_json(flow: Flow, run: str | None, topic: str, connector: str, found: HandedBack) -> Json:
    """`ferry hand-back`; run null: a dry run; was null: MirrorMaker 2 had no position."""
    return {
        "flow": str(flow),
        "run": run,
        "offsets_topic": topic,
        "connector": connector,
        "partitions": [
            {
                "topic": row.source.topic,
                "partition": row.source.partition,
                "outcome": row.verdict.value,
                "position": row.position,
                "was": row.was if row.was >= 0 else None,
                "why": row.why,
            }
            for row in found.rows
        ],
        "records": [
            {"key": json.loads(record.key), "value": json.loads(record.value or b"null")} for record in found.records
        ],
        "notes": list(found.notes),
    }
