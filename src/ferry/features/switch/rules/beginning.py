"""The offsets at which a flow opposite to a switch begins: after what was copied from its own target. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ferry.ledger.codec import accounted_records, gap_record
from ferry.ledger.ledger import LedgerView, skips
from ferry.ledger.receipts import last_receipts
from ferry.model import Gap, Range, Receipt, Record, RefusalKind, TopicPartition
from ferry.plan.rules.facts import by_topic
from ferry.plan.rules.starts import NOT_KNOWN, began_record, first_run, recorded_starts, start_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Up to where a cluster was searched for records of its own clients, and the ids that its topics had then.

    An id that is empty or missing is not known.
    """

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)

    def end(self, place: TopicPartition, now: int, topic_id: str) -> int:
        """Return up to where a partition was searched that ends at `now`; 0 if its topic was created again since."""
        then = self.ids.get(place.topic, "")
        return 0 if then and topic_id and then != topic_id else min(now, self.ends.get(place, now))


def beginnings(
    view: LedgerView,
    lane: str,
    cuts: Mapping[TopicPartition, int],
    *,
    switch: str,
    who: str,
    reason: str,
    ids: Mapping[str, str],
    now_ms: int,
    stranded: Mapping[TopicPartition, Range] = MappingProxyType({}),
) -> tuple[list[Record], list[Gap]]:
    """Return the records that let a lane continue at the `cuts` (source offsets), and the gaps for what it skips.

    A partition without a receipt gets its cut as its start offset. A lane that never had a plan is marked as begun,
    even if no cut is above 0. That wins over the configuration: a partition without an entry then begins at its
    beginning. A partition with a receipt passes from its position to the cut, as an operator can do by hand (ADR 18).
    The offsets between came from the flow's own target, or are `stranded`: they were never copied, and are left out on
    purpose. These have a gap of their own. A partition whose position is at its cut or after it does not change. `ids`
    are the ids of the source topics.
    """
    lasts = {last.source: last for last in last_receipts(view, lane).values()}
    passed = skips(view, lane)
    starts = recorded_starts(view, lane, ids).offsets
    found: list[Gap] = []
    given: dict[TopicPartition, int] = {}
    for place, cut in sorted(cuts.items()):
        last = lasts.get(place)
        if last is None:
            if cut > max([starts.get(place, 0), *(gap.end for gap in passed.get(place, ()))]):
                given[place] = cut
            continue
        at = _passed_to(last, passed.get(place, ()))
        found += (
            Gap(
                source=place,
                start=start,
                end=end,
                why=RefusalKind.STUCK,
                run=switch,
                at_ms=now_ms,
                who=who,
                reason=reason,
                since=last.since,
                topic_id=ids.get(place.topic, ""),
                stranded=left,
            )
            for start, end, left in _split(at, cut, stranded.get(place))
        )
    records = [gap_record(lane, gap) for gap in found]
    if given or (cuts and not lasts):
        left_out = {place: stranded[place] for place in given if place in stranded}
        records += start_offsets(view, lane, given, ids, now_ms, left_out)
    return records, found


def _split(start: int, end: int, stranded: Range | None) -> list[tuple[int, int, bool]]:
    """Return the parts of offsets `[start, end)`, and whether each is stranded; none if the end is not after it."""
    first, after = (end, end) if stranded is None else stranded
    first, after = max(start, min(first, end)), max(start, min(after, end))
    parts = [(start, first, False), (first, after, True), (after, end, False)]
    return [part for part in parts if part[0] < part[1]]


def stands_at(view: LedgerView, lane: str, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
    """Return the next offset of each source partition in a lane.

    It is the end of the last receipt, or of the gaps that follow it. Without a receipt it is the recorded start offset,
    or the end of a gap. `ids` are the ids of the source topics, as far as they are known.
    """
    passed = skips(view, lane)
    found = dict(recorded_starts(view, lane, ids).offsets)
    for place, gaps in passed.items():
        found[place] = max([found.get(place, 0), *(gap.end for gap in gaps)])
    for last in last_receipts(view, lane).values():
        found[last.source] = _passed_to(last, passed.get(last.source, ()))
    return found


def _passed_to(last: Receipt, passed: Iterable[Gap]) -> int:
    at = last.end
    for gap in passed:
        if gap.start == at and gap.since == last.since:
            at = gap.end
    return at


def start_offsets(
    view: LedgerView,
    lane: str,
    given: Mapping[TopicPartition, int],
    ids: Mapping[str, str],
    now_ms: int,
    left_out: Mapping[TopicPartition, Range] = MappingProxyType({}),
) -> list[Record]:
    """Make the records with which partitions without a receipt begin at these offsets.

    They keep the starts recorded before. `left_out` are offsets before them that were never copied.
    """
    known = recorded_starts(view, lane, ids)
    offsets, pending = by_topic({**known.offsets, **given}), by_topic(known.pending)
    more = {place: _united(known.passed.get(place), one) for place, one in left_out.items()}
    passed = by_topic({**known.passed, **more})  # other offsets before a cut came from the flow's own target
    records = []
    for topic in sorted({place.topic for place in given}):
        left = {number: at for number, at in pending.get(topic, {}).items() if number not in offsets[topic]}
        records.append(start_record(lane, topic, offsets[topic], left, ids.get(topic, ""), passed.get(topic, {})))
    if first_run(view, lane):
        records.append(began_record(lane, now_ms))
    return records


def _united(known: Range | None, more: Range) -> Range:
    """Return what two ranges hold; where there is something between them, it is not known from where on."""
    if known is None or known == more:
        return more
    apart = NOT_KNOWN in known or known[1] < more[0] or more[1] < known[0]
    return NOT_KNOWN if apart else min(known[0], more[0]), max(known[1], more[1])


def passed_before(
    lives: Mapping[TopicPartition, int],
    begins: Mapping[TopicPartition, int],
    cuts: Collection[TopicPartition],
    stranded: Mapping[TopicPartition, Range],
) -> dict[TopicPartition, Range]:
    """Return what a lane never copies that begins at the ends of `lives`, with the log starts in `begins`.

    Where a log begins that did not answer is NOT_KNOWN. The records of partitions in `cuts` came from the flow's own
    target, but for those that were `stranded`.
    """
    found = {place: one for place, one in stranded.items() if place in lives and place in cuts}
    for place, end in lives.items():
        begin = begins.get(place, NOT_KNOWN)
        if place not in cuts and begin < end and end > 0:
            found[place] = begin, end
    return found


def latest_beginnings(
    view: LedgerView,
    lane: str,
    lives: Mapping[TopicPartition, int],
    others: Collection[TopicPartition],
    ids: Mapping[str, str],
    now_ms: int,
    passed: Mapping[TopicPartition, Range] = MappingProxyType({}),
) -> list[Record]:
    """Make the records with which a lane with start `latest` begins at the switch.

    Without them it would begin at the ends that its first run finds. `lives` are the partitions that producers continue
    in, with their ends before the producers came. The `others` begin at the end that they have now. A partition in
    neither begins at its beginning. `passed` is what the lane never copies of `lives` (`passed_before`). `ids` are the
    ids of the source topics. If the lane has had a plan, there are no records.
    """
    if not first_run(view, lane):
        return []
    pending = by_topic(dict.fromkeys(others, now_ms))
    return [
        *(start_record(lane, topic, {}, times, ids.get(topic, ""), {}) for topic, times in sorted(pending.items())),
        *start_offsets(view, lane, {place: end for place, end in lives.items() if end > 0}, ids, now_ms, passed),
    ]


def own_ends(lane: str, ends: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> list[Record]:
    """Make the records that account for the target partitions up to their ends.

    That cluster's own clients wrote them.
    """
    return accounted_records(lane, ends, ids)
