"""The state of each partition of a flow on both sides, and what is lost if the source does not come back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ferry.codec.form import F, Form
from ferry.config.flow.parts import Budget
from ferry.features.identical.rules.short import Short, shorter
from ferry.ledger.codec import SOURCE, TARGET
from ferry.ledger.ledger import LedgerView
from ferry.ledger.units import least_dealt, read_ranges
from ferry.model import Era, Plan, Receipt, RefusalKind, TopicPartition
from ferry.plan.rules.lag import age_s
from ferry.plan.rules.starts import recorded_starts
from ferry.words import agreeing, count_of, several

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """One source partition and its copy. A field that is None is not known, or does not exist. Times are in ms.

    `source_end` is the highest end of the source that was observed. `observed_ms` is when; 0: not known. `source_known`
    says by what:

    - `source`: it answered now;
    - `freeze`: it answered when the evidence was frozen;
    - `plan`: a run planned to copy up to there;
    - `receipt`: a run copied up to there;
    - `none`: no end was observed: it is `copied_end`.
    """

    source: TopicPartition
    target: TopicPartition
    copied_end: int
    source_end: int
    source_known: str
    observed_ms: int
    target_end: int | None
    reached_ms: int = 0
    """When the source had no record after `copied_end`, by a time that Ferry measured; 0: not known.

    All that is not copied came after it. Timestamps of records do not show that: producers set them.
    """
    target_copied: int = 0
    """The offset up to which the target holds copied or accounted records; other clients wrote the records after it."""
    has_copy: bool = True
    """Whether a part of it was copied. If not, `copied_end` is where the lane begins."""
    source_id: str = ""
    """The id of the source's topic; empty: the source did not answer, or has no topic ids."""

    @property
    def is_silent(self) -> bool:
        """Whether a part of it was copied, and the copy does not answer."""
        return self.target_end is None and self.copied_end > 0 and self.has_copy


STATE = Form(
    PartitionState,
    *SOURCE,
    *TARGET,
    F("copied_end"),
    F("source_end"),
    F("source_known"),
    F("observed_ms"),
    F("reached_ms", default=0),
    F("target_end"),
    F("target_copied"),
    F("has_copy", default=True, omit=lambda one: one.has_copy),
    F("source_id", default="", omit=lambda one: not one.source_id),
)
"""A partition of the flow, as a row of a step's evidence."""


def parse_standing(row: Json) -> PartitionState:
    """Return the partition of a row that `STATE` made."""
    return STATE.load({"target_copied": row["target_end"] or 0, **row})  # an earlier Ferry recorded only the end


def without_new_topics(
    ends: Mapping[TopicPartition, int], rows: Iterable[Json], now: Mapping[str, str]
) -> dict[TopicPartition, int]:
    """Return the ends of topics that are still those of the rows of the step `stop`.

    `now` are the ids of topics. A topic that was created again shows nothing of what the earlier one got.
    """
    before = {row["topic"]: row["source_id"] for row in rows if row.get("source_id")}
    return {
        place: end
        for place, end in ends.items()
        if now.get(place.topic, "") in ("", before.get(place.topic, now.get(place.topic, "")))
    }


def parse_standings(rows: Iterable[Json]) -> list[PartitionState]:
    """Parse the rows of a step that are about partitions; rows about groups are ignored."""
    return [parse_standing(row) for row in rows if "group" not in row]


def last_seen_ms(found: Collection[PartitionState]) -> int | None:
    """Return when the old cluster was last seen running (ms); None if it answers now, or if that is not known."""
    if any(one.source_known == "source" for one in found):
        return None
    return max((one.observed_ms for one in found if one.observed_ms > 0), default=None)


def copied_ends(
    lasts: Iterable[Receipt],
    accounted: Mapping[TopicPartition, int],
    target_ids: Mapping[str, str],
    target_ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return up to which offset target partitions hold what a flow copied or has accounted for (`accounted`).

    A receipt for a topic that was created again since does not count. No offset is higher than the end of its
    partition.
    """
    found = dict(accounted)
    for last in lasts:
        now = target_ids.get(last.target.topic, "")
        if not (now and last.target_topic_id and now != last.target_topic_id):
            found[last.target] = max(last.target_next or 0, found.get(last.target, 0))
    return {place: min(offset, target_ends.get(place, offset)) for place, offset in found.items()}


def copy_end(last: Receipt, *, end: int | None, stable: int | None, topic_id: str, is_open: bool) -> int | None:
    """Return the offset after the last record that a lane copied to a partition, by its `last` receipt.

    After it are markers, and records of aborted transactions, such as those of a run that lost its source. None: not
    known, because a transaction is open and may still be committed. `is_open`: one of the ledger has a receipt of the
    partition. In the partition, the last stable offset (`stable`) is before the log's `end`.

    `end` counts if the receipt does not have the place. That is so if the topic, of id `topic_id`, was created again,
    or if records are written outside of the receipt's transaction.
    """
    if end is None or stable is None:
        return None
    is_other = bool(last.target_topic_id and topic_id and last.target_topic_id != topic_id)
    if last.target_next is None or last.identical or last.adopted or is_other:
        return end
    return None if is_open or stable < end else min(end, last.target_next)


class Dealt(NamedTuple):
    """A source partition whose records are repartitioned in the topic `copy`.

    All partitions of the copy have its records up to `copied_end`. `at_ms` is when the oldest run of the last receipts
    began; 0: not known. `answers`: all partitions of the copy answer.
    """

    source: TopicPartition
    copy: str
    copied_end: int
    at_ms: int
    answers: bool


def dealt_ends(
    eras: Iterable[Era],
    lasts: Collection[Receipt],
    target_ends: Collection[TopicPartition],
    started_ms: Mapping[int, int],
) -> list[Dealt]:
    """Return, from the last receipts of units, the state of source partitions in repartitioned topics.

    `target_ends` are the target partitions that answer. `started_ms` has when runs began (ms), by generation.
    """
    rules = list(eras)
    copies = {era.source_topic: era.target_topic for era in rules}
    at_ms = {
        topic: min((started_ms.get(last.generation, 0) for last in lasts if last.source.topic == topic), default=0)
        for topic in copies
    }
    silent = {last.source.topic for last in lasts if last.target not in target_ends}
    return [
        Dealt(source, copies[source.topic], end, at_ms[source.topic], source.topic not in silent)
        for source, end in least_dealt(rules, lasts).items()
    ]


def _of_dealt(
    one: Dealt, plan: Plan | None, planned_ms: int, live: Mapping[TopicPartition, int], now_ms: int
) -> PartitionState:
    ends = [(one.copied_end, "receipt", one.at_ms)]
    planned = {} if plan is None else read_ranges(plan.dealt)
    if one.source in planned:
        ends.insert(0, (planned[one.source][1], "plan", planned_ms))
    if one.source in live:
        ends = [(live[one.source], "source", now_ms)]
    end, known, observed = max(ends, key=lambda each: each[0])
    if known != "source" and plan is not None and plan.cut_short:
        observed = 0  # there may have been more already that the run did not take
    # Whether the runs of the receipts took all is not known. A later run without a slice of it shows that they did.
    looked = plan is not None and one.source.topic not in _passed(plan)
    sure = end == one.copied_end and (known == "source" or looked)
    return PartitionState(
        source=one.source,
        target=TopicPartition(one.copy, one.source.partition),
        copied_end=one.copied_end,
        source_end=end,
        source_known=known,
        observed_ms=observed,
        reached_ms=observed if sure else 0,
        target_end=0 if one.answers else None,  # the copy's end does not depend on this partition alone
    )


def recorded_partitions(view: LedgerView, lane: str, plan: Plan | None) -> set[TopicPartition]:
    """Return the source partitions that runs of a lane have seen, whether or not anything of them was copied."""
    starts = recorded_starts(view, lane)
    refused = () if plan is None else plan.refusals
    return {
        *starts.offsets,
        *starts.pending,
        *(TopicPartition(one.topic, one.partition) for one in refused if one.partition is not None),
    }


def without_partitions(plan: Plan | None, named: Collection[str]) -> list[TopicPartition]:
    """Return a partition for each topic that a plan left out, and that is not among the `named`.

    Such a topic may not be described, so its partitions are not known. The first is in place of all: each topic has it.
    """
    if plan is None:
        return []
    refused = (one.topic for one in plan.refusals if one.topic and one.kind is not RefusalKind.TOPICS_NONE)
    return [TopicPartition(topic, 0) for topic in sorted({*plan.paused, *refused} - {*named})]


def reaches_the_ends(plan: Plan, budget: Budget) -> bool:
    """Return whether the slices of a plan reach the ends that its run saw, because no budget cut them short.

    It is False for a plan with repartitioned topics. The plan of an earlier Ferry does not record whether it was cut
    short: then the `budget` of the file must have left it room.
    """
    size, offsets = sum(piece.bytes_estimate for piece in plan.kept), sum(piece.offsets for piece in plan.kept)
    has_room = size < budget.max_bytes and (budget.max_records is None or offsets < budget.max_records)
    return not plan.cut_short and not plan.dealt and has_room


def standings(
    lasts: Iterable[Receipt],
    plan: Plan | None,
    planned_ms: int,
    live: Mapping[TopicPartition, int],
    targets: Mapping[TopicPartition, TopicPartition],
    target_ends: Mapping[TopicPartition, int],
    now_ms: int,
    target_copied: Mapping[TopicPartition, int] | None = None,
    repartitioned: Iterable[Dealt] = (),
    goes_on: Mapping[TopicPartition, int] | None = None,
    *,
    started_ms: Mapping[int, int] | None = None,
    whole: bool = True,
    earlier: Iterable[tuple[Plan, int]] = (),
) -> list[PartitionState]:
    """Return the state of each partition that was copied, was in the last `plan`, or has a copy in `targets`.

    `live` are the ends of the source's partitions. `targets` are the copies of all partitions that are known. Some are
    not `live`: they do not answer, or nothing was copied or planned of them. `target_copied` is what `copied_ends`
    returns. No partition of a copy belongs to a partition in `repartitioned` alone. `goes_on` is the next offset of
    each partition in the lane (`stands_at`): what the lane has skipped before it is not left to copy.

    `started_ms` is when runs began, by generation, and `planned_ms` when the run of the `plan` began. A run reads the
    end of a receipt before it copies, so the end was observed no later than the run began. `whole`: no budget kept the
    plan from reaching the ends. `earlier` are plans of runs before it that reach the ends, each with the start of its
    run.
    """
    onward = goes_on or {}
    receipts = {last.source: last for last in lasts}
    slices = {} if plan is None else {piece.source: piece for piece in plan.kept}
    copies = dict(targets)
    copies |= {source: piece.target for source, piece in slices.items()}
    copies |= {source: last.target for source, last in receipts.items()}
    parted = {one.source: one for one in repartitioned}
    places = (receipts.keys() | slices.keys() | targets.keys()) - parted.keys()
    counted = 0 if parted else len(places)
    looks = [_Look.of(*each, counted) for each in [*([(plan, planned_ms)] if plan and whole else []), *earlier]]
    covered = plan is not None and _covers(plan, counted)
    passed = _passed(plan)
    found = [_of_dealt(one, plan, planned_ms, live, now_ms) for _, one in sorted(parted.items())]
    for source in sorted(places):
        last, piece = receipts.get(source), slices.get(source)
        copied = last.end if last is not None else piece.start if piece is not None else 0
        copied = max(copied, onward.get(source, 0))
        read_ms = 0 if last is None else (started_ms or {}).get(last.generation, 0)
        ends = [(copied, "none" if last is None else "receipt", read_ms)]
        if piece is not None:
            ends.insert(0, (piece.end, "plan", planned_ms))  # if both are equal, the plan's time is the later one
        if source in live:
            ends = [(live[source], "source", now_ms)]
        end, known, observed = max(ends, key=lambda one: one[0])
        looked = known in ("receipt", "none") and piece is None and covered and source.topic not in passed
        if looked:  # the last plan had nothing more of it to copy
            known, observed = "plan" if last is None else known, max(observed, planned_ms)
        reached = max([observed if looked else 0, *(look.reached_ms(source, copied) for look in looks)])
        found.append(
            PartitionState(
                source=source,
                target=copies[source],
                copied_end=copied,
                source_end=end,
                source_known=known,
                observed_ms=observed,
                reached_ms=now_ms if known == "source" and end == copied else reached,
                target_end=target_ends.get(copies[source]),
                target_copied=(target_copied or {}).get(copies[source], 0),
                has_copy=last is not None,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class _Look:
    """What a plan that reaches the ends shows of them: `ends` are those of its slices, `at_ms` its run's start.

    If it `covers` all partitions, the others of topics that it has not `passed` had nothing to copy then.
    """

    ends: Mapping[TopicPartition, int]
    covers: bool
    passed: frozenset[str]
    at_ms: int

    @classmethod
    def of(cls, plan: Plan, at_ms: int, counted: int) -> _Look:
        """Return what the plan shows; `counted` is the number of partitions, 0: not known."""
        ends = {piece.source: piece.end for piece in plan.kept}
        return cls(ends, _covers(plan, counted), _passed(plan), at_ms)

    def reached_ms(self, source: TopicPartition, copied: int) -> int:
        """Return the run's start if the source had no record from the offset `copied` on then; else 0."""
        none = self.covers and source.topic not in self.passed
        return self.at_ms if (self.ends[source] <= copied if source in self.ends else none) else 0


def _covers(plan: Plan, counted: int) -> bool:
    """Return whether a plan says of all partitions what is to be copied of them; `counted` 0: their number is unknown.

    A plan counts what is caught up of repartitioned topics by the partitions of their copies.
    """
    return counted > 0 and len(plan.kept) + plan.caught_up >= counted


def _passed(plan: Plan | None) -> frozenset[str]:
    """Return the source topics of which a plan left something out, paused or refused: it says nothing of their ends."""
    if plan is None:
        return frozenset()
    return frozenset({*plan.paused, *(refusal.topic for refusal in plan.refusals)})


def with_records(
    found: Iterable[PartitionState],
    ends: Mapping[TopicPartition, int],
    short: Mapping[TopicPartition, Short] = MappingProxyType({}),
) -> list[PartitionState]:
    """Return states with what target partitions have of identical offsets, also records without a receipt.

    `ends` are the ends of partitions that hold the lane's records alone. `short` are copies that end before the lane's
    position (`short_copies`): what is missing begins at their ends. An offset is the same at both sides.
    """
    states = []
    for one in found:
        end = max(one.copied_end, ends.get(one.target, 0))
        seen = one if one.source_end >= end else replace(one, source_end=end, source_known="receipt")
        early = short[one.target].end if one.target in short else None
        if early is not None:
            end, seen = early, replace(seen, reached_ms=0)  # when offset `early` was written is not known
        states.append(replace(seen, copied_end=end, target_copied=max(one.target_copied, ends.get(one.target, 0))))
    return states


def short_copies(
    found: Iterable[PartitionState],
    keeps: Callable[[str], bool],
    ends: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[TopicPartition, Short]:
    """Return the copies that end before the lane's position. `keeps`: whether a source topic keeps its offsets.

    `ends` are those of `with_records`. A copy whose end is not known is left out.
    """
    known = {one.target: one for one in found if keeps(one.source.topic) and one.target_end is not None}
    ends_there = {place: max(one.target_end or 0, ends.get(place, 0)) for place, one in known.items()}
    return shorter({place: one.copied_end for place, one in known.items()}, ends_there)


def best_known(before: Iterable[PartitionState], after: Iterable[PartitionState]) -> list[PartitionState]:
    """Combine what is copied `after` with the highest end of the source that was seen before or after.

    If the source returns a lower end now than before, it has lost records itself, and those count, too.
    """
    earlier = {one.source: one for one in before}
    found = []
    for one in after:
        first = earlier.get(one.source)
        better = first is not None and (
            first.source_end > one.source_end or (one.source_known != "source" and first.source_end == one.source_end)
        )
        if first is None or not better:
            found.append(one)
            continue
        caught_up = _seen(first) == "freeze" and first.source_end == one.copied_end
        reached = max(first.reached_ms, one.reached_ms, first.observed_ms if caught_up else 0)
        seen = replace(one, source_end=first.source_end, source_known=_seen(first), observed_ms=first.observed_ms)
        found.append(replace(seen, reached_ms=reached))
    return found


def with_frozen(found: Iterable[PartitionState], before: Iterable[PartitionState]) -> list[PartitionState]:
    """Add the partitions that only the evidence from `before` has, such as those of the last plan."""
    states = {one.source: replace(one, source_known=_seen(one)) for one in before}
    states |= {one.source: one for one in found}
    return [one for _, one in sorted(states.items())]


def _seen(first: PartitionState) -> str:
    """Return how an earlier end is known: more may have come since the source returned it."""
    return "freeze" if first.source_known == "source" else first.source_known


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What the target lacks of a partition. `records` counts the offsets that were seen: that is what is known.

    If `certain`, the source answered, so there are no more. Otherwise records that came since the source was last seen
    may be lost as well, and their number is not known. All that is lost came in the last `seconds`, at most; None: not
    known.
    """

    source: TopicPartition
    start: int
    end: int
    seconds: float | None
    certain: bool

    @property
    def records(self) -> int:
        """Offsets `[start, end)`: an upper bound of the records among what was seen."""
        return max(0, self.end - self.start)


LOSS = Form(Loss, *SOURCE, F("start"), F("end"), F("records", lambda loss: loss.records), F("seconds"), F("certain"))
"""What may be lost of a partition, as a row of the step's evidence."""


def loss_of(found: Collection[PartitionState], ages_ms: Mapping[TopicPartition, int], until_ms: int) -> list[Loss]:
    """Return the loss of each partition. `ages_ms` are the timestamps of the oldest records not copied, if readable.

    Seconds are counted back from `until_ms`: the time of the loss, or of the counting if the former is not known.
    """
    return [
        Loss(
            source=one.source,
            start=one.copied_end,
            end=one.source_end,
            seconds=_seconds(one, ages_ms, until_ms),
            certain=one.source_known == "source",
        )
        for one in found
    ]


def _seconds(one: PartitionState, ages_ms: Mapping[TopicPartition, int], until_ms: int) -> float | None:
    """Return the seconds since the oldest record that is not copied, or else since a time before it came.

    It is None if that is not known, as it is of a record that is stamped later than the time from which they count.
    """
    if one.source_known == "source" and one.source_end <= one.copied_end:
        return 0.0
    return age_s(ages_ms.get(one.source, one.reached_ms or None), until_ms)


def longest(losses: Collection[Loss]) -> float | None:
    """Return the longest of their times; None if one is not known, or if there is no partition."""
    if not losses:
        return None
    times = [one.seconds for one in losses if one.records or not one.certain]
    known = [time for time in times if time is not None]
    return None if len(known) < len(times) else max(known, default=0.0)


def unseen_of(found: Iterable[PartitionState]) -> list[TopicPartition]:
    """Return the partitions of which nothing was copied, and no end was observed."""
    return [one.source for one in found if one.source_known == "none"]


def loss_sentence(
    losses: Collection[Loss], *, lost_ms: int | None = None, unseen: Collection[TopicPartition] = ()
) -> str:
    """Sum the losses up in one sentence, what is not known first.

    `lost_ms` is the time of the loss, if it was given. `unseen` is what `unseen_of` returns.
    """
    unsure = [one for one in losses if not one.certain]
    records, worst = sum(one.records for one in losses), longest(losses)
    there = count_of(len(losses), "partition")
    if not losses:
        return "what is lost is not known: neither the ledger nor the source shows a partition of the flow"
    if not records and not unsure:
        return f"nothing is lost: the copy of {there} reaches the ends that the source reported"
    before = "before the loss" if lost_ms is not None else "before they were counted"
    if not unsure:
        age = "of an age that is not known" if worst is None else f"the oldest came {worst:.1f} s {before} at most"
        return f"{agreeing(records, 'record is', 'records are')} lost, at most: {age}"
    since = "the age of the oldest is not known"
    if worst is not None:
        since = f"all of it came in the {worst:.1f} s {before} at most"
    lost = f"at least {agreeing(records, 'offset is', 'offsets are')} lost, and" if records else "lost is"
    never = (
        f"; nothing was copied of {count_of(len(unseen), 'partition')}, and the ledger has no end of it "
        f"({several(list(map(str, unseen)))}): paused, refused, empty or left to a later run"
        if unseen
        else ""
    )
    silent = agreeing(
        len(unsure),
        f"of {there} does not answer, or ends before where it did",
        f"of {there} do not answer, or end before where they did",
    )
    return (
        f"how many records are lost is not known: {silent}; {lost} whatever came after the source was last "
        f"seen; {since}{never}"
    )


def uncopied_sentence(found: Collection[PartitionState]) -> str:
    """Return how many offsets have no copy yet, as part of a sentence; not known if a source partition did not answer.

    Not all of them need have records: some may be transaction markers.
    """
    if not found:
        return "what is not copied yet is not known: neither the ledger nor the source shows a partition of the flow"
    unsure = sum(one.source_known != "source" for one in found)
    offsets = sum(max(0, one.source_end - one.copied_end) for one in found)
    missing = count_of(offsets, "offset")
    there = count_of(len(found), "partition")
    if not unsure:
        return f"{there}, {missing} not copied yet"
    unknown = "how many offsets are not copied yet is not known" + (f", at least {missing}" if offsets else "")
    return f"{there}, of which {unsure} did not answer: {unknown}"


def came_sentence(counts: Mapping[TopicPartition, int], cluster: str) -> str:
    """Say how many records came to a cluster, as half a sentence.

    It says `at most`, because offsets may be transaction markers.
    """
    count, partitions = count_of(sum(counts.values()), "record"), count_of(len(counts), "partition")
    return f"{count} at most came to {partitions} of {cluster}"
