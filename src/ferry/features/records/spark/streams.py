"""Which transforms a plan carries out, and on what, compared with the file before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.rule_text import parse_rule
from ferry.config.flow.transforms import Poison, TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark.row_job import Stream
from ferry.features.records.spark.row_stage import Stage
from ferry.features.records.spark.row_writing import refuse_remote
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.transform import Read, is_plain, of_frame, prepare, steps_of, transformed
from ferry.model import Plan, Slice
from ferry.plan.transform_digest import transform_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A transform that a plan names, with what it makes. Without `spec`, `why` says why it cannot be carried out."""

    name: str
    pieces: tuple[Slice, ...]
    spec: TransformSpec | None = None
    why: str = ""


Transforms = list[Named]


def transforms_of(flow: FlowConfig, plan: Plan) -> Transforms:
    """Return the transforms that a plan names.

    One that has changed since the run was planned has no `spec`, and the reason in its place.
    """
    pieces: dict[tuple[str, str], list[Slice]] = {}
    for piece in plan.kept:
        if piece.transform:
            pieces.setdefault((piece.transform, piece.transform_digest), []).append(piece)
    known = {one.name: one for one in flow.records.transforms}
    found: Transforms = []
    for (name, digest), mine in sorted(pieces.items()):
        spec = known.get(name)
        what = "is not in the file any more" if spec is None else "is another one by now"
        other = (
            f"ferry.transform.{name} {what}, or PySpark, Ferry or its function's module is, since run {plan.run} was "
            "planned: start a new run, which continues where this one stopped"
        )
        found.append(_held_against(name, spec, digest, tuple(mine), other))
    return found + _dealt(flow, plan)


def _held_against(name: str, spec: TransformSpec | None, digest: str, pieces: tuple[Slice, ...], other: str) -> Named:
    """Return the transform if it has this digest here; else one without `spec`.

    `other` says that the digest is another one.
    """
    try:
        if spec is not None and transform_digest(spec) == digest:
            return Named(name=name, pieces=pieces, spec=spec)
    except (BadInput, Refused) as error:
        return Named(name=name, pieces=pieces, why=str(error))
    return Named(name=name, pieces=pieces, why=other)


def _dealt(flow: FlowConfig, plan: Plan) -> Transforms:
    """Return the transforms of units, by the rules in the plan.

    If the file has changed a rule since, its units are finished by the old rule.
    """
    rules = {era.target_topic: era for era in plan.eras}
    pieces: dict[tuple[str, str], list[Slice]] = {}
    for unit in plan.dealt:
        pieces.setdefault((rules[unit.target.topic].spec, unit.transform_digest), []).append(unit)
    found: Transforms = []
    for (text, digest), mine in sorted(pieces.items()):
        spec = parse_rule(text, flow.records.transforms)
        other = (
            f"ferry.transform.{spec.name} cannot run here as run {plan.run} has planned it: PySpark, Ferry, the module "
            "of its function or its salt is another one: start a new run where Spark's driver has the same; it "
            "continues where this one stopped"
        )
        found.append(_held_against(spec.name, spec, digest, tuple(mine), other))
    return found


def _named(spec: TransformSpec, topic: str, target: str, aim: str) -> str:
    """Return what the transform calls the topic that the plan calls `aim`; in a lane that is another name."""
    return aim if spec.targets else spec.target_of(topic, target) or aim


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


def streams_of(spark: SparkSession, flow: FlowConfig, transforms: Transforms) -> list[Stream]:
    """Return how Spark carries out the transforms, each of them checked; one that cannot be is `lost`.

    Refused on Spark Connect.
    """
    if not transforms:
        return []
    refuse_remote(spark)
    prepare(spark)
    return [_stream(spark, flow, named) for named in transforms]


def _stream(spark: SparkSession, flow: FlowConfig, named: Named) -> Stream:
    if named.spec is None:
        return _lost(flow, named, named.why)
    spec, pieces = named.spec, named.pieces
    aims = sorted({(piece.source.topic, piece.target.topic) for piece in pieces})
    targets = {topic: flow.first_name(topic) for topic, _ in aims}
    try:
        plain = steps_of(spec, targets) if is_plain(spec) else None
        if plain is None:  # plain steps are known to be sound
            transformed(of_frame(spark.createDataFrame([], SCHEMA)), spec, targets)
    except (BadInput, Refused) as error:
        return _lost(flow, named, str(error))

    def change(read: Read, then: Stage, columns: StructType) -> DataFrame:
        return transformed(read, spec, targets, then, columns)

    names = {aim: (targets[topic], _named(spec, topic, targets[topic], aim)) for topic, aim in aims}
    rule = PoisonRule(
        transform=spec.name,
        poison=spec.poison,
        letters=flow.records.dead_letters,
        names=names,
        targets={topic: spec.targets_of(topic, name) for topic, name in targets.items()},
    )
    return Stream(change=change, rule=rule, pieces=pieces, plain=plain, timeout_s=spec.timeout_ms / 1000)


def _lost(flow: FlowConfig, named: Named, why: str) -> Stream:
    """Make the stream of a transform of which nothing is read: `change` is never called."""
    rule = PoisonRule(transform=named.name, poison=Poison.FAIL, letters=flow.records.dead_letters)
    return Stream(change=lambda read, then, columns: read(then, columns), rule=rule, pieces=named.pieces, lost=why)
