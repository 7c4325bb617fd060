"""Refusals made of codes and facts. Pure.

The sentence of a refusal is what is wrong, then the remedy. Reports, ledger and JSON have code, facts and sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.messages.catalogue import ENTRIES, said, sentence
from ferry.model import Refusal, RefusalKind, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.model.sentence import Fact, Sentence
from ferry.words import to_the_second


def refused(
    code: str, topic: str, partition: int | None = None, *, kind: RefusalKind | None = None, **facts: Fact
) -> Refusal:
    """Return a refusal of ENTRIES, with the facts that its sentence has places for.

    `kind` is needed if the entry has none.

    The sentence also has `topic`, `partition`, and both as `source`. Raises KeyError for an unknown code or a missing
    fact, ValueError for a missing kind.
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


def refused_as(why: object, topic: str, partition: int | None = None, *, kind: RefusalKind) -> Refusal:
    """Return a refusal whose sentence was made elsewhere, as for an error: with its code and facts, or with `said`."""
    made = said(why)
    placed = _placed(topic, partition, {})
    return Refusal(
        topic=topic,
        partition=partition,
        kind=kind,
        message=str(made),
        code=made.code,
        facts=tuple((name, value) for name, value in made.facts if placed.get(name) != value),
    )


def words_of(refusal: Refusal) -> str:
    """Return the sentence of a refusal, for an error or a longer text: with its code, its facts and its place.

    It is a plain text if the refusal has no code.
    """
    if not refusal.code:
        return refusal.message
    placed = _placed(refusal.topic, refusal.partition, dict(refusal.facts))
    return Sentence(refusal.message, refusal.code, tuple(sorted(placed.items())))


def passed(code: str, refusal: Refusal, **facts: Fact) -> Sentence:
    """Return the note in place of a refusal that a guard lets pass."""
    key = f"ferry.guard.{refusal.kind.replace('-', '.')}"
    return sentence(code, what=what_of(refusal), of=refusal.code, key=key, **facts)


def _placed(topic: str, partition: int | None, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return the facts with those that each refusal has."""
    place: dict[str, Fact] = {} if partition is None else {"partition": partition, "source": f"{topic}-{partition}"}
    return {"topic": topic, **place, **facts}


def what_of(refusal: Refusal) -> str:
    """Return what is wrong, without the remedy. For a code of an earlier Ferry, the text before the first colon."""
    entry = ENTRIES.get(refusal.code)
    if entry is None:
        return refusal.message.partition(": ")[0]
    return entry.what_is(_placed(refusal.topic, refusal.partition, dict(refusal.facts)))


def open_facts(where: str, place: TopicPartition, transaction: OpenTransaction) -> dict[str, Any]:
    """Return the facts of the codes `foreign.open`; `where` is the name of the partition in the sentence."""
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
    """Return whose transaction is open on `place`, and how to end it; `where` is its name in the sentence."""
    return sentence("foreign.open.dealt", **open_facts(where, place, transaction))
