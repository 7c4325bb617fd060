"""What a plan needs to know of a flow's transforms: whether a run can write what they make, and their digests."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.steps import Rename, Route, RouteByTime
from ferry.config.flow.transforms import TransformSpec
from ferry.run.records.transform_digest import transform_digest


def why_not_run(flow: FlowConfig) -> str | None:
    """Why a run of the flow is refused, as one sentence; None: it can be."""
    return next((why for one in flow.transforms if (why := _why_not(one)) is not None), None)


def _why_not(spec: TransformSpec) -> str | None:
    key = f"ferry.transform.{spec.name}"
    if spec.partitions is not None:
        return (
            f"{key}.partitions: this version checks and shows what it makes (ferry plan --sample N) and does not write "
            "it yet: leave it out, so that records keep their partitions"
        )
    if any(isinstance(step, Rename | Route | RouteByTime) for step in spec.steps):
        return (
            f"{key}: it gives records other topics than the policy names, which this version shows (ferry plan "
            "--sample N) and does not write yet: leave target, or RegexRouter and TimestampRouter, out, and name topics"
            " by replication.policy.class"
        )
    return None


def transform_digests(flow: FlowConfig) -> dict[str, str]:
    """The digests of a flow's transforms by name. Raises as `transform_digest`."""
    return {one.name: transform_digest(one) for one in flow.transforms}
