"""What a lane adopts from another replicator: for each partition where it continues, or why it does not. Pure.

A partition is adopted if the predecessor's position, the source's log and the end of the copy fit together. For all
others nothing changes, so that the next plan's guards refuse what is not explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ferry.features.migrate.rules.seam import NOT_LOOKED_AT, Seam, SeamState
from ferry.messages.catalogue import sentence
from ferry.model import Adoption, OpenedRun, Predecessor, TopicPartition
from ferry.plan.rules.facts import Facts, LaneFacts, SourceTopic, TargetTopic
from ferry.plan.rules.guards import (
    cluster_sentence,
    leaderless_refusal,
    source_trouble,
)
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.topics import owned
from ferry.words import count_of, several

MOST_PAIRS = 1 << 16
"""How many pairs the ledger keeps of a partition.

By default MirrorMaker 2 writes one for 100 records that it copies.
"""

MIRROR_MAKERS = 64
"""How many pairs of a partition MirrorMaker 2 holds in memory to translate by."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a predecessor left: the next source offset and known pairs, by source partition.

    `where` is the name of the place that it was read from; `what` is the predecessor's name.
    """

    by: Predecessor
    where: str
    next_offsets: Mapping[TopicPartition, int]
    pairs: Mapping[TopicPartition, tuple[Pair, ...]] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The predecessor's name, such as `MirrorMaker 2`."""
        return f"MirrorMaker {self.by.value[-1]}"


class Verdict(StrEnum):
    """What happens to one partition."""

    ADOPT = "adopt"
    UNCHANGED = "unchanged"
    """Nothing changes: the lane is at the position already or after it, or the predecessor has no position."""
    NOTHING = "nothing"
    """The predecessor copied nothing of it, and its copy is empty: the lane begins it as configured."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition: what both sides show, and what happens to it. Offsets of -1 are not known.

    `position` is the next source offset to copy. `lost` are source offsets that retention deleted before they were
    copied. `doubled` are records that will be copied again; None: not known, but at most the offsets from the position
    to the source's end.
    """

    source: TopicPartition
    target: TopicPartition
    verdict: Verdict
    position: int
    log_start: int
    source_end: int
    target_start: int = -1
    target_end: int = -1
    stands: int = 0
    """The lane's position in its ledger: 0 before its first receipt."""
    lost: int = 0
    doubled: int | None = 0
    seam: Seam = NOT_LOOKED_AT
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """What an adoption does, or did."""

    left: Left
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def of(self, verdict: Verdict) -> tuple[Row, ...]:
        """Return the rows of one verdict."""
        return tuple(row for row in self.rows if row.verdict is verdict)


def takeover(
    rules: Rules,
    facts: Facts,
    left: Left,
    begins: Mapping[TopicPartition, int],
    held: Mapping[TopicPartition, int] | None = None,
) -> Takeover:
    """Return all partitions that the flow copies, before the records in the logs are compared.

    `begins` has where target partitions begin, and `held` where open transactions hold them back.
    """
    rows = tuple(
        row
        for name in sorted(facts.source.topics)
        if rules.only is None or name in rules.only
        for row in _rows(rules, facts, facts.source.topics[name], left, begins)
    )
    rows = tuple(_held(row, left, (held or {}).get(row.target)) for row in rows)
    return Takeover(left=left, rows=rows, notes=tuple(_notes(rules, left, rows)))


def judged(found: Takeover, seams: Mapping[TopicPartition, Seam], *, align: bool = False) -> Takeover:
    """Add to the rows what the ends of the copies show.

    With `align` the lane begins after the copy's last record if that is certain, even if the position is another one.
    """
    return replace(
        found,
        rows=tuple(
            _met(row, seams.get(row.source, NOT_LOOKED_AT), found.left, align=align)
            if row.verdict is Verdict.ADOPT
            else row
            for row in found.rows
        ),
    )


def adoptions_of(found: Takeover, facts: Facts, opened: OpenedRun, who: str) -> list[Adoption]:
    """Return the adoptions for the ledger: for each adopted partition, where its predecessor stopped."""
    adopted = []
    for row in found.of(Verdict.ADOPT):
        last = facts.lane.receipts.get(row.target)
        # What the lane itself has written before is in its receipts.
        own = row if last is None else replace(row, target_start=max(row.target_start, last.target_next or 0))
        adopted.append(_adoption(found, facts, opened, who, own, -1 if last is None else last.since))
    return adopted


def _adoption(found: Takeover, facts: Facts, opened: OpenedRun, who: str, row: Row, since: int) -> Adoption:
    return Adoption(
        flow=opened.record.flow,
        lane=opened.record.lane,
        run=opened.record.run,
        generation=opened.generation,
        source=row.source,
        target=row.target,
        start=row.stands,
        end=row.position,
        target_start=row.target_start,
        target_next=row.target_end,
        by=found.left.by,
        where=found.left.where,
        who=who,
        at_ms=facts.now_ms,
        pairs=kept_pairs(found.left.pairs.get(row.source, ()), row),
        source_epoch=row.seam.leader_epoch,
        source_topic_id=facts.source.topics[row.source.topic].topic_id,
        target_topic_id=facts.target.topics[row.target.topic].topic_id,
        source_cluster_id=facts.source.cluster_id,
        target_cluster_id=facts.target.cluster_id,
        since=since,
    )


def kept_pairs(pairs: tuple[Pair, ...], row: Row) -> tuple[Pair, ...]:
    """Return the valid pairs of one partition, ascending.

    All are kept, because a reader after a pair reads on from there. If there are more than MOST_PAIRS, the newest half
    of that number is kept, and a sample of the older ones. The sample has those that MirrorMaker 2 would use.

    The pairs come in the order of writing. If a pair goes back on either side, the pairs before it belong to another
    log or another copy, and are dropped.
    """
    found: list[Pair] = []
    for pair in pairs:
        if found and (pair[0] < found[-1][0] or pair[1] < found[-1][1]):
            found.clear()
        if found and pair[0] == found[-1][0]:
            found.pop()
        found.append(pair)
    inside = [
        pair for pair in found if row.stands <= pair[0] < row.position and row.target_start <= pair[1] < row.target_end
    ]
    if len(inside) <= MOST_PAIRS:
        return tuple(inside)
    dense = MOST_PAIRS // 2
    older = inside[:-dense]
    sample = older[:: -(-len(older) // (dense - MIRROR_MAKERS))]
    return (*sorted({*sample, *mirror_makers(found).intersection(older)}), *inside[-dense:])


def mirror_makers(pairs: Sequence[Pair]) -> frozenset[Pair]:
    """Return the pairs of one partition by which MirrorMaker 2 translates after it has read all, in order of writing.

    The rule is that of `OffsetSyncStore.updateSyncArray` (Kafka 4.3.0). The newest pair is in place 0. The pair in
    place *i* is less than 2^i source offsets before it, and at least 2^(i-2) after another pair in place *i + 1*. So
    the newer pairs are, the more are held. A pair that goes back voids all before it.
    """
    places: list[Pair] = []
    for pair in pairs:
        if not places or pair[0] < places[0][0]:
            places = [pair] * MIRROR_MAKERS
        else:
            _place(places, pair)
    return frozenset(places)


def _place(places: list[Pair], newest: Pair) -> None:
    """Put the newest pair in place 0, and move older ones on, as long as places have a pair that is too old for them.

    The one that moves is the last that was considered and fits its place. So an older pair is held as long as it can.
    """
    before, last = list(places), len(places) - 1
    moving, seen = newest, 0
    places[0] = newest
    for at in range(1, len(places)):
        while True:
            pair = before[seen]
            is_apart = _is_apart(places[at - 1], pair, at - 1)
            fits = is_apart and _is_recent(places[at - 1], pair, at)
            fits = fits and (at == last or _is_apart(pair, places[at + 1], at))
            if fits:
                moving = pair
            is_over = not is_apart or (seen < last and pair == before[seen + 1])
            seen += fits or is_over
            if not is_over or seen >= at:
                break
        if _is_recent(places[at - 1], places[at], at):
            return  # what is in the places after it is unchanged
        places[at] = moving


def _is_recent(newer: Pair, older: Pair, at: int) -> bool:
    """Return whether a pair is new enough for the place `at`, with `newer` in the place before it."""
    return newer[0] - older[0] <= (1 << at) - (1 << (at - 1))


def _is_apart(newer: Pair, older: Pair, at: int) -> bool:
    """Return whether a pair is old enough to be in a later place than `at`, where `newer` is; or is the same."""
    return newer == older or newer[0] - older[0] >= 1 << max(at - 2, 0)


def _rows(
    rules: Rules, facts: Facts, topic: SourceTopic, left: Left, begins: Mapping[TopicPartition, int]
) -> Iterator[Row]:
    target_name = rules.policy.format_remote_topic(rules.flow.source, topic.name)
    for number in sorted({*topic.partitions, *topic.leaderless}):
        source = TopicPartition(topic=topic.name, partition=number)
        yield _row(rules, facts, topic, source, TopicPartition(topic=target_name, partition=number), left, begins)


def _row(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    source: TopicPartition,
    place: TopicPartition,
    left: Left,
    begins: Mapping[TopicPartition, int],
) -> Row:
    part = topic.partitions.get(source.partition)
    target = facts.target.topics.get(place.topic)
    last = facts.lane.receipts.get(place)
    row = Row(
        source=source,
        target=place,
        verdict=Verdict.ADOPT,
        position=left.next_offsets.get(source, -1),
        log_start=-1 if part is None else part.log_start,
        source_end=-1 if part is None else part.log_end,
        target_start=begins.get(place, -1),
        target_end=-1 if target is None else target.ends.get(source.partition, -1),
        stands=0 if last is None else last.end,
    )
    if left.by is Predecessor.MM1 and target is not None and source.partition >= target.partitions:
        # MirrorMaker 1 wrote its records to the partitions that exist, so the copy begins empty.
        note = f"topic {place.topic} has {count_of(target.partitions, 'partition')}: the next run adds this one"
        row = replace(row, target_start=0, target_end=0, why=note)
    if place.topic in facts.target.hidden:
        hidden = sentence("target.hidden", target=place.topic, cluster=rules.flow.target)
        return replace(row, verdict=Verdict.REFUSED, why=hidden)
    if part is not None and row.position < 0 and (last is not None or row.target_end <= max(row.target_start, 0)):
        return replace(row, verdict=Verdict.NOTHING if last is None else Verdict.UNCHANGED)
    why = _left_out(rules, facts.lane, topic, row) or _unreadable(row, left, target) or _moved(facts, topic, row)
    if why is not None:
        return replace(row, verdict=Verdict.REFUSED, why=why)
    if last is not None and row.position < last.end:
        why = f"the lane has copied {source} up to offset {last.end}, {left.what} up to {row.position}"
        return replace(row, verdict=Verdict.UNCHANGED, why=why)
    markers = 0 if last is None or last.adopted else 1
    if last is not None and row.position == last.end and row.target_end <= (last.target_next or 0) + markers:
        return replace(row, verdict=Verdict.UNCHANGED)
    return replace(row, lost=max(0, row.log_start - row.position), doubled=None)


def _held(row: Row, left: Left, stable: int | None) -> Row:
    """Refuse a copy whose last records are undecided, because it is not known yet where it ends."""
    if stable is None or row.verdict is not Verdict.ADOPT:
        return row
    why = (
        f"a transaction that is still open holds back target {row.target} from offset {stable} on: wait until its "
        f"writer's transaction.timeout.ms has passed (exactly-once {left.what}), or end it with kafka-transactions.sh "
        "abort, then adopt again"
    )
    return replace(row, verdict=Verdict.REFUSED, why=why)


def _left_out(rules: Rules, lane: LaneFacts, topic: SourceTopic, row: Row) -> str | None:
    """Return why the lane may not have the partition, or why nothing is known of it now; None if neither is so."""
    if row.source.partition not in topic.partitions:
        return leaderless_refusal(topic, row.source.partition).message
    if rules.merges(topic.name):
        return (
            f"topic {topic.name} is merged with other flows' on the target (ferry.merge.topics), so the end of its "
            "copy is not this flow's: give its partitions in ferry.start"
        )
    transform = rules.transform_of(topic.name)
    if transform is not None and transform.partitions is not None:
        return (
            f"ferry.transform.{transform.name} repartitions {topic.name} differently from its copy, so no position in "
            "the copy shows what is left to copy: give the new copy another name, or exclude the topic from the "
            "adoption"
        )
    owner = lane.claims.get(row.target.topic, rules.lane)
    return None if owner == rules.lane else owned(topic.name, row.target.topic, owner).message


def _unreadable(row: Row, left: Left, target: TargetTopic | None) -> str | None:
    """Return why position and logs do not fit together; None if they do."""
    if row.position < 0:
        return (
            f"target {row.target} holds records, and {left.where} has no position of {row.source}: when {left.what} "
            "did not write them, find out who did; when it did, name the place of its positions"
        )
    if target is None or (row.target.partition >= target.partitions and row.target_end < 0):
        return (
            f"there is no target {row.target}, although {left.where} says that {row.source} was copied up to offset "
            f"{row.position}: correct the replication policy or the alias, else leave the topic out of the adoption"
        )
    if row.target_end < 0 or row.target_start < 0:
        return f"target {row.target} has no leader: bring its brokers back, then adopt again"
    if row.position > row.source_end:
        return (
            f"{left.where} says that {row.source} was copied up to offset {row.position}, but its log ends at "
            f"{row.source_end}: it was truncated, or the topic created again; compare both sides, and leave the topic "
            "out of the adoption"
        )
    return None


def _moved(facts: Facts, topic: SourceTopic, row: Row) -> str | None:
    """Return why what the lane has copied before does not fit what is there now; None if it does."""
    last = facts.lane.receipts.get(row.target)
    if last is None:
        return None
    why = cluster_sentence(facts, last)
    trouble = source_trouble(facts.source, topic, row.source.partition, last, last.end)
    return why or (None if trouble is None else trouble.refusal.message)


def _met(row: Row, found: Seam, left: Left, *, align: bool) -> Row:
    """Judge a row to be adopted by the end of its copy."""
    row = replace(row, seam=found)
    if found.state is SeamState.CLEAN:
        return replace(row, doubled=found.records)
    behind = found.source_next
    if align and behind is not None and behind >= row.stands:
        return replace(
            row,
            position=behind,
            lost=max(0, row.log_start - behind),
            doubled=0,
            why=f"{left.where} has {row.position}, but the copy ends with the record before {behind}",
        )
    if found.state is SeamState.BEHIND:
        return replace(
            row,
            verdict=Verdict.REFUSED,
            doubled=0,
            why=f"the copy {row.target} ends {count_of(found.records, 'record')} before the position of "
            f"{source_position(row)} in {left.where}: the target lacks {'it' if found.records == 1 else 'them'}; "
            + (
                f"--align begins after the copy's last record, at offset {behind}"
                if behind is not None
                else "compare both sides, then give the partition in ferry.start"
            ),
        )
    if found.state is SeamState.AHEAD:
        return replace(
            row,
            doubled=found.records,
            why=f"{left.what} did not commit the position of its last records: at most {found.records} will be copied "
            "twice" + (f"; --align begins after them, at offset {behind}" if behind is not None else ""),
        )
    return replace(row, doubled=0 if row.position >= row.source_end else None)


def source_position(row: Row) -> str:
    """Write a position as `orders-3, 1042`."""
    return f"{row.source}, {row.position}"


def _notes(rules: Rules, left: Left, rows: tuple[Row, ...]) -> Iterator[str]:
    known = {row.source for row in rows}
    adopted = sorted({row.source.topic for row in rows if row.verdict is Verdict.ADOPT})
    changed = [name for name in adopted if rules.transform_of(name) is not None]
    if changed:
        yield (
            f"{several(changed)} is transformed by the file from where the lane continues; what {left.what} copied "
            "stays unchanged"
        )
    foreign = sorted({place.topic for place in left.next_offsets} - {place.topic for place in known})
    if foreign and rules.only is None:
        shown = ", ".join(foreign[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        yield (
            f"{left.where} also has positions of topics that flow {rules.flow} does not copy: {shown}; no replicator "
            "copies them any more"
        )
