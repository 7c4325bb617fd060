"""The differences of the target's ACLs now, outside of a run."""

from __future__ import annotations

from ferry.features.acls.acts.sync import acls_of_plan
from ferry.features.acls.rules.acls import AclDiff
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.plan.gather import Positions
from ferry.plan.gather_all import gather_all
from ferry.plan.options import DEFAULT_RUN, rules_of
from ferry.plan.rules.planning import NO_GENERATION, decide_plan
from ferry.run.micro_run import MicroRuns


def acl_diff(runs: MicroRuns) -> tuple[AclDiff, int | None]:
    """Return how the target's ACLs differ from what the source's ask for, and after how many ms a run changes them.

    The time is None if no run does. Raises NoAuthorizer, NotPermitted and Unreachable.
    """

    async def work(lane: OpenLane, view: LedgerView) -> tuple[AclDiff, int | None]:
        acls = acls_of_plan(lane)
        facts = await gather_all(lane, view, Positions.NONE)
        plan = decide_plan(rules_of(lane.flow, lane.name, DEFAULT_RUN), facts, "(dry run)", NO_GENERATION)
        return await acls.diff(view, plan), acls.due_in_ms(view)

    return runs.act(work)
