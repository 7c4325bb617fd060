"""What features do when a run is planned, such as copying ACLs.

`ferry.registry` has the place of each: a function that takes the Planned and returns its PlanPart.
"""

from __future__ import annotations

from typing import Protocol

from ferry.config.flow.flow import FlowConfig
from ferry.kafka.connect.cluster import Cluster
from ferry.ledger.ledger import LedgerView
from ferry.model import Plan
from ferry.protocol.driver import Driver
from ferry.registry import parts_of


class Planned(Protocol):
    """What a run is planned from: a flow in a lane, with open connections to both clusters. A Planner is one."""

    @property
    def flow(self) -> FlowConfig:
        """The flow as configured in its file."""

    @property
    def lane(self) -> str:
        """The lane of the run."""

    @property
    def source(self) -> Cluster:
        """The source cluster."""

    @property
    def target(self) -> Cluster:
        """The target cluster."""


class PlanPart(Protocol):
    """A feature's part in planning a run of the whole flow. Lives on the event loop of the connections.

    It is left out of a run that is narrowed to topics or to a window, and of a run of a paused flow.
    """

    async def preview(self, view: LedgerView, plan: Plan) -> Plan:
        """Return the plan with what the run would do; writes nothing."""

    async def act(self, driver: Driver, plan: Plan) -> Plan:
        """Carry it out, and return the plan with what was done, what is refused because of it, and notes.

        It runs after the topics of the target were changed, and before the plan is sealed. It may run again: if the
        driver was fenced by a late driver of an earlier run, the run is opened again. `Driver.keep` writes records with
        the plan. `Driver.commit` writes at once: it is for what is about to be changed outside the ledger. Call
        `Driver.refuse_superseded` before such a change, unless a commit comes first.
        """


def plan_parts(planned: Planned) -> list[PlanPart]:
    """Return the parts of all features, in order."""
    return [made(planned) for made in parts_of("planning").values()]
