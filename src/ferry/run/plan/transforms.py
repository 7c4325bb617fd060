"""Flows with transforms: nothing writes changed records yet, so no run of them begins."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig


def why_not_run(flow: FlowConfig) -> str | None:
    """Why a run of the flow is refused, as one sentence; None: it has no transforms."""
    if not flow.transforms:
        return None
    names = ", ".join(one.name for one in flow.transforms)
    return (
        f"flow {flow.flow} has transforms ({names}), which this version checks and shows (ferry plan --sample N) and"
        " does not write yet: remove ferry.transforms where records may arrive as they are, or change them before or"
        " behind Ferry"
    )
