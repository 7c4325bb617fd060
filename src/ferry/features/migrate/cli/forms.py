"""The JSON answers of `ferry migrate` and `ferry migrate hand-back`: a contract, described in docs/json.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import enum, typed
from ferry.features.migrate.rules.adoption import Row, Takeover, Verdict
from ferry.features.migrate.rules.hand_back import Handed, HandedRow
from ferry.features.migrate.rules.seam import SeamState
from ferry.ledger.codec import SOURCE, TARGET
from ferry.model import Flow

if TYPE_CHECKING:  # the forms need no Kafka client
    from ferry.features.migrate.acts.hand_back import HandedBack


TAKEN = Form(
    Row,
    *SOURCE,
    *TARGET,
    F(
        "outcome",
        "verdict",
        enum(Verdict),
        says="nothing: neither a position nor records on the target; the lane begins the partition as configured",
    ),
    F("position", least=-1, says="the next source offset to be copied; -1: the replicator has none"),
    F("source_start", "log_start", least=-1, says="-1 here and below: not known"),
    F("source_end", least=-1),
    F("target_start", least=-1),
    F("target_end", least=-1),
    F("lost", says="source offsets that retention took before they were copied"),
    F(
        "doubled",
        says="records that will be copied twice, at most; null: not known, at most those up to source_end",
    ),
    F("copy_end", "seam.state", enum(SeamState), says="the copy's last record against the position"),
    F("why", says="empty where there is nothing to say"),
)

HANDED = Form(
    HandedRow,
    *SOURCE,
    F("outcome", "verdict", enum(Handed)),
    F("position", least=-1, says="the next source offset to be copied; -1: not known"),
    F(
        "was",
        lambda row: row.was if row.was >= 0 else None,
        typed(int | None),
        says="MirrorMaker 2's own position before; null: none",
    ),
    F("why", says="empty where there is nothing to say"),
)


def adoption_json(flow: Flow, run: str | None, found: Takeover) -> Json:
    """Return the answer of `ferry migrate`.

    `run` is null in a dry run, or if nothing is adopted; unknown values are -1 or null.
    """
    return {
        "flow": str(flow),
        "run": run,
        "by": found.left.by.value,
        "where": found.left.where,
        "partitions": [TAKEN.dump(row) for row in found.rows],
        "notes": list(found.notes),
    }


def hand_back_json(flow: Flow, run: str | None, topic: str, connector: str, found: HandedBack) -> Json:
    """Return the answer of `ferry migrate hand-back`.

    `run` is null in a dry run; `was` is null if MirrorMaker 2 had no position.
    """
    return {
        "flow": str(flow),
        "run": run,
        "offsets_topic": topic,
        "connector": connector,
        "partitions": [HANDED.dump(row) for row in found.rows],
        "records": [
            {"key": json.loads(record.key), "value": json.loads(record.value or b"null")} for record in found.records
        ],
        "notes": list(found.notes),
    }
