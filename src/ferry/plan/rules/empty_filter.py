"""A topic filter that matches nothing is refused: it is nearly always a typing error or a missing permission.

It is not refused if something shows that the flow rightly waits for its first topic: of two opposite flows one often
has none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ferry.config.flow.guards import Guards, OnGuard
from ferry.config.text.filters import LEGAL_NAME, TopicSelection
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import passed, refused
from ferry.model import Flow, Refusal, scratch_lane
from ferry.plan.rules.facts import Facts, Unfound
from ferry.policy import is_ferry_internal, is_heartbeats_topic

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFindings:
    """What a plan reports of names and patterns that match nothing."""

    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    lifted: int = 0
    """How many refusals the guard's policy lifted."""


def empty_filter(flow: Flow, guards: Guards, facts: Facts) -> FilterFindings:
    """Return notes on missing names in `topics`, and refusals if the filter takes no topic at all."""
    names = [name for name in facts.source.unmatched if name not in facts.source.absent | facts.source.hidden]
    notes = [sentence("topics.none.one", topic=name, cluster=flow.source) for name in names]
    found = facts.source.unfound
    if found is None or facts.source.absent or facts.source.hidden or "" in facts.lane.pauses:
        return FilterFindings(notes=tuple(notes))
    refusals = [refused("topics.none.name", name, cluster=flow.source) for name in names]
    if found.patterns or not names:
        refusals.append(_whole(flow, found))
    if found.idle:
        idle = sentence("topics.idle", flow=str(flow), why=found.idle)
        return FilterFindings(notes=(*notes, idle))
    if guards.topics_none.default is OnGuard.SKIP:
        lifted = tuple(passed("passed.over", one) for one in refusals)
        return FilterFindings(notes=lifted, lifted=len(lifted))
    return FilterFindings(refusals=tuple(refusals))


def _whole(flow: Flow, found: Unfound) -> Refusal:
    if found.empty:
        return refused("topics.none.empty", "", flow=str(flow))
    if found.excluded:
        return refused("topics.none.excluded", "", cluster=flow.source, some=_some(found.excluded))
    if not found.shown:
        return refused("topics.none.shown", "", cluster=flow.source, flow=str(flow))
    patterns = ", ".join(found.patterns)
    return refused("topics.none.matched", "", patterns=patterns, shown=found.shown, cluster=flow.source)


def unfound(selection: TopicSelection, listed: Collection[str]) -> Unfound | None:
    """Return what a flow's filter was compared with; None when it takes a topic that the source lists.

    Heartbeats topics count only if the filter names them: every cluster has them, and they are copied in any case.
    """
    if any(selection.filter.takes(name) and selection.takes(name) for name in _proving(selection, listed)):
        return None
    include, exclude = selection.filter.include, selection.filter.exclude
    own = sorted(name for name in listed if not _serves(selection, name))
    return Unfound(
        patterns=tuple(item for item in include.items if not LEGAL_NAME.fullmatch(item)),
        empty=not include.items,
        shown=len(own),
        excluded=tuple(name for name in own if include.matches(name) and exclude.matches(name)),
    )


def idle_reason(
    selection: TopicSelection, back: TopicSelection | None, listed: Collection[str], at_target: Collection[str]
) -> str:
    """Return why a flow whose filter takes no topic may rightly have none, as half a sentence; else empty."""
    here = _proving(selection, listed)
    copies = sorted(name for name in here if selection.filter.takes(_upstream(selection, name)))
    if copies:
        return f"topics takes there only what came from {selection.flow.target} or is internal ({_some(copies)})"
    # A different list proves nothing about this one: it may be right while this one has a typing error.
    same = back is not None and set(back.filter.include.items) == set(selection.filter.include.items)
    if back is not None and same and unfound(back, at_target) is None:
        return f"the opposite flow {back.flow} has topics to copy by the same list, and this one waits for its own"
    return ""


def is_bare(selection: TopicSelection, listed: Collection[str]) -> bool:
    """Return whether a source lists no topics but those that serve Kafka, MirrorMaker or Ferry."""
    return all(_serves(selection, name) for name in listed)


def _serves(selection: TopicSelection, name: str) -> bool:
    policy = selection.policy
    own = is_ferry_internal(name) or scratch_lane(name) is not None
    return own or policy.is_internal_topic(name) or is_heartbeats_topic(policy, name)


def _proving(selection: TopicSelection, listed: Collection[str]) -> list[str]:
    """Return the topics that show whether a filter is right."""
    named = selection.filter.include.items
    return [name for name in listed if name in named or not is_heartbeats_topic(selection.policy, name)]


def _upstream(selection: TopicSelection, name: str) -> str:
    """Return the target's name of a topic that came directly from there; the own name of any other topic."""
    if selection.policy.topic_source(name) == selection.flow.target:
        return selection.policy.upstream_topic(name) or name
    return name


def _some(names: Collection[str]) -> str:
    first = list(names)[:_SHOWN]
    return ", ".join(first) + (", ..." if len(names) > len(first) else "")
