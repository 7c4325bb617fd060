"""Refusals made of codes and facts. Pure.

The sentence of a refusal is what is the matter, then the remedy. Reports, ledger and JSON have all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.messages.catalogue import ENTRIES, sentence
from ferry.model import Refusal, RefusalKind, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.model.sentence import Fact, Sentence
from ferry.words import to_the_second


def refused(
    code: str, topic: str, partition: int | None = None, *, kind: RefusalKind | None = None, **facts: Fact
) -> Refusal:
    """A refusal of ENTRIES, with the facts that its sentence has places for. `kind` where the entry has none.

    The sentence also knows `topic`, `partition`, and both as `source`. Raises KeyError for a code that is not there or
    a fact that is missing, ValueError for a kind that is.
    """
    entry = ENTRIES[code]
    of = entry.kind or kind
    if of is None:
        raise ValueError(f"code {code} is used for several kinds: name one")
    return Refusal(
        topic=topic,
        partition=partition,
        kind=of,
        message=entry.sentence(_placed(topic, partition, facts)),
        code=code,
        facts=tuple(sorted(facts.items())),
    )


def passed(code: str, refusal: Refusal, **facts: Fact) -> Sentence:
    """The note in place of a refusal that a guard lets pass."""
    key = f"ferry.guard.{refusal.kind.replace('-', '.')}"
    return sentence(code, what=what_of(refusal), of=refusal.code, key=key, **facts)


def _placed(topic: str, partition: int | None, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts with those that each refusal has."""
    place: dict[str, Fact] = {} if partition is None else {"partition": partition, "source": f"{topic}-{partition}"}
    return {"topic": topic, **place, **facts}


def what_of(refusal: Refusal) -> str:
    """What is the matter, without the remedy. Of a refusal that an earlier Ferry recorded, as its sentence divides."""
    entry = ENTRIES.get(refusal.code)
    if entry is None:
        return refusal.message.partition(": ")[0]
    return entry.what_is(_placed(refusal.topic, refusal.partition, dict(refusal.facts)))


def open_facts(where: str, place: TopicPartition, transaction: OpenTransaction) -> dict[str, Any]:
    """The facts of the codes `foreign.open`; `where` is how the partition is called."""
    one, whose = transaction, ""
    if one.producer_id >= 0:
        whose = f" (producer id {one.producer_id}"
        whose += f", transactional id {one.transactional_id}" if one.transactional_id else ""
        whose += f", last record of {to_the_second(one.last_ms)}" if one.last_ms >= 0 else ""
        whose += ")"
    return {
        "where": where,
        "target": place.topic,
        "number": place.partition,
        "start": one.start,
        "whose": whose,
    }


def open_sentence(where: str, place: TopicPartition, transaction: OpenTransaction) -> str:
    """Whose transaction is open on `place`, and how it is ended; `where` is how the partition is called."""
    return sentence("foreign.open.dealt", **open_facts(where, place, transaction))
