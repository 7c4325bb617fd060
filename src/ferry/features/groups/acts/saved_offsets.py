"""Reads saved offsets of groups from the ledger if a view does not have them itself."""

from __future__ import annotations

from dataclasses import replace

from ferry.errors import BadInput
from ferry.features.groups.rules.codec import saved_places
from ferry.lane.summaries import LedgerLog
from ferry.ledger.ledger import LedgerView


async def with_saved(log: LedgerLog, view: LedgerView, lane: str, snapshot: str) -> LedgerView:
    """Return the view with all that a snapshot holds. BadInput when a record is not where the summary says."""
    places = saved_places(view, lane, snapshot)
    if not places:
        return view
    records = await log.read_at(places.values())
    found = {}
    for key, at in sorted(places.items(), key=lambda place: place[1]):
        record = records.get(at)
        if record is None or record.value is None or record.key != key.encode():
            raise BadInput(
                f"snapshot {snapshot!r} of lane {lane} is not whole, its record {key} at ledger offset {at} is gone: "
                "unless it was just dropped, records of the ledger were deleted; restore it with `ferry ledger "
                "rebuild`"
            )
        found[key] = record
    return replace(view, by_key={**found, **view.by_key})
