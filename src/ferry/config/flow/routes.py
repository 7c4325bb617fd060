"""Which topic a transform's steps send records to, as far as the source topic alone decides it.

What is known so is the topic's name in the plan: created, claimed and guarded as that of a policy (ADR 39).
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.config.flow.steps import HasHeader, Rename, Route, RouteByTime, Step, TopicMatches, When
from ferry.config.flow.topic_sql import NotKnown, topic_by_sql
from ferry.config.text.java_replacement import java_replacement
from ferry.config.text.regex import compile_java

__all__ = ["NotKnown", "routed", "target_by_steps", "why_by_record"]


def target_by_steps(steps: Iterable[Step], topic: str, target: str) -> str:
    """The topic that records of `topic` go to, where the policy says `target`: one route behind the other.

    SQL and functions before the steps are taken not to change it: a record that they send elsewhere is refused.
    Raises NotKnown, with half a sentence, where each record says it itself.
    """
    for step in steps:
        match step:
            case Route():
                if _holds("RegexRouter", step.when, target):
                    target = routed(step, target)
            case RouteByTime():
                if _holds("TimestampRouter", step.when, target):
                    raise NotKnown("TimestampRouter asks each record for its timestamp")
            case Rename():
                try:
                    target = topic_by_sql(step.sql, topic, target)
                except NotKnown as why:
                    raise NotKnown(f"its target {why}") from None
    return target


def why_by_record(step: Step) -> str | None:
    """That a step names copies record by record, whatever their source topic, and why; None: it does not."""
    if isinstance(step, Route | RouteByTime) and step.when is not None and isinstance(step.when.test, TopicMatches):
        return None
    try:
        target_by_steps([step], "orders", "orders")
    except NotKnown as why:
        return (
            f"names copies record by record ({why}): ferry plan --sample shows them, and runs refuse their topics, but "
            "for those that ferry.transform.NAME.targets lists"
        )
    return None


def _holds(name: str, when: When | None, target: str) -> bool:
    """Whether a step is for all records of the topic that is called `target` by now, or for none."""
    if when is None:
        return True
    if not isinstance(when.test, TopicMatches):
        what = "headers" if isinstance(when.test, HasHeader) else "value"
        raise NotKnown(f"{name} has a predicate that asks each record for its {what}")
    return (compile_java(when.test.pattern).fullmatch(target) is not None) is not when.negate


def routed(step: Route, target: str) -> str:
    """The name that a route makes of another; as in Kafka, what it replaces is the first match *within* the name."""
    pattern = compile_java(step.pattern)
    found = pattern.search(target)
    if found is None or pattern.fullmatch(target) is None:
        return target
    return target[: found.start()] + found.expand(java_replacement(step.replacement)) + target[found.end() :]
