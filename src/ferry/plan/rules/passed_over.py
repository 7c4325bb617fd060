"""What a lane's target lacks that is not lag: offsets that were skipped, dead letters, and more. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ferry.ledger.block_index import rest_of
from ferry.ledger.copied import without
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.receipts import last_receipts, receipts
from ferry.ledger.unit_codec import last_units
from ferry.model import Gap, Range, RefusalKind, TopicPartition
from ferry.model.evidence import ADOPTED, DEAD_LETTERS, START, STRANDED, PassedOver, summed
from ferry.model.gap import Resolution
from ferry.plan.rules.left_out import adopted_left, adopted_ranges, dead_letters, is_earlier, is_part_of
from ferry.plan.rules.starts import NOT_KNOWN, recorded_starts
from ferry.words import agreeing, count_of, several

MOST_DECISIONS = 20
"""For how many decisions `passed_sentences` has a sentence of their own."""


def passed_over(
    view: LedgerView, lane: str, ids: Mapping[str, str], never: Collection[str] = ()
) -> tuple[PassedOver, ...]:
    """Return what the lane has skipped, by partition and offset: gaps, and what is before its start.

    What a window has copied since of the offsets before the start is not in it. After that come the partitions of which
    the target lacks single records: what was left out before an adoption, and dead letters. Transforms with the digests
    `never` make none.

    `ids` are the ids of source topics, as far as they are known; the last receipts have others. Gaps of an earlier
    topic of the same name are left out. So are offsets to which a lane went back later: it copies them again. So are
    those that a switch passed because they came from the lane's own target.
    """
    lasts = (*last_receipts(view, lane).values(), *last_units(view, lane).values())
    known = {last.source.topic: last.source_topic_id for last in lasts if last.source_topic_id} | dict(ids)
    found: dict[TopicPartition, list[PassedOver]] = {}
    before = recorded_starts(view, lane, known).passed
    taken = adopted_ranges(view, lane, known)
    later = _copied(view, lane, {*before, *taken}, known)
    for place, (first, end) in before.items():
        left = without([(max(first, 0), end)], later.get(place, ()))
        found[place] = [
            PassedOver(source=place, start=None if first == NOT_KNOWN and not at else start, end=after, why=START)
            for at, (start, after) in enumerate(left)
        ]
    for gap in gaps(view, lane):
        if is_earlier(gap.source.topic, gap.topic_id, known):
            continue
        ones = found.setdefault(gap.source, [])
        if gap.how is Resolution.RESTART:
            ones[:] = _up_to(ones, gap.end)
        if _passes(gap):
            one = PassedOver(
                source=gap.source,
                start=gap.start,
                end=gap.end,
                why=STRANDED if gap.stranded else str(gap.why),
                who=gap.who,
                reason=gap.reason,
            )
            ones.append(one)
    counted = sorted((*adopted_left(taken, later), *dead_letters(view, lane, known, never)), key=lambda one: one.source)
    return (*(one for _, ones in sorted(found.items()) for one in _apart(ones)), *counted)


def _copied(
    view: LedgerView, lane: str, places: Collection[TopicPartition], ids: Mapping[str, str]
) -> dict[TopicPartition, list[Range]]:
    """Return what was copied of partitions: a window may have copied what is before a lane's start.

    It is copied into the live lane, or by a lane that appends to the same topics.
    """
    found: dict[TopicPartition, list[Range]] = {place: [] for place in places}

    def counts(by: str, place: TopicPartition, topic_id: str) -> bool:
        return is_part_of(lane, by) and place in found and not is_earlier(place.topic, topic_id, ids)

    for of, links in view.rolled.chains.items():
        if counts(of.lane, of.source, of.source_topic_id):
            found[of.source] += ((block.start, block.end) for block in links.blocks)
            found[of.source] += ((row.start, row.end) for row in rest_of(of, links))
    for one in receipts(view) if found else ():
        if counts(one.lane, one.source, one.source_topic_id):
            found[one.source].append((one.start, one.end))
    return found


def _passes(gap: Gap) -> bool:
    """Return whether a gap holds offsets that the lane never copies.

    A lane that restarts skips only what retention had deleted: otherwise it goes back, or to another log. A gap
    of a switch is not part of a run, so it has no generation; it counts where its records were stranded.
    """
    if gap.end <= gap.start:
        return False
    if gap.how is Resolution.RESTART:
        return gap.why is RefusalKind.RETENTION_PASSED
    return gap.stranded or not (gap.why is RefusalKind.STUCK and gap.generation < 0 and gap.who)


def _up_to(ones: Sequence[PassedOver], end: int) -> list[PassedOver]:
    """Return the parts of what was skipped before an offset."""
    kept = (replace(one, end=min(one.end, end)) for one in ones)
    return [one for one in kept if one.end > (0 if one.start is None else one.start)]


def _apart(ones: Sequence[PassedOver]) -> list[PassedOver]:
    """Return the ranges in order, without the offsets that one before has already."""
    found: list[PassedOver] = []
    reached = 0
    for one in sorted(ones, key=lambda one: (-1 if one.start is None else one.start, one.end)):
        if one.end > reached:
            start = None if one.start is None else max(one.start, reached)
            found.append(replace(one, start=start))
            reached = one.end
    return found


def passed_total(passed: Collection[PassedOver]) -> int | None:
    """Return how many offsets were skipped, or records are missing; None where the number of one is not known."""
    return summed([one.offsets for one in passed])


def passed_clause(passed: Collection[PassedOver]) -> str:
    """Say in short how much was skipped, and what else the target lacks; empty if there is nothing."""
    found = []
    if ranges := [one for one in passed if not one.is_counted]:
        found.append(_counted(ranges, "offsets were", "offset was", "skipped on purpose"))
    if letters := [one for one in passed if one.why == DEAD_LETTERS]:
        found.append(_counted(letters, "records", "record", "became dead letters"))
    if adopted := [one for one in passed if one.why == ADOPTED]:
        found.append(f"how many records were left out before the adoption is not known ({_where(adopted)})")
    return "; ".join(found)


def _counted(passed: Collection[PassedOver], many: str, one: str, what: str) -> str:
    """Say how much `what` is true of, and where; `many` and `one` are the words after a number."""
    count = passed_total(passed)
    said = f"how many {many} {what} is not known" if count is None else f"{agreeing(count, one, many)} {what}"
    return f"{said} ({_where(passed)})"


def _where(passed: Collection[PassedOver]) -> str:
    return several(sorted({one.where for one in passed}))


def passed_sentences(passed: Collection[PassedOver], target: str) -> tuple[str, ...]:
    """Say what was skipped, and why and by whom it was decided, a sentence for each decision.

    From the decision after MOST_DECISIONS on they are counted in one sentence. Dead letters, and what was left out
    before an adoption, have a sentence each.
    """
    every: dict[tuple[str, str, str], list[PassedOver]] = {}
    for one in passed:
        if not one.is_counted:
            every.setdefault((one.why, one.who, one.reason), []).append(one)
    found = [_sentence(ones, *key, target) for key, ones in islice(every.items(), MOST_DECISIONS)]
    rest = list(islice(every.values(), MOST_DECISIONS, None))
    if rest:
        count = passed_total([one for ones in rest for one in ones])
        offsets = "an unknown number of offsets" if count is None else count_of(count, "offset")
        found.append(
            f"not copied to {target}, by {count_of(len(rest), 'more decision')}: {offsets}; rpo.passed_over in the "
            "JSON of a report has all of them"
        )
    return (*found, *_of_records(passed, target))


def _of_records(passed: Collection[PassedOver], target: str) -> Iterator[str]:
    """Say which single records the target lacks, or may lack, and why."""
    known = [one for one in passed if one.why == DEAD_LETTERS and one.records is not None]
    if known:
        count = count_of(passed_total(known) or 0, "record")
        yield f"not copied to {target}, but to the topic of dead letters: {count} of {_where(known)}"
    if unknown := [one for one in passed if one.why == DEAD_LETTERS and one.records is None]:
        yield (
            f"how many records of {_where(unknown)} are dead letters, and not copied to {target}, is not known: the "
            "ledger no longer has all of their receipts one by one"
        )
    if adopted := [one for one in passed if one.why == ADOPTED]:
        yield (
            f"how many records of {_where(adopted)} from before the adoption are not on {target} is not known: the "
            "replicator of then did not record what it left out"
        )


def _sentence(ones: Sequence[PassedOver], why: str, who: str, reason: str, target: str) -> str:
    places = sorted({one.where for one in ones})
    where = f"{count_of(len(places), 'partition')} ({several(places)})"
    count = passed_total(ones)
    if count is None:
        return f"how many offsets before the start of {where} were not copied to {target} is not known"
    many = f"{count_of(count, 'offset')} of {where}"
    if why == START:
        return f"not copied to {target}, because before the start of the flow: {many}"
    by = f"{who or 'not known by whom'}: {reason or 'no reason is recorded'}"
    return f"not copied to {target}, skipped on purpose: {many}, {why}, by {by}"
