"""On which cluster the clients of a flow are, by the switches along it and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ferry.model import Flow
from ferry.reader.documents import Moved, Status
from ferry_airflow.page.access import User, may_see
from ferry_airflow.page.page_state import OpenFlow, PageState, has_back


def clients_of(open_flow: OpenFlow, office: PageState, user: User) -> Moved | None:
    """Return the switch, along a flow or back, that moved clients last; None if there is none, or it is not known.

    It is not known without the ledger of the opposite flow. None is read of a flow that the user may not see, or that
    is not local.
    """
    back = open_flow.flow.back
    if not has_back(open_flow, office):
        return open_flow.seen.moved
    if not may_see(user, back) or all(one.flow != back for one in office.flows.now().flows):
        return None
    return last_moved(open_flow.seen, office.reader.statuses([str(back)], closely=False)[0])


def clients_of_all(flows: Sequence[OpenFlow], enabled: Collection[Flow]) -> Mapping[Flow, Moved]:
    """Return the switch that moved the clients of each flow last, where known; `enabled`: all flows of the file."""
    seen = {one.flow: one.seen for one in flows}
    found = {}
    for one in flows:
        back = one.flow.back
        if back in enabled and back not in seen:
            continue
        moved = last_moved(one.seen, seen[back]) if back in seen else one.seen.moved
        if moved is not None:
            found[one.flow] = moved
    return found


def last_moved(there: Status, back: Status) -> Moved | None:
    """Return which of the last switches in both directions was later; None while a ledger was not read."""
    if not there.ledger_ms or not back.ledger_ms:
        return None
    if there.moved is None or back.moved is None:
        return there.moved or back.moved
    return there.moved if there.moved.move.is_after(back.moved.move) else back.moved
