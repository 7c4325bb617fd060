"""How the ACLs of the target differ now, outside of a run."""

from __future__ import annotations

from ferry.ledger.ledger import LedgerView
from ferry.plan.planner import Planner
from ferry.plan.rules.acls import AclDiff
from ferry.run.micro_run import MicroRuns


def acl_diff(runs: MicroRuns) -> tuple[AclDiff, int | None]:
    """How the target's ACLs differ from what the source's ask for, and after how many ms a run changes them.

    None: no run does. Raises NoAuthorizer, NotPermitted and Unreachable.
    """

    async def work(planner: Planner, view: LedgerView) -> tuple[AclDiff, int | None]:
        return await planner.acl_diff(view), planner.acls.due_in_ms(view)

    return runs.act(work)
