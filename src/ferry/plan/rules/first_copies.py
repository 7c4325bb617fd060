"""A note before first copies of compacted topics that may take longer than the source keeps tombstones."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.messages.catalogue import sentence
from ferry.model import Sentence, Slice
from ferry.plan.rules.candidates import Candidate
from ferry.plan.rules.facts import SourceFacts
from ferry.plan.rules.planning_rules import Rules
from ferry.words import several


def slow_notes(
    rules: Rules, source: SourceFacts, found: Iterable[Candidate], slices: Iterable[Slice]
) -> list[Sentence]:
    """Return a note on topics whose first copy may take longer than `delete.retention.ms`.

    That is so if it does not end in this run, or if this run may last as long. A plan does not know how many runs it
    takes and when they come; `ferry.plan.rules.tombstones` would then refuse the topics.
    """
    ends = {piece.source: piece.end for piece in slices}
    short: dict[str, int] = {}
    for one in found:
        keeps_ms = source.topics[one.source.topic].delete_retention_ms
        if not one.first or one.offsets == 0 or keeps_ms is None:
            continue
        if ends.get(one.source, -1) < one.end or keeps_ms < rules.max_seconds * 1000:
            short[one.source.topic] = keeps_ms
    if not short:
        return []
    shortest = min(short, key=short.__getitem__)
    topics = several(sorted(short))
    return [sentence("held.first-copy", topics=topics, shortest=shortest, shortest_ms=short[shortest])]
