"""What a plan needs to know of a flow's transforms: whether a run can write what they make, and their digests."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.steps import Rename, Route, RouteByTime
from ferry.config.flow.transforms import TransformSpec
from ferry.decide.records.rule_text import parse_rule, spark_of
from ferry.errors import BadInput, Refused
from ferry.model import Era
from ferry.run.records.transform_digest import transform_digest


def why_not_run(flow: FlowConfig) -> str | None:
    """Why a run of the flow is refused, as one sentence; None: it can be."""
    return next((why for one in flow.transforms if (why := _why_not(one)) is not None), None)


def _why_not(spec: TransformSpec) -> str | None:
    key = f"ferry.transform.{spec.name}"
    if any(isinstance(step, Rename | Route | RouteByTime) for step in spec.steps):
        return (
            f"{key}: it gives records other topics than the policy names, which this version shows (ferry plan "
            "--sample N) and does not write yet: leave target, or RegexRouter and TimestampRouter, out, and name topics"
            " by replication.policy.class"
        )
    return None


def lost_rules(flow: FlowConfig, eras: Mapping[str, Era], digests: Mapping[str, str]) -> dict[str, str]:
    """By target topic why the rule by which its records are dealt cannot be carried out any more, as half a sentence.

    Asked where the file wants another one by now, for what the one before has begun is finished by it; of nothing where
    no `digests` are known.
    """
    found: dict[str, str] = {}
    for target, era in eras.items() if digests else ():
        wish = flow.transform_of(era.source_topic)
        if wish is None or digests.get(wish.name) == era.digest:
            continue
        try:
            now = transform_digest(parse_rule(era.spec, flow.transforms))
        except (BadInput, Refused) as error:
            found[target] = str(error)
            continue
        if now != era.digest:
            found[target] = (
                "PySpark, the module of its function or its salt is another one than then: bring back what it was, for "
                f"one run{spark_of(era.spec)}"
            )
    return found


def digests_to_show(flow: FlowConfig) -> dict[str, str]:
    """As `transform_digests`, for a plan that is only shown; empty where they cannot be told here."""
    try:
        return transform_digests(flow)
    except (BadInput, Refused):
        return {}


def transform_digests(flow: FlowConfig) -> dict[str, str]:
    """The digests of a flow's transforms by name. Raises as `transform_digest`."""
    return {one.name: transform_digest(one) for one in flow.transforms}
