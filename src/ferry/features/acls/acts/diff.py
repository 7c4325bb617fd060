"""The differences of the target's ACLs now, outside of a run."""

from __future__ import annotations

from ferry.features.acls.acts.sync import acls_of_plan
from ferry.features.acls.rules.acls import AclDiff
from ferry.ledger.ledger import LedgerView
from ferry.plan.gather import Positions
from ferry.plan.options import WHOLE, rules_of
from ferry.plan.planner import Planner
from ferry.plan.rules.planning import decide_plan
from ferry.run.micro_run import MicroRuns


def acl_diff(runs: MicroRuns) -> tuple[AclDiff, int | None]:
    """Return how the target's ACLs differ from what the source's ask for, and after how many ms a run changes them.

    The time is None if no run does. Raises NoAuthorizer, NotPermitted and Unreachable.
    """

    async def work(planner: Planner, view: LedgerView) -> tuple[AclDiff, int | None]:
        acls = acls_of_plan(planner)
        facts = await planner.facts(view, positions=Positions.NONE)
        plan = decide_plan(rules_of(planner.flow, planner.lane, WHOLE), facts, "(dry run)", -1)
        return await acls.diff(view, plan), acls.due_in_ms(view)

    return runs.act(work)
