"""What features check of a flow, for `ferry doctor`, and for `ferry readiness` and switches.

`ferry.registry` has the places of each feature's checks: `doctor`, a FlowCheck, and `readiness`, a ReadinessCheck.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from ferry.config.flow.flow import FlowConfig
from ferry.lane.connections import EitherSide
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.model import Plan
from ferry.model.check import Check
from ferry.model.finding import Finding
from ferry.registry import parts_of

FlowCheck = Callable[[FlowConfig, EitherSide], Iterable[Finding]]
"""Checks a flow, and writes nothing. The clusters are open, but those that are `down`, which is a finding already.

It is called on a thread of the command, so requests of other protocols may wait there, each with a timeout. It returns
errors as findings: one that it raises ends the check of the flow. If a finding is FAIL, runs are not checked.
"""

ReadinessCheck = Callable[[OpenLane, LedgerView, Plan], Awaitable[Sequence[Check]]]
"""Checks whether the target could take over, and writes nothing; a row that did not hold keeps a switch from beginning.

It is given the ledger and the plan that a run would have now. It lives on the event loop of the connections.
"""


def flow_checks() -> list[FlowCheck]:
    """Return the checks of all features, in order."""
    parts: Mapping[str, FlowCheck] = parts_of("doctor")
    return list(parts.values())


def readiness_checks() -> list[ReadinessCheck]:
    """Return the checks of all features before a switch, in order."""
    parts: Mapping[str, ReadinessCheck] = parts_of("readiness")
    return list(parts.values())
