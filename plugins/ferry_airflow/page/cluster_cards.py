"""The cards of a flow's clusters: a badge, what is not well or not known, and the brokers; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ferry.features.doctor.rules.clusters import MOST_SHOWN, BrokerFacts, ClusterFacts, Load, PartitionHealth
from ferry.model import Flow
from ferry.reader.documents import Answer, ClusterStory, Line, Trouble
from ferry_airflow.page.filters import counted, moment
from ferry_airflow.page.run_words import Badge, Condition

OLD_MS = 60_000
"""An older answer does not show how a cluster is now: three times the pause between two questions."""
MOST_BROKERS = 50
"""Brokers in the table of a card, those that do not answer first; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """A broker with its part in the flow's partitions; None: not known."""

    facts: BrokerFacts
    load: Load | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCard:
    """A cluster of a flow as its card shows it."""

    side: str
    story: ClusterStory
    badge: Badge
    lines: tuple[Line, ...]
    more_partitions: int
    """Partitions that are not in sync, and that no line names."""
    brokers: tuple[BrokerRow, ...]
    more_brokers: int
    version: str
    """The versions of its brokers, oldest and newest; empty: not known."""
    controller: str
    """Empty: not known."""
    has_racks: bool
    is_past: bool
    """Whether its figures are of an earlier time: how the cluster is now, is not known, or it does not answer."""


def cards_of(flow: Flow, answer: Answer, troubles: Sequence[Trouble], now_ms: int) -> tuple[ClusterCard, ClusterCard]:
    """Return the cards of both clusters; without an answer nothing of them is known.

    `troubles` are the clusters that did not answer the last poll.
    """
    sides = {"source": ClusterStory(alias=flow.source), "target": ClusterStory(alias=flow.target)}
    if answer.got is not None:
        sides = {"source": answer.got.source, "target": answer.got.target}
    silent = {one.cluster: one.why for one in troubles}
    of_poll = {side: replace(one, why=one.why or silent.get(one.alias, "")) for side, one in sides.items()}
    is_old = is_past(answer, now_ms)
    return _card("source", of_poll["source"], answer, is_old), _card("target", of_poll["target"], answer, is_old)


def is_past(answer: Answer, now_ms: int) -> bool:
    """Return whether an answer does not show how the clusters are now: it is old, or a newer one did not come."""
    return answer.got is not None and (bool(answer.error) or now_ms - answer.at_ms > OLD_MS)


def _card(side: str, story: ClusterStory, answer: Answer, is_old: bool) -> ClusterCard:
    brokers = story.facts.brokers if story.facts else ()
    loads = {one.broker: one for one in story.health.loads} if story.health else {}
    rows = [
        BrokerRow(facts=one, load=loads.get(one.id, Load(broker=one.id)) if story.health else None)
        for one in sorted(brokers, key=lambda one: (one.answers, one.id))
    ]
    health = story.health
    was_seen_earlier = is_old or bool(story.why or story.not_asked)
    return ClusterCard(
        side=side,
        story=story,
        badge=_badge(story, answer, is_old),
        lines=tuple(_lines(story, answer, was_seen_earlier)),
        more_partitions=health.offline + health.under_replicated - len(health.short) if health else 0,
        brokers=tuple(rows[:MOST_BROKERS]),
        more_brokers=len(rows[MOST_BROKERS:]),
        version=story.facts.span_of_versions if story.facts else "",
        controller=_controller(story),
        has_racks=any(one.rack for one in brokers),
        is_past=was_seen_earlier,
    )


def _badge(story: ClusterStory, answer: Answer, is_old: bool) -> Badge:
    """Return the worst that is known of a cluster, in a word."""
    if story.why:
        return Badge(condition=Condition.BAD, word="does not answer")
    if story.not_asked:
        return Badge(condition=Condition.UNKNOWN, word="could not be asked")
    if is_old:
        return Badge(condition=Condition.UNKNOWN, word="not known now")
    if story.facts is None:
        return Badge(condition=Condition.UNKNOWN, word="asking" if answer.waiting else "not known")
    return _badge_now(story.facts, story.health)


def _badge_now(facts: ClusterFacts, health: PartitionHealth | None) -> Badge:
    """Return the worst of a cluster that has answered just now."""
    if health is not None and health.offline:
        return Badge(condition=Condition.BAD, word="offline partitions")
    if facts.answering < len(facts.brokers):
        return Badge(condition=Condition.WARN, word="not all brokers answer")
    if health is not None and health.under_replicated:
        return Badge(condition=Condition.WARN, word="under-replicated")
    return Badge(condition=Condition.GOOD, word="answers")


def _controller(story: ClusterStory) -> str:
    node = story.steering.controller if story.steering else None
    if node is None:
        return ""
    is_broker = story.facts is not None and any(one.id == node for one in story.facts.brokers)
    return f"broker {node}" if is_broker else f"node {node}"


def _lines(story: ClusterStory, answer: Answer, was_seen_earlier: bool) -> Iterator[Line]:
    """Yield what is not well, then what is not known; what was seen earlier has no colour of now."""
    if story.why:
        yield Line(condition=Condition.BAD, word="no answer", text=story.why)
    if story.not_asked:
        yield Line(condition=Condition.UNKNOWN, word="not asked", text=story.not_asked)
    for line in (*_silent_brokers(story), *_short_partitions(story)):
        yield replace(line, condition=Condition.UNKNOWN, word="earlier") if was_seen_earlier else line
    if answer.error:
        yield Line(condition=Condition.UNKNOWN, word="not asked", text=answer.error)
    if story.not_known:
        text = f"The state of the flow's partitions is not known: {story.not_known}"
        yield Line(condition=Condition.UNKNOWN, word="not known", text=text)
    for text in story.steering.not_known if story.steering else ():
        yield Line(condition=Condition.UNKNOWN, word="not known", text=text)


def _short_partitions(story: ClusterStory) -> Iterator[Line]:
    for one in story.health.short if story.health else ():
        in_sync = f"{one.in_sync} of {counted(one.replicas, 'replica')} in sync"
        yield Line(
            condition=Condition.BAD if one.offline else Condition.WARN,
            word="offline" if one.offline else "under-replicated",
            text=f"{one.place} has {'no leader, and ' if one.offline else ''}{in_sync}.",
        )


def _silent_brokers(story: ClusterStory, of: str = "") -> Iterator[Line]:
    """Yield the brokers of a cluster that did not answer; `of`: words that name it."""
    silent = [one for one in (story.facts.brokers if story.facts else ()) if not one.answers]
    for broker in silent[:MOST_SHOWN]:
        where = f" at {broker.address}" if broker.address else ""
        yield Line(condition=Condition.BAD, word="no answer", text=f"Broker {broker.id}{where}{of}: {broker.why}.")
    if more := len(silent[MOST_SHOWN:]):
        yield Line(condition=Condition.BAD, word="no answer", text=f"{counted(more, 'other broker')}{of}.")


def silent_now(flow: Flow, troubles: Sequence[Trouble], answer: Answer, now_ms: int) -> tuple[Line, ...]:
    """Return what does not answer at present: clusters, and brokers of the others; or that all answer, or not known.

    It is what the reader sees now. Whether a task ended because of it is not known.
    """
    found = [
        Line(
            condition=Condition.BAD,
            word="no answer",
            text=f"Cluster {one.cluster} does not answer since {moment(one.since_ms)}.",
        )
        for one in troubles
    ]
    silent = {one.cluster for one in troubles}
    sides = () if answer.got is None or is_past(answer, now_ms) else (answer.got.source, answer.got.target)
    for story in (one for one in sides if one.alias not in silent):
        if story.why:
            text = story.why if story.alias in story.why else f"Cluster {story.alias}: {story.why}"
            found.append(Line(condition=Condition.BAD, word="no answer", text=text))
        elif story.not_asked:
            text = f"Whether the brokers of {story.alias} answer now is not known: {story.not_asked}"
            found.append(Line(condition=Condition.UNKNOWN, word="not known", text=text))
        else:
            found += _silent_brokers(story, f" of cluster {story.alias}, asked at {moment(story.asked_ms)}")
    if found:
        return tuple(found)
    if not sides or any(one.facts is None for one in sides):
        why = f": {answer.error}" if answer.error else " yet."
        text = f"Whether the brokers of {flow.source} and {flow.target} answer now is not known{why}"
        return (Line(condition=Condition.UNKNOWN, word="not known", text=text),)
    asked = moment(min(one.asked_ms for one in sides))
    text = f"All brokers of {flow.source} and {flow.target} answer, asked at {asked}."
    return (Line(condition=Condition.GOOD, word="answers", text=text),)
