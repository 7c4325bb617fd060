"""The list of flows when much is wrong: the worst first, some of them only, and each trouble once; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from ferry.model import Flow
from ferry.plan.rules.lag import TotalLag
from ferry.reader.documents import Trouble
from ferry_airflow.page.flow_health import NEVER_RAN
from ferry_airflow.page.page_state import OpenFlow
from ferry_airflow.page.run_words import Condition

ORDER = (Condition.BAD, Condition.WARN, Condition.HELD, Condition.UNKNOWN, Condition.BUSY, Condition.GOOD)
"""The order in which an operator should read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A trouble of one or more flows, in the words of the one that has had it for longest."""

    trouble: Trouble
    flows: tuple[Flow, ...]


def outages(flows: Sequence[OpenFlow]) -> list[Shared]:
    """Return clusters that do not answer, those that have been silent for longest first."""
    return _shared([(one.flow, trouble) for one in flows for trouble in one.seen.troubles], lambda one: one.cluster)


def hindrances(flows: Sequence[OpenFlow]) -> list[Shared]:
    """Return what prevents a poll and is not an outage."""
    return _shared([(one.flow, trouble) for one in flows for trouble in one.seen.hindrances], lambda one: one.why)


def _shared(found: Sequence[tuple[Flow, Trouble]], kind: Callable[[Trouble], Hashable]) -> list[Shared]:
    by_kind: dict[Hashable, list[tuple[Flow, Trouble]]] = {}
    for flow, trouble in found:
        by_kind.setdefault(kind(trouble), []).append((flow, trouble))
    made = [
        Shared(
            trouble=min((trouble for _, trouble in same), key=lambda one: one.since_ms),
            flows=tuple(dict.fromkeys(flow for flow, _ in same)),
        )
        for same in by_kind.values()
    ]
    return sorted(made, key=lambda one: one.trouble.since_ms)


def sorted_by_use(flows: Sequence[OpenFlow]) -> list[OpenFlow]:
    """Return the flows that have run, then those of which it is not known, then the others; by name among equals."""

    def key(one: OpenFlow) -> tuple[int, str]:
        unknown = not one.seen.ledger_ms and one.seen.last_run is None
        return 1 if unknown else 2 * one.seen.never_ran, str(one.flow)

    return sorted(flows, key=key)


def sorted_by_condition(flows: Sequence[OpenFlow]) -> list[OpenFlow]:
    """Return the flows, the worst first, those that never ran last; among equals as `sorted_by_use` does."""

    def rank(one: OpenFlow) -> int:
        return len(ORDER) if one.standing.word == NEVER_RAN else ORDER.index(one.standing.condition)

    return sorted(sorted_by_use(flows), key=rank)


def _largest(figure: Callable[[TotalLag], float | None]) -> Callable[[OpenFlow], float]:
    def key(one: OpenFlow) -> float:
        total = one.seen.lag
        found = None if total is None or total.unknown else figure(total)
        return -(inf if found is None else found)  # lag that is not known may be the largest

    return key


SORTS: dict[str, Callable[[OpenFlow], Any]] = {
    "name": lambda one: str(one.flow),
    "records": _largest(lambda total: total.records),
    "bytes": _largest(lambda total: total.bytes),
    "seconds": _largest(lambda total: total.seconds),
}
"""Orders of flows other than by state: the largest lag first, and lag that is not known before it."""


def sorted_by(flows: Sequence[OpenFlow], sort: str) -> list[OpenFlow]:
    """Return the flows sorted by a key of `SORTS`, else the worst first; among equals, the worst first."""
    found = sorted_by_condition(flows)
    return sorted(found, key=SORTS[sort]) if sort in SORTS else found


def chosen(flows: Sequence[OpenFlow], text: str) -> list[OpenFlow]:
    """Return the flows with the text in their name or in the word for their state."""
    wanted = text.strip().lower().replace("\u2192", "->")
    return [one for one in flows if wanted in str(one.flow).lower() or wanted in one.standing.word.lower()]


def counts(flows: Sequence[OpenFlow]) -> list[tuple[Condition, str, int]]:
    """Return for each word how many flows have it, the worst word first."""
    found = Counter((one.standing.condition, one.standing.word) for one in sorted_by_condition(flows))
    return [(condition, word, count) for (condition, word), count in found.items()]
