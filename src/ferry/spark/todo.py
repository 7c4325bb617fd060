"""Whether a run's copy step has anything to do, asked before Spark is started."""

from __future__ import annotations

from ferry.model import Plan
from ferry.run.micro_run import MicroRuns


def nothing_to_copy(runs: MicroRuns, plan: Plan) -> bool:
    """Whether the plan is empty or was carried out before a newer run came; Superseded when that one has the rest."""
    if not plan.slices:
        return True
    runs.refuse_unless_done(plan)
    return runs.superseded(plan) is not None
