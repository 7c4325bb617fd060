"""What features do when a run is planned, such as copying ACLs.

`ferry.registry` has the place of each: a function that takes the OpenLane and returns its PlanPart.
"""

from __future__ import annotations

from typing import Protocol

from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.model import Plan
from ferry.plan.options import RunOptions
from ferry.plan.rules.facts import LaneFacts
from ferry.protocol.driver import Driver
from ferry.registry import parts_of


class PlanPart(Protocol):
    """A feature's part in planning a run. Lives on the event loop of the connections."""

    async def preview(self, view: LedgerView, plan: Plan) -> Plan:
        """Return the plan with what the run would do; writes nothing."""

    async def act(self, driver: Driver, plan: Plan) -> Plan:
        """Carry it out, and return the plan with what was done, what is refused because of it, and notes.

        It runs after topics of the target were created, grown and configured, and before the plan is sealed. A part
        that judges runs before they are claimed, and only leaves slices out. The others run after that.

        It must bear to run again: if a late driver of an earlier run fenced this one, the run is opened again.
        `Driver.keep` has records written with the plan. `Driver.commit` writes at once: it is for what is about to be
        changed outside the ledger. Before such a change it must call `Driver.refuse_superseded`, unless a commit comes
        first.
        """


def judging_parts(lane: OpenLane) -> list[PlanPart]:
    """Return the parts by which features leave slices out of each run, in order: they act before topics are claimed."""
    return [made(lane) for made in parts_of("judging").values()]


def plan_parts(lane: OpenLane, *, whole: bool) -> list[PlanPart]:
    """Return the parts that features have in a run after claims are made, in order.

    What prepares the copy comes first. What has a place in runs of the `whole` flow alone follows.
    """
    kinds = ("preparing", "planning") if whole else ("preparing",)
    return [made(lane) for kind in kinds for made in parts_of(kind).values()]


def is_of_whole_flow(options: RunOptions, lane: LaneFacts) -> bool:
    """Return whether a run is of the whole flow: not narrowed to topics or a window, and not paused."""
    return options.topics is None and options.window is None and "" not in lane.pauses
