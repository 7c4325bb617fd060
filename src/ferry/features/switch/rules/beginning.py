"""Where a flow begins that leads against a switch: behind what came from the cluster that it goes to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ferry.ledger.codec import LEDGER_VERSION, accounted_records, encode, gap_record
from ferry.ledger.ledger import LedgerView, skips
from ferry.ledger.receipts import last_receipts
from ferry.model import Gap, Receipt, Record, RefusalKind, TopicPartition
from ferry.plan.rules.facts import by_topic
from ferry.plan.rules.starts import first_run, recorded_starts, start_record


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
) -> tuple[list[Record], list[Gap]]:
    """What lets a lane go on at the `cuts` (source offsets), and the gaps that stand for what it passes over.

    A lane that never had a plan gets its starts recorded, whatever the configuration says of it: what has no entry then
    begins at its beginning. A later one passes from where it stands to the cut, as
    somebody may do by hand (ADR 18): what lies between came from the cluster that the flow goes to, or was left behind
    there on purpose. A lane that stands at its cut, or beyond, is left. `ids` are the source topics' ids.
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
        if cut <= at:
            continue
        found.append(
            Gap(
                source=place,
                start=at,
                end=cut,
                why=RefusalKind.STUCK,
                run=switch,
                at_ms=now_ms,
                who=who,
                reason=reason,
                since=last.since,
                topic_id=ids.get(place.topic, ""),
            )
        )
    records = [gap_record(lane, gap) for gap in found]
    if given or (cuts and not lasts):
        records += start_offsets(view, lane, given, ids, now_ms)
    return records, found


def stands_at(view: LedgerView, lane: str, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
    """Where a lane goes on, by source partition: after its last receipt and what it was told to pass by, or where it
    was told to begin. `ids` are the source topics' ids, as far as they are known."""
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
    view: LedgerView, lane: str, given: Mapping[TopicPartition, int], ids: Mapping[str, str], now_ms: int
) -> list[Record]:
    """Records that let partitions without a receipt begin at these offsets, beside what is recorded already."""
    known = recorded_starts(view, lane, ids)
    offsets, pending = by_topic({**known.offsets, **given}), by_topic(known.pending)
    records = []
    for topic in sorted({place.topic for place in given}):
        left = {number: at for number, at in pending.get(topic, {}).items() if number not in offsets[topic]}
        records.append(start_record(lane, topic, offsets[topic], left, ids.get(topic, "")))
    if first_run(view, lane):
        records.append(Record(key=encode(["began", lane]), value=encode({"v": LEDGER_VERSION, "at_ms": now_ms})))
    return records


def latest_beginnings(
    view: LedgerView,
    lane: str,
    lives: Mapping[TopicPartition, int],
    others: Collection[TopicPartition],
    ids: Mapping[str, str],
    now_ms: int,
) -> list[Record]:
    """Records that let a lane that is to begin at latest begin at the switch, not where its first run finds the ends.

    `lives` are where producers go on, with the ends before they came; the `others` begin at the end that they have now.
    What is in neither begins at its beginning. `ids` are the source topics' ids. None where the lane has had a plan.
    """
    if not first_run(view, lane):
        return []
    pending = by_topic(dict.fromkeys(others, now_ms))
    return [
        *(start_record(lane, topic, {}, times, ids.get(topic, "")) for topic, times in sorted(pending.items())),
        *start_offsets(view, lane, {place: end for place, end in lives.items() if end > 0}, ids, now_ms),
    ]


def own_ends(lane: str, ends: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> list[Record]:
    """That what the targets hold up to their ends is known: clients of that cluster wrote it while it was the one."""
    return accounted_records(lane, ends, ids)
