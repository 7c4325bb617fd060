"""Pruned receipts: neither side has their records any more, and the ledger has deleted their runs (ADR 26).

```
["pruned", lane, target topic, partition]   up to where; a fifth part, `since`, where a run went back on the partition
```

That record comes first. From then on no reader uses the receipts that it prunes, whether they are still in the ledger
or not. The tombstones follow in later runs, a limited number in each: `done` is the source offset up to which they are
written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ferry.codec.form import F, Form
from ferry.codec.kinds import typed
from ferry.ledger.block_index import Block, Links
from ferry.ledger.codec import LEDGER_VERSION, Json, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import ReceiptChain
from ferry.ledger.reading import read_as
from ferry.model import Gap, Range, Record, TopicPartition

PRUNED = "pruned"


class Copy(NamedTuple):
    """Receipts of a target partition between two times that a run went back: within it offsets ascend on both sides."""

    lane: str
    target: TopicPartition
    since: int

    @classmethod
    def of(cls, chain: ReceiptChain) -> Copy:
        """Return the copy that a chain belongs to; a topic that got its id in between has two chains in one copy."""
        return cls(lane=chain.lane, target=chain.target, since=chain.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Receipts of `copy` that are pruned.

    They have the source offsets `[start, end)` and the target offsets `[target_start, target_next)`. Those that end at
    `done` or before have their tombstones. The log starts are those that were seen by the run that moved `end` last.
    """

    copy: Copy
    source: TopicPartition
    start: int
    end: int
    target_start: int
    target_next: int
    done: int
    run: str
    at_ms: int
    source_log_start: int
    target_log_start: int

    def held(self, gaps: Iterable[Gap]) -> Range:
        """Return the source offsets for which the receipts still held, because no later gap took them back."""
        voids = (
            gap.void_from
            for gap in gaps
            if gap.source == self.source and gap.void_from is not None and gap.since >= self.copy.since
        )
        return self.start, max(self.start, min([self.end, *voids]))

    def range(self, gaps: Iterable[Gap], *, backward: bool = False) -> Range:
        """Return the source offsets for which the receipts still held; with `backward`, the target offsets.

        If a gap has taken some of them back, `backward` returns an empty range: target offsets do not ascend past the
        gap.
        """
        start, end = self.held(gaps)
        if not backward:
            return start, end
        return self.target_start, self.target_next if end == self.end else self.target_start


def pruned(view: LedgerView) -> dict[Copy, Pruned]:
    """Return what is pruned, of all lanes."""
    found = {}
    for key, record in view.of_kind(PRUNED):
        if record.value is not None:
            one = read_as(record, partial(parse_pruned, key[1], TopicPartition(key[2], key[3])))
            found[one.copy] = one
    return found


def unswept(view: LedgerView, lane: str) -> list[Pruned]:
    """Return what a lane has pruned whose tombstones are not all written."""
    return [one for one in pruned(view).values() if one.copy.lane == lane and one.done < one.end]


def pruned_record(one: Pruned) -> Record:
    """Make the record that prunes receipts, or that records more of their tombstones as written."""
    lane, target, since = one.copy
    key: list[object] = [PRUNED, lane, target.topic, target.partition]
    if since >= 0:
        key.append(since)
    return Record(key=encode(key), value=encode({"v": LEDGER_VERSION, "kind": PRUNED, **pruned_json(one)}))


PRUNED_FORM = Form(
    Pruned,
    F("topic", "source.topic"),
    F("partition", "source.partition"),
    F("since", lambda one: one.copy.since, typed(int, least=-1)),
    F("start", says="first source offset that was given up"),
    F("end", says="first source offset after it"),
    F("target_start"),
    F("target_next", says="first target offset after it"),
    F("done", least=-1, says="up to which source offset the receipts have tombstones; -1: none yet"),
    F("run", says="the run that pruned the last of it, at these log starts"),
    F("at_ms"),
    F("source_log_start"),
    F("target_log_start"),
)

pruned_json = PRUNED_FORM.dump
"""Return the documented JSON object."""


def parse_pruned(lane: str, target: TopicPartition, body: Json) -> Pruned:
    """Return what a record of `pruned_record` holds; lane and target are in the key."""
    return PRUNED_FORM.load(body, copy=Copy(lane=lane, target=target, since=body["since"]))


def pruned_at(view: LedgerView, lane: str, topic: str, partition: int | None, offset: int) -> list[Pruned]:
    """Return what was pruned of a source topic (narrowed to a partition) and contains an offset."""
    return [
        one
        for one in pruned(view).values()
        if one.copy.lane == lane
        and one.source.topic == topic
        and partition in (None, one.source.partition)
        and one.start <= offset < one.end
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStarts:
    """The first offsets of partitions on both sides, and the ids of their topics and of the source cluster."""

    source_cluster_id: str = ""
    source_ids: Mapping[str, str] = field(default_factory=dict)
    target_ids: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[TopicPartition, int] = field(default_factory=dict)
    target: Mapping[TopicPartition, int] = field(default_factory=dict)


def candidates(view: LedgerView, lane: str) -> list[tuple[ReceiptChain, Sequence[Block]]]:
    """Return the chains of a lane with the blocks that could be pruned if their records were gone.

    The last block of a chain is left out, so that each chain keeps some of its map. Blocks that may hold receipts of a
    run that the ledger still has are left out, too, because its report counts them. A block is written after all of its
    receipts.
    """
    known = pruned(view)
    oldest = min((record.offset for key, record in view.of_kind("run") if key[1] == lane), default=0)
    found: list[tuple[ReceiptChain, Sequence[Block]]] = []
    for of, links in view.rolled.chains.items():
        if of.lane != lane:
            continue
        mark = known.get(Copy.of(of))
        upto = -1 if mark is None else mark.end
        blocks = [one for one in links.blocks[:-1] if one.end > upto and 0 <= one.at < oldest]
        if blocks:
            found.append((of, blocks))
    return found


def given_up(
    view: LedgerView, some: Iterable[tuple[ReceiptChain, Sequence[Block]]], starts: LogStarts, *, run: str, at_ms: int
) -> list[Pruned]:
    """Return what of `some` candidates is to be pruned: blocks of which neither side has a record any more.

    The target may keep records for longer than the source: the way back needs their receipts. Nothing is pruned when a
    topic or the source cluster is another than that of the receipts. Its log start then shows nothing about them.
    """
    known = pruned(view)
    found: dict[Copy, Pruned] = {}
    for of, blocks in some:
        source, target = starts.source.get(of.source, -1), starts.target.get(of.target, -1)
        if (of.source_cluster_id, of.source_topic_id, of.target_topic_id) != (
            starts.source_cluster_id,
            starts.source_ids.get(of.source.topic),
            starts.target_ids.get(of.target.topic),
        ):
            continue
        gone = [block for block in blocks if block.end <= source and block.target_next <= target]
        if not gone:
            continue
        copy = Copy.of(of)
        before = found.get(copy) or known.get(copy)
        # Of several chains, as when a transform was added and removed, the one that reaches furthest may come first.
        found[copy] = Pruned(
            copy=copy,
            source=of.source,
            start=gone[0].start if before is None else min(before.start, gone[0].start),
            end=gone[-1].end if before is None else max(before.end, gone[-1].end),
            target_start=gone[0].target_start if before is None else min(before.target_start, gone[0].target_start),
            target_next=gone[-1].target_next if before is None else max(before.target_next, gone[-1].target_next),
            done=-1 if before is None else before.done,
            run=run,
            at_ms=at_ms,
            source_log_start=source,
            target_log_start=target,
        )
    return list(found.values())


def without_pruned(chains: Mapping[ReceiptChain, Links], view: LedgerView) -> dict[ReceiptChain, Links]:
    """Return the chains without the blocks whose tombstones are written."""
    done = {copy: one.done for copy, one in pruned(view).items() if one.done >= 0}
    return {
        of: links if (upto := done.get(Copy.of(of))) is None else _behind(links, upto) for of, links in chains.items()
    }


def _behind(links: Links, upto: int) -> Links:
    return replace(links, blocks=tuple(block for block in links.blocks if block.end > upto))


def ranges(some: Iterable[Pruned], gaps: Collection[Gap], *, backward: bool = False) -> tuple[Range, ...]:
    """Return the offsets that were pruned and that no gap took back before, without empty ranges."""
    found = (one.range(gaps, backward=backward) for one in some)
    return tuple(sorted(one for one in found if one[0] < one[1]))
