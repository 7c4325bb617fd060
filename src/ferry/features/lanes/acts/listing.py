"""The lanes in the ledger; only the target is read."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.features.lanes.rules.listing import Lane, lane_names, lane_of
from ferry.lane.connections import TargetConnection
from ferry.lane.ledger_cache import LedgerCache


def list_lanes(flow: FlowConfig, *, patience_s: float = 60.0) -> list[Lane]:
    """Return all lanes of the flow, live ones included. Raises BadInput if the flow never ran."""
    with TargetConnection.of(flow, patience_s=patience_s) as connection:

        async def work() -> list[Lane]:
            names = lane_names(await connection.cache.view())
            return [await known_lane(connection.cache, name) for name in names]

        return connection.run(work)


async def known_lane(cache: LedgerCache, name: str) -> Lane:
    """Return one lane with all its receipts, including those in summaries."""
    view = await cache.view_with_newest(name, 1)
    return lane_of(view, name, await cache.rows(view, lambda of: of.lane == name))
