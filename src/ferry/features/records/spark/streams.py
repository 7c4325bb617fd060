"""Which transforms a plan carries out, and on which slices: a `Stream` for each. They are compared with the file first.

`ferry.features.records.spark.lost_transforms` checks those of the file before there is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.rule_text import parse_rule
from ferry.config.flow.transforms import Poison, TransformSpec
from ferry.errors import BadInput, Refused
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.steps import ArrowSteps
from ferry.features.records.spark.transform import Read, is_plain, of_frame, prepare, steps_of, transformed
from ferry.model import Plan, Slice
from ferry.plan.transform_digest import transform_digest
from ferry.run.spark.columns import Stage
from ferry.run.spark.session import is_remote

Change = Callable[[Read, Stage, StructType], DataFrame]
"""Applies one transform to what is read (`ferry.features.records.spark.transform.transformed`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one transform makes of a plan: slices, which keep their partitions, or units, which repartition records."""

    change: Change
    rule: PoisonRule
    pieces: tuple[Slice, ...]
    plain: ArrowSteps | None = None
    """All that `change` does, if there is no SQL in it: Python can do it alone."""
    timeout_s: float = 0.0
    """Most seconds that one Spark task of `change` may take; 0: no limit."""
    lost: str = ""
    """Why it cannot be carried out, as a sentence: nothing of it is read, and its pieces are refused. Empty: it can."""

    def of_slots(self, slots: Collection[int]) -> Stream:
        """Return the part that these slots write."""
        return replace(self, pieces=tuple(piece for piece in self.pieces if piece.slot in slots))


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


def streams_of(spark: SparkSession, flow: FlowConfig, transforms: Transforms) -> list[Stream]:
    """Return how Spark carries out the transforms, each of them checked; one that cannot be is `lost`.

    Refused on Spark Connect.
    """
    if not transforms:
        return []
    refuse_remote(spark)
    prepare(spark)
    return [_stream(spark, flow, named) for named in transforms]


def refuse_remote(spark: SparkSession) -> None:
    """Raise Refused on Spark Connect."""
    if is_remote(spark):
        raise Refused("transformed topics are not written on Spark Connect: use a Spark session without it")


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
