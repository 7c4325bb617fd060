"""Which transforms a plan has carried out, and on what; held against the file before anything is written."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import TransformSpec
from ferry.decide.records.letters import PoisonRule
from ferry.decide.records.rule_text import parse_rule
from ferry.errors import Refused
from ferry.model import Piece, Plan
from ferry.run.records.transform_digest import transform_digest
from ferry.spark.records.plain import plain_change
from ferry.spark.records.schema import SCHEMA
from ferry.spark.records.sink import Stream, refuse_remote
from ferry.spark.records.transform import prepare, transformed

Transforms = list[tuple[TransformSpec, tuple[Piece, ...]]]


def transforms_of(flow: FlowConfig, plan: Plan) -> Transforms:
    """The transforms that a plan names, each with what it makes.

    Raises Refused for one that is not what it was when the run was planned, and as `transform_digest`.
    """
    pieces: dict[tuple[str, str], list[Piece]] = {}
    for piece in plan.slices:
        if piece.transform:
            pieces.setdefault((piece.transform, piece.transform_digest), []).append(piece)
    known = {one.name: one for one in flow.transforms}
    found: Transforms = []
    for (name, digest), mine in sorted(pieces.items()):
        spec = known.get(name)
        if spec is None or transform_digest(spec) != digest:
            what = "is not in the file any more" if spec is None else "is another one by now"
            raise Refused(
                f"ferry.transform.{name} {what}, or PySpark, Ferry or its function's module is, since run {plan.run} "
                "was planned: start a new run, which goes on where this one stands"
            )
        found.append((spec, tuple(mine)))
    return found + _dealt(flow, plan)


def _dealt(flow: FlowConfig, plan: Plan) -> Transforms:
    """The same of units, by the rules in the plan: one that the file has changed since is finished as it was."""
    rules = {era.target_topic: era for era in plan.eras}
    pieces: dict[tuple[str, str], list[Piece]] = {}
    for unit in plan.units:
        pieces.setdefault((rules[unit.target.topic].spec, unit.digest), []).append(unit)
    found: Transforms = []
    for (text, digest), mine in sorted(pieces.items()):
        spec = parse_rule(text, flow.transforms)
        if transform_digest(spec) != digest:
            raise Refused(
                f"ferry.transform.{spec.name} cannot be carried out here as run {plan.run} has planned it: PySpark, "
                "Ferry, the module of its function or its salt is another one: start a new run where Spark's driver "
                "has the same, which goes on where this one stands"
            )
        found.append((spec, tuple(mine)))
    return found


def _named(spec: TransformSpec, topic: str, target: str, aim: str) -> str:
    """What the transform calls the topic that the plan calls `aim`; in a lane that has another name."""
    return aim if spec.targets else spec.target_of(topic, target) or aim


def check_transforms(spark: SparkSession, flow: FlowConfig) -> None:
    """Check all transforms of a flow before a run of it is opened. Raises as `transformed`."""
    prepare(spark)
    empty = spark.createDataFrame([], SCHEMA)
    for spec in flow.transforms:
        transformed(empty, spec, {})


def streams_of(spark: SparkSession, flow: FlowConfig, transforms: Transforms) -> list[Stream]:
    """How Spark carries them out, each of them checked. Raises as `transformed`, and Refused on Spark Connect."""
    if not transforms:
        return []
    refuse_remote(spark)
    prepare(spark)
    found = []
    for spec, pieces in transforms:
        aims = sorted({(piece.source.topic, piece.target.topic) for piece in pieces})
        targets = {topic: flow.first_name(topic) for topic, _ in aims}
        change = partial(transformed, spec=spec, targets=targets)
        plain = plain_change(spec, targets)
        if plain is None:  # plain steps are known to be sound
            change(spark.createDataFrame([], SCHEMA))
        names = {aim: (targets[topic], _named(spec, topic, targets[topic], aim)) for topic, aim in aims}
        rule = PoisonRule(
            transform=spec.name,
            poison=spec.poison,
            letters=flow.dead_letters,
            names=names,
            targets={topic: spec.targets_of(topic, name) for topic, name in targets.items()},
        )
        found.append(Stream(change=change, rule=rule, pieces=pieces, plain=plain))
    return found
