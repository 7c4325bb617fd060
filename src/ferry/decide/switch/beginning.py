"""Where a flow begins that leads against a switch: behind what came from the cluster that it goes to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.decide.ledger.codec import LEDGER_VERSION, accounted_records, encode, gap_record
from ferry.decide.ledger.ledger import LedgerView, skips
from ferry.decide.ledger.receipts import last_receipts
from ferry.decide.plan.starts import first_run, recorded_starts
from ferry.model import Gap, Record, RefusalKind, TopicPartition


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
    starts = recorded_starts(view, lane).offsets
    found: list[Gap] = []
    given: dict[TopicPartition, int] = {}
    for place, cut in sorted(cuts.items()):
        last = lasts.get(place)
        if last is None:
            if cut > max([starts.get(place, 0), *(gap.end for gap in passed.get(place, ()))]):
                given[place] = cut
            continue
        at = last.end
        for gap in passed.get(place, ()):
            if gap.start == at and gap.since == last.since:
                at = gap.end
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
        records += start_offsets(view, lane, given, now_ms)
    return records, found


def start_offsets(view: LedgerView, lane: str, given: Mapping[TopicPartition, int], now_ms: int) -> list[Record]:
    """Records that let partitions without a receipt begin at these offsets, beside what is recorded already."""
    known = recorded_starts(view, lane)
    topics: dict[str, dict[int, int]] = {}
    for place, offset in {**known.offsets, **given}.items():
        if place.topic in {one.topic for one in given}:
            topics.setdefault(place.topic, {})[place.partition] = offset
    records = []
    for topic, offsets in sorted(topics.items()):
        body: dict[str, object] = {"v": LEDGER_VERSION, "offsets": sorted(offsets.items())}
        pending = {place.partition: at for place, at in known.pending.items() if place.topic == topic}
        left = sorted((number, at) for number, at in pending.items() if number not in offsets)
        if left:
            body["pending"] = left
        records.append(Record(key=encode(["start", lane, topic]), value=encode(body)))
    if first_run(view, lane):
        records.append(Record(key=encode(["began", lane]), value=encode({"v": LEDGER_VERSION, "at_ms": now_ms})))
    return records


def latest_beginnings(
    view: LedgerView, lane: str, lives: Mapping[TopicPartition, int], others: Collection[TopicPartition], now_ms: int
) -> list[Record]:
    """Records that let a lane that is to begin at latest begin at the switch, not where its first run finds the ends.

    `lives` are where producers go on, with the ends before they came; the `others` begin at the end that they have now.
    What is in neither begins at its beginning. None where the lane has had a plan.
    """
    if not first_run(view, lane):
        return []
    pending: dict[str, list[int]] = {}
    for place in others:
        pending.setdefault(place.topic, []).append(place.partition)
    return [
        *(
            Record(
                key=encode(["start", lane, topic]),
                value=encode(
                    {"v": LEDGER_VERSION, "offsets": [], "pending": [(number, now_ms) for number in sorted(numbers)]}
                ),
            )
            for topic, numbers in sorted(pending.items())
        ),
        *start_offsets(view, lane, {place: end for place, end in lives.items() if end > 0}, now_ms),
    ]


def own_ends(lane: str, ends: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> list[Record]:
    """That what the targets hold up to their ends is known: clients of that cluster wrote it while it was the one."""
    return accounted_records(lane, ends, ids)
