"""Transformed topics in a comparison: which rule made what is on the target, and whether it is today's. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.model import NotCompared, NotComparedKind


class Rule(NamedTuple):
    """What the file makes of a topic's records today: the transform's name, and its digest."""

    name: str
    digest: str


def by_todays_rule(
    found: Sequence[CompareRange], rules: Mapping[str, Rule], *, asked: bool
) -> tuple[list[CompareRange], list[NotCompared]]:
    """Return what today's rules made, which can be compared, and a sentence for each range of another rule.

    `rules` are those of source topics that have one. `asked`: these very offsets were asked for.
    """
    held, left = [], []
    for one in found:
        rule = rules.get(one.source.topic)
        if rule is not None and rule.digest == one.transform:
            held.append(one)
            continue
        today = (
            "the file has none for it any more"
            if rule is None
            else f"what ferry.transform.{rule.name} is today, or on another version of Spark"
        )
        start, end = one.source_range
        how = "a transform, and " if rule is None else "another transform than "
        message = (
            f"offsets {start} to {end - 1} of {one.source} were copied by {how}{today}: what is on the target cannot "
            "be verified by today's rule"
        )
        why = NotComparedKind.TRANSFORM_CHANGED
        left.append(NotCompared(source=one.source, start=start, end=end, why=why, message=message, asked=asked))
    return held, left


NEEDS_SPARK = (
    "which only Spark can apply again: verify them with ferry verify --spark, with verify_job.py, or by the DAG that "
    "verifies the flow"
)


def without_spark(found: Sequence[CompareRange]) -> list[NotCompared]:
    """Return a sentence for each range that cannot be compared without Spark."""
    return [
        NotCompared(
            source=one.source,
            start=one.source_range[0],
            end=one.source_range[1],
            why=NotComparedKind.NEEDS_SPARK,
            message=f"offsets {one.source_range[0]} to {one.source_range[1] - 1} of {one.source} were copied by a "
            f"transform, {NEEDS_SPARK}",
            asked=True,
        )
        for one in found
    ]
