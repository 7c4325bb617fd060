"""Which transforms of the file cannot be carried out here, found before a run is planned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pyspark.sql import SparkSession

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.transform import of_frame, prepare, transformed
from ferry.model import Plan
from ferry.plan.transform_digest import transform_digest


def lost_transforms(spark: SparkSession, flow: FlowConfig, only: Collection[str] | None) -> dict[str, str]:
    """Return the transforms of these topics (None: all) that cannot be carried out here, by name, with the reason."""
    prepare(spark)
    empty = of_frame(spark.createDataFrame([], SCHEMA))
    names = None if only is None else {_today(flow, topic) for topic in only}
    found: dict[str, str] = {}
    for spec in flow.records.transforms:
        if names is None or spec.name in names:
            try:
                transformed(empty, spec, {})
            except (BadInput, Refused) as error:
                found[spec.name] = str(error)
    return found


def refuse_in_vain(flow: FlowConfig, preview: Callable[[], Plan], lost: Mapping[str, str]) -> None:
    """Raise Refused, in one sentence, if a plan has nothing to copy but what lost transforms would make.

    `preview` makes a plan that is not sealed; if that is refused, there is nothing to copy either. What units finish by
    an earlier rule than today's is not lost with today's transform.
    """
    if not lost:
        return
    try:
        plan = preview()
    except Refused:  # for a reason that refuses any run: the next one says it, once the transforms check
        raise Refused(_first_of(lost, lost)) from None
    names = {_today(flow, piece.source.topic) for piece in plan.kept}
    rules = {era.target_topic: era for era in plan.eras}
    known = {spec.name: spec for spec in flow.records.transforms}
    of_units = {(_today(flow, unit.source.topic), rules[unit.target.topic].digest) for unit in plan.dealt}
    names |= {name if name and _is_of(known[name], digest) else "" for name, digest in of_units}
    if names <= lost.keys():
        raise Refused(_first_of(lost, names or lost))


def _first_of(lost: Mapping[str, str], names: Collection[str]) -> str:
    more = f" (and {len(lost) - 1} more that cannot be carried out)" if len(lost) > 1 else ""
    return f"{lost[min(names)]}{more}"


def _today(flow: FlowConfig, topic: str) -> str:
    """Return the name of a topic's transform; empty: it has none, or two, which its plan refuses."""
    try:
        spec = flow.transform_of(topic)
    except Refused:
        return ""
    return "" if spec is None else spec.name


def _is_of(spec: TransformSpec, digest: str) -> bool:
    """Report whether a rule of that digest is today's. A rule without a digest counts as today's."""
    try:
        return digest in ("", transform_digest(spec))
    except (BadInput, Refused):
        return True
