"""The topic to which a transform's steps send records, as far as the source topic alone decides it.

A topic that is known in this way is in the plan: created, claimed and guarded as one that a policy names (ADR 39).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from ferry.config.flow.steps import HasHeader, Rename, Route, RouteByTime, Step, TopicMatches, When
from ferry.config.flow.topic_sql import NotKnown, topic_by_sql
from ferry.config.text.java_replacement import java_replacement
from ferry.config.text.regex import compile_java

__all__ = ["NotKnown", "routed", "routed_by_time", "target_by_steps", "why_by_record"]

_PLACES = re.compile(r"\$\{topic\}|\$\{timestamp\}")
_TIME_PARTS = re.compile(r"yyyy|yy|MM|dd|HH|mm|ss|SSS|'(?:[^']|'')*'|.", re.DOTALL)
_TIME_FIELDS = {
    "yyyy": "{0.year:04}", "yy": "{1:02}", "MM": "{0.month:02}", "dd": "{0.day:02}", "HH": "{0.hour:02}",
    "mm": "{0.minute:02}", "ss": "{0.second:02}", "SSS": "{2:03}",
}  # fmt: skip
_MOST_SHOWN = 120
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of UTC, as all that is counted from it


def target_by_steps(steps: Iterable[Step], topic: str, target: str) -> str:
    """Return the topic that records of `topic` go to, where the policy names it `target`: one route after the other.

    SQL and functions before the steps are assumed not to change it: a record that they send elsewhere is refused.
    Raises NotKnown, with half a sentence, where each record decides it itself.
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
                    raise NotKnown(f"its target {textwrap.shorten(step.sql, _MOST_SHOWN)} {why}") from None
    return target


def why_by_record(step: Step) -> str | None:
    """Return that a step names copies record by record, whatever their source topic, and why; None: it does not."""
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
    """Return whether a step is for all records of the topic that is now called `target`, or for none."""
    if when is None:
        return True
    if not isinstance(when.test, TopicMatches):
        what = "headers" if isinstance(when.test, HasHeader) else "value"
        raise NotKnown(f"{name} has a predicate that asks each record for its {what}")
    return (compile_java(when.test.pattern).fullmatch(target) is not None) is not when.negate


def routed(step: Route, target: str) -> str:
    """Return the name that a route gives to `target`; as in Kafka, it replaces the first match *within* the name."""
    pattern = compile_java(step.pattern)
    found = pattern.search(target)
    if found is None or pattern.fullmatch(target) is None:
        return target
    return target[: found.start()] + found.expand(java_replacement(step.replacement)) + target[found.end() :]


def routed_by_time(step: RouteByTime, target: str, timestamp_ms: int) -> str:
    """Return the name that a route gives by a record's time. Raises ValueError for a year outside 1 to 9999."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        raise ValueError from None
    written = _time_form(step.time_format).format(moment, moment.year % 100, moment.microsecond // 1000)
    return _PLACES.sub(lambda place: target if place[0] == "${topic}" else written, step.topic_format)


@lru_cache(maxsize=16)
def _time_form(time_format: str) -> str:
    """Return a format of `SimpleDateFormat` as one of Python.

    It takes a moment, its year's last two digits and its milliseconds.
    """
    return "".join(_TIME_FIELDS.get(part[0]) or _literal(part[0]) for part in _TIME_PARTS.finditer(time_format))


def _literal(part: str) -> str:
    text = part[1:-1].replace("''", "'") or "'" if part[0] == "'" else part
    return text.replace("{", "{{").replace("}", "}}")
