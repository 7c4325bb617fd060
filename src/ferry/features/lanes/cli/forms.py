"""The JSON answers of `ferry lanes`: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import PAIR, Kind, enum, many, optional
from ferry.features.lanes.acts.dropping import Drop
from ferry.features.lanes.rules.listing import Lane, LanePart
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.window_codec import Dropped
from ferry.model import LIVE, Flow, LaneKind
from ferry.protocol.names import position_group

_PRUNED_SAYS = "source offsets copied whose receipts were pruned: their records are not in `records`"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfFlow:
    """A lane with its flow, which decides the name of its group."""

    flow: Flow
    lane: Lane

    @property
    def group(self) -> str:
        return position_group(self.flow, self.lane.name)


_KIND = Kind(
    lambda kind: LIVE if kind is None else kind.value,
    schema=lambda: {"enum": [LIVE, *(one.value for one in LaneKind)]},
)

_LAST_RUN = Form(
    PastRun,
    F("run", "opened.record.run"),
    F("started_ms", "opened.record.started_ms"),
    F("state", kind=enum(PastState)),
    name="last_run",
)

_PART = Form(
    LanePart,
    F("topic", "source.topic"),
    F("partition", "source.partition"),
    F("target_topic", "target.topic"),
    F("ranges", kind=many(PAIR), says="source offsets [start, end), ascending, with gaps between them"),
    F("records"),
    F("pruned_offsets", "pruned", says=_PRUNED_SAYS),
)

LANE = Form(
    _OfFlow,
    F("lane", "lane.name"),
    F("kind", "lane.kind", _KIND),
    F("group", says="the consumer group of its positions"),
    F("topics", "lane.topics", many(), says="on the target"),
    F("windows", "lane.windows"),
    F("left", "lane.left", says="source offsets of its windows that are not copied"),
    F("records", "lane.records", says="that receipts of single partitions still count"),
    F("pruned_offsets", "lane.pruned", says=_PRUNED_SAYS),
    F(
        "dealt_partitions",
        "lane.dealt",
        says="target partitions with repartitioned records: these are not in `records`",
    ),
    F(
        "deleted_topics",
        "lane.deleted",
        least=1,
        omit=lambda one: not one.lane.deleted,
        says="copies deleted after their source: what was copied to them is not in `records`; absent: none",
    ),
    F("last_run", "lane.last_run", optional(_LAST_RUN.kind)),
    F("parts", "lane.parts", many(_PART.kind)),
    name="lane",
)

DROP = Form(
    Drop,
    F("group"),
    F("topics", kind=many(), says="scratch topics that were there"),
    F("records"),
    F(
        "earlier",
        kind=optional(Form(Dropped, F("who"), F("at_ms")).kind),
        says="the lane was dropped before, and nothing was left of it; null: it was not",
    ),
)


def lane_json(flow: Flow, lane: Lane) -> Json:
    """Return one lane of `ferry lanes list`."""
    return LANE.dump(_OfFlow(flow=flow, lane=lane))


def drop_json(flow: Flow, found: Drop, *, dry_run: bool) -> Json:
    """Return the answer of `ferry lanes drop`."""
    return {"flow": str(flow), "lane": found.lane, "dropped": not dry_run, **DROP.dump(found)}
