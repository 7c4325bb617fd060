"""What features check of a flow for `ferry doctor`.

`ferry.registry` has the place of each feature's check, `doctor`: a FlowCheck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.lane.connections import EitherSide
from ferry.model.finding import Finding
from ferry.registry import parts_of

FlowCheck = Callable[[FlowConfig, EitherSide], Iterable[Finding]]
"""Checks a flow, and writes nothing. The clusters are open, but those that are `down`, which is a finding already.

It is called on a thread of the command, so requests of other protocols may wait there, each with a timeout. It returns
errors as findings: one that it raises ends the check of the flow. If a finding is FAIL, runs are not checked.
"""


def flow_checks() -> list[FlowCheck]:
    """Return the checks of all features, in order."""
    parts: Mapping[str, FlowCheck] = parts_of("doctor")
    return list(parts.values())
