"""The steps of a switch as parts of a report, and the report of a switch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.features.evidence.rules.figures import LISTED, NOT_KNOWN, beside_the_loss, deviations_of, goals_of
from ferry.features.switch.rules.old_primary import lacks_clause, lacks_in, lacks_sentences, unchecked
from ferry.features.switch.rules.partition_state import (
    LOSS,
    PartitionState,
    best_known,
    came_sentence,
    last_seen_ms,
    loss_sentence,
    parse_standings,
    unseen_of,
)
from ferry.features.switch.rules.passed_over import PassedBy, by_partition, passed_of, unread_of
from ferry.model import TopicPartition
from ferry.model.evidence import (
    START,
    EvidenceCluster,
    EvidenceKind,
    EvidenceOutcome,
    EvidenceReport,
    Goal,
    GroupMoved,
    Loss,
    PassedOver,
    Sample,
    StepOutcome,
    TimelineStep,
    summed,
)
from ferry.model.switch import Json, Step, SwitchOutcome, SwitchState, Verb, next_step
from ferry.plan.rules.passed_over import passed_sentences
from ferry.words import agreeing, count_of, several, to_the_second

_SAME = frozenset({"exact", "gap", "start"})
"""The words for an offset that leads to exactly the next record. Nothing was read before a `start`."""


def timeline_steps(state: SwitchState) -> tuple[TimelineStep, ...]:
    """Return the steps that are done, in order, and who approved."""
    switch = state.switch
    return tuple(
        TimelineStep(
            name=f"{switch.verb}-{done.step}",
            title=f"{switch.verb.capitalize()}: {done.step}",
            began_ms=done.begun_ms,
            ended_ms=done.done_ms,
            outcome=StepOutcome.DONE,
            detail=done.evidence.sentence,
            approved_by=switch.approved_by,
            approved_ms=switch.approved_ms,
        )
        for done in state.in_order()
    )


FIRST_RECORD_MEANS = "from the same moment as the RTO"
"""From when the seconds count until a consumer had its first record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService:
    """How long clients had no cluster, in seconds; None: not known.

    `means` says from when to when, or why it is not known.
    """

    seconds: float | None
    means: str
    from_start: float | None
    """Seconds from the start of the command."""
    first_record: float | None = None
    """Seconds until a consumer of a group of the new cluster had its first record; None: not known."""
    first_record_means: str = ""
    """From when they count, or why they are not known."""


def out_of_service(state: SwitchState) -> OutOfService:
    """Measure how long clients had no cluster, until the smoke test of the new one, or without it until the redirect.

    For a failover the time begins at the loss, as given with --lost-at. If that is not given, it begins when the source
    was last seen to answer, which is no later. For a planned switch it begins when clients were to stop.
    """
    service, begin = _service(state)
    if Step.SMOKE not in state.done:
        return service
    first, why = state.fact(Step.SMOKE, "first_record_ms"), state.fact(Step.SMOKE, "first_record_why")
    if state.fact(Step.SMOKE, "smoke") is False:
        why = "the smoke test was left out"
    if first is None:
        return replace(service, first_record_means=f"not known: {why or 'it was not measured'}")
    since = state.switch.at_ms if begin is None else begin
    means = "from the start of the command" if begin is None else FIRST_RECORD_MEANS
    return replace(service, first_record=(first - since) / 1000, first_record_means=means)


def _service(state: SwitchState) -> tuple[OutOfService, int | None]:
    """Return how long clients had no cluster, and when that began (ms); None: not known."""
    end = state.done.get(Step.SMOKE)
    if end is None:
        means = f"not known: the {state.switch.verb} is not over"
        return OutOfService(seconds=None, means=means, from_start=None), None
    tried = "until the other cluster was tried out"
    end_ms = state.fact(Step.SMOKE, "tried_ms") or end.done_ms  # an earlier Ferry did not record it
    if state.fact(Step.SMOKE, "smoke") is False:
        end_ms = state.done[Step.REDIRECT].done_ms
        tried = "until clients were sent to the other cluster, which was not tried out"
    from_start = (end_ms - state.switch.at_ms) / 1000
    if state.switch.verb is not Verb.FAILOVER:
        begun = state.done.get(Step.QUIET)
        seconds = None if begun is None else (end_ms - begun.since_ms) / 1000
        means = f"from when clients were to stop {tried}"
        return (
            OutOfService(seconds=seconds, means=means, from_start=from_start),
            None if begun is None else begun.since_ms,
        )
    given, seen = state.switch.options.lost_at_ms, last_seen(state)
    if given is not None:
        means, begin = f"from the loss, {to_the_second(given)} by --lost-at, {tried}", given
    elif seen is not None and seen <= state.switch.at_ms:
        means, begin = f"at most: from when the source was last seen to answer, {to_the_second(seen)}, {tried}", seen
    else:
        means = "not known: when the source was lost was not given (--lost-at), and it answered after the start"
        if seen is None and not answers_in_part(state):
            means = "not known: when the source was lost was not given (--lost-at), and no check saw it before"
        return OutOfService(seconds=None, means=means, from_start=from_start), None
    return OutOfService(seconds=(end_ms - begin) / 1000, means=means, from_start=from_start), begin


def answers_in_part(state: SwitchState) -> bool:
    """Return whether the source answered for at least one partition when the flow was stopped."""
    return any(row["source_known"] == "source" for row in state.rows(Step.STOP))


def last_seen(state: SwitchState) -> int | None:
    """Return when the source was last seen to answer (ms); None if it still answers, or if that is not known."""
    return last_seen_ms(_best_known(state))


def _best_known(state: SwitchState) -> list[PartitionState]:
    return best_known(parse_standings(state.rows(Step.FREEZE)), parse_standings(state.rows(Step.STOP)))


def losses_by_partition(state: SwitchState) -> tuple[Loss, ...]:
    """Return what the new cluster lacks, by partition.

    It is counted when the flow was stopped, or by the step `loss` of a failover. What came to the old cluster after it
    was drained is a part of it. If that cluster did not answer, it is not known. What a failback has found lacking on
    the cluster to which clients go is a part of it, too.
    """
    found = {loss.source: loss for loss in _left_losses(state)}
    for lack in lacks_in(state):
        known = found.get(lack.target)
        end = None if known is None else known.source_end
        found[lack.target] = _with_more(known, lack.target, lack.source, lack.records, end)
    return tuple(found.values())


def _left_losses(state: SwitchState) -> tuple[Loss, ...]:
    """Return what clients lose of what was on the cluster that they leave, by partition."""
    counted = {(row["topic"], row["partition"]): row for row in state.rows(Step.LOSS)}
    losses = [_loss(row, counted.get((row["topic"], row["partition"]))) for row in state.rows(Step.STOP)]
    found = {loss.source: loss for loss in losses}
    copies = {loss.source.topic: loss.target.topic for loss in losses}
    for place, start, end in stayed(state):
        target = TopicPartition(copies.get(place.topic, place.topic), place.partition)
        found[place] = _with_more(found.get(place), place, target, end - start, end)
    for place in found.keys() & unseen(state):
        found[place] = replace(found[place], source_end=None, records=None, seconds=None)
    return tuple(found.values())


def stayed(state: SwitchState) -> list[tuple[TopicPartition, int, int]]:
    """Return what came to the old cluster since the switch saw its ends, as the last step saw it.

    Each has a partition, a start and an end offset.
    """
    rows: Sequence[tuple[str, int, int, int]] = state.fact(Step.REVERSE, "stayed") or ()
    return [(TopicPartition(topic, partition), start, end) for topic, partition, start, end in rows]


def unseen(state: SwitchState) -> frozenset[TopicPartition]:
    """Return the partitions of the old cluster whose ends the last step could not read, or did not."""
    if Step.REVERSE in state.done and state.fact(Step.REVERSE, "stayed") is None:  # the record lacks it
        return frozenset(one.source for one in parse_standings(state.rows(Step.STOP)) if one.source_known == "source")
    rows: Sequence[tuple[str, int]] = state.fact(Step.REVERSE, "unseen") or ()
    return frozenset(TopicPartition(topic, partition) for topic, partition in rows)


def stayed_sentences(state: SwitchState) -> tuple[str, ...]:
    """Say that records came to the old cluster since the switch saw its ends; no run copies them: a deviation."""
    found = stayed(state)
    if not found:
        return ()
    via = state.switch.via
    counts = {place: end - start for place, start, end in found}
    where, are = several(list(map(str, counts))), "is" if sum(counts.values()) == 1 else "are"
    return (f"{came_sentence(counts, via.source)} {since_seen(state)} ({where}), and {are} not on {via.target}",)


def since_seen(state: SwitchState) -> str:
    """Return since when a switch knows nothing of the old cluster but by its last step, as a part of a sentence."""
    return "after it was drained" if Step.DRAIN in state.done else "after its flow was stopped"


def _with_more(
    loss: Loss | None, source: TopicPartition, target: TopicPartition, more: int | None, end: int | None
) -> Loss:
    """Add to a partition's loss as many records of unknown age; `end` is where its source ends then.

    `loss` is None if the partition has none so far, `more` if it is not known.
    """
    known = 0 if loss is None else loss.records
    return Loss(
        source=source,
        target=target,
        position=None if loss is None else loss.position,
        source_end=end,
        records=None if known is None or more is None else known + more,
        bytes=None,
        seconds=None,
    )


def _loss(row: Json, counted: Json | None) -> Loss:
    """Return the loss of a partition.

    If its source did not answer, its numbers are None; `unknown_losses` has what was seen.
    """
    end, copied = row["source_end"], row["copied_end"]
    certain = row["source_known"] == "source" if counted is None else counted["certain"]
    records = max(0, end - copied) if counted is None else counted["records"]
    seconds = counted["seconds"] if counted is not None else None if records else 0.0
    return Loss(
        source=TopicPartition(row["topic"], row["partition"]),
        target=TopicPartition(row["target_topic"], row["target_partition"]),
        position=copied,
        source_end=end if certain else None,
        records=records if certain else None,
        bytes=None,
        seconds=seconds if certain else None,
    )


def unknown_losses(state: SwitchState) -> tuple[str, ...]:
    """Say what was seen of the partitions whose loss is not known; empty if all of them answered."""
    losses = [LOSS.load(row) for row in state.rows(Step.LOSS)]
    certain = all(one.certain for one in losses) if losses else Step.LOSS not in state.done
    lost_ms, never = state.switch.options.lost_at_ms, unseen_of(_best_known(state))
    sentences: tuple[str, ...] = () if certain else (loss_sentence(losses, lost_ms=lost_ms, unseen=never),)
    silent = unseen(state)
    if not silent:
        return sentences
    of = f"{count_of(len(silent), 'partition')} of {state.switch.via.source}"
    where = several(sorted(map(str, silent)))
    return (*sentences, f"what came to {of} {since_seen(state)} is not known ({where})")


def lost_sentence(losses: Sequence[Loss] | None, passed: Collection[PassedOver] | None = ()) -> str:
    """Say what a switch has lost: as a number only if the loss of each partition is known.

    If the target lacks what was `passed` over, it is not a loss of nothing. None: that is not known.
    """
    clause = beside_the_loss(passed)
    if clause and losses and all(loss.records == 0 for loss in losses):
        return f"nothing was left to copy; {clause}"
    return f"{_lost(losses)}; {clause}" if clause else _lost(losses)


def _lost_in(state: SwitchState, passed: Collection[PassedOver] | None) -> str:
    """Say what a switch has lost, of both clusters."""
    lacking, losses = lacks_clause(lacks_in(state), state.switch.via.target), _left_losses(state)
    if not lacking:
        return lost_sentence(losses, passed)
    if not beside_the_loss(passed) and losses and all(loss.records == 0 for loss in losses):
        return lacking  # "0 records were lost" would contradict it
    return f"{lacking}; of what was on {state.switch.via.source}: {lost_sentence(losses, passed)}"


def passed_notes(state: SwitchState) -> tuple[str, ...]:
    """Say what the flow had skipped, or that this is not known; empty before the flow was stopped."""
    if Step.STOP not in state.done:
        return ()
    passed = passed_of(state)
    if passed is None:
        return (f"{NOT_KNOWN}: the record of the step that stopped the flow lacks it",)
    return passed_sentences(passed, state.switch.via.target)


def _lost(losses: Sequence[Loss] | None) -> str:
    if losses is None:
        return "what was lost was not counted"
    if not losses:
        return "what was lost is not known: no partition of the flow was known"
    unknown = sum(loss.records is None for loss in losses)
    if unknown:
        there = count_of(len(losses), "partition")
        return f"how many records were lost is not known: {unknown} of {there} did not answer"
    records = sum(loss.records or 0 for loss in losses)
    return f"{agreeing(records, 'record was', 'records were')} lost" + (", at most" if records else "")


def moved_groups(state: SwitchState) -> tuple[GroupMoved, ...]:
    """Return the groups that were moved, and those that were left."""
    frozen = {row["group"]: row for row in state.rows(Step.FREEZE) if "group" in row}
    copied = {(row["topic"], row["partition"]): row["copied_end"] for row in state.rows(Step.STOP)}
    known, passed = knows_groups(state), passed_of(state)
    ranges = None if passed is None else by_partition(passed)
    return tuple(_group(row, frozen.get(row["group"]), copied, known, ranges) for row in state.rows(Step.GROUPS))


def knows_groups(state: SwitchState) -> bool:
    """Return whether the old cluster returned its groups and offsets.

    A checkpoint does not have what they read since.
    """
    return bool(state.fact(Step.GROUPS, "source_answers"))


def unknown_groups(state: SwitchState) -> tuple[str, ...]:
    """Say that the old cluster did not return its groups, and that there may be more of them; empty if it did."""
    if Step.GROUPS not in state.done or knows_groups(state):
        return ()
    old = state.switch.via.source
    twice = f"what groups read twice is not known: {old} did not report their offsets, so the last checkpoint is used"
    unknown = state.fact(Step.GROUPS, "unknown")
    return (twice,) if unknown is None else (twice, str(unknown))


def counted_groups(state: SwitchState, groups: Iterable[GroupMoved]) -> tuple[GroupMoved, ...]:
    """Return those of the `groups` of which the goal of records read twice holds.

    That is all but those that the file leaves out and the operator leaves by name as well.
    """
    named = {row["group"] for row in state.rows(Step.GROUPS) if row.get("outside") == "named"}
    return tuple(one for one in groups if one.group not in named)


def outside_groups(state: SwitchState) -> tuple[str, ...]:
    """Say which groups the file leaves out, or that they are not known; empty if there is none."""
    rows = [row for row in state.rows(Step.GROUPS) if row.get("outside") == "filter"]
    outside = sorted(row["group"] for row in rows)
    though = "though they have offsets" if all(row["from"] for row in rows) else "though they have offsets, or may have"
    old, new = state.switch.via.source, state.switch.via.target
    found = []
    if outside:
        were = agreeing(len(outside), "group was", "groups were")
        found.append(
            f"{were} not moved, because the file leaves them out (groups, groups.exclude), {though} "
            f"in topics of the flow ({several(outside)}): they begin on {new} by their own offset there, or by their "
            "own auto.offset.reset"
        )
    if Step.GROUPS in state.done and (known := state.fact(Step.GROUPS, "outside_known")) is not True:
        why = "the record of the step that moved the groups lacks it" if known is None else f"{old} did not list them"
        hidden = state.fact(Step.GROUPS, "hidden")
        found.append(
            f"which other groups there are is not known: {hidden}"
            if hidden
            else f"which groups the file leaves out is not known, because {why}"
        )
    return tuple(found)


def groups_scope(state: SwitchState) -> str:
    """Return of which groups alone the goal of records read twice is measured; empty: of all."""
    return LISTED if state.fact(Step.GROUPS, "hidden") else ""


def _group(
    row: Json,
    frozen: Json | None,
    copied: Mapping[tuple[str, int], int],
    known: bool,
    passed: PassedBy | None,
) -> GroupMoved:
    words: Sequence[str] = tuple(row["how"].values())
    kept: Sequence[Json] = row["kept"]
    read = [(TopicPartition(topic, partition), offset) for topic, partition, offset in row.get("from", ())]
    in_gap, before, unsure = _inside(passed or {}, read)
    same = sum(word in _SAME for word in words) - min(in_gap, words.count("gap"))
    # Of these it reads nothing again: where it would continue was skipped, and the next record comes after it.
    after = min(in_gap, words.count("gap")) + min(before, words.count("before"))
    # If its offset on the new cluster was further on, what the group has read was not compared.
    still = row.get("again", 0) is not None  # no member of the group continues to read where it was
    whole = known and row["outcome"] == "moved" and same + after == len(words) and bool(words) and not kept and still
    is_certain = known and frozen is not None and frozen["known"] == "source"
    since = (
        []
        if known or row["outcome"] != "moved"
        else ["its offsets are those of the last checkpoint: what it read since, it reads again"]
    )
    return GroupMoved(
        group=row["group"],
        target_group=row["group"],
        partitions=len(words) + len(kept),
        committed=len(row["offsets"]),
        exact=same if known and not ((passed is None or unsure) and "gap" in words) else None,
        reread=0 if whole or (row.get("outside") and row.get("again") == 0) else None,
        skipped=unread_of(passed, read) if whole else None,
        beyond=_beyond(frozen, copied) if is_certain and frozen is not None else None,
        note="; ".join(
            ([row["why"]] if row["why"] else [])
            + ([f"{count_of(len(kept), 'partition')} left further on, where it stood"] if kept else [])
            + since
            + list(row["notes"])
        ),
        lag=_lag(frozen) if is_certain and frozen is not None else None,
    )


def _inside(passed: PassedBy, read: Collection[tuple[TopicPartition, int]]) -> tuple[int, int, int]:
    """Count the partitions in which a group's next offset was skipped: in a gap, and before the start.

    The third number is of partitions in which its next record may be one that the target lacks.
    """
    held = [[one.why for one in passed.get(place, ()) if one.holds(offset)] for place, offset in read]
    starts = sum(START in whys for whys in held)
    unsure = sum(any(one.is_counted and one.holds(at) is None for one in passed.get(place, ())) for place, at in read)
    return sum(map(bool, held)) - starts, starts, unsure


def _beyond(frozen: Json, copied: Mapping[tuple[str, int], int]) -> int | None:
    """Count the source offsets that a group had read and that were never copied.

    It is None if the end of the copy is not known.
    """
    ends = [(offset, copied.get((topic, partition))) for topic, partition, offset, _ in frozen["offsets"]]
    return summed([None if end is None else max(0, offset - end) for offset, end in ends])


def _lag(frozen: Json) -> int | None:
    """Sum up the lag of all partitions; None if an end is not known."""
    return summed([lag for _, _, _, lag in frozen["offsets"]])


def _goals(state: SwitchState, rpo_seconds: float | None, rto_seconds: float | None) -> tuple[Goal, ...]:
    return goals_of(
        losses=losses_by_partition(state) if Step.STOP in state.done else None,
        rpo_seconds=rpo_seconds,
        rto_s=out_of_service(state).seconds,
        rto_seconds=rto_seconds,
        groups=counted_groups(state, moved_groups(state)) if Step.GROUPS in state.done else None,
        all_groups=knows_groups(state),
        of=groups_scope(state),
    )


def switch_deviations(state: SwitchState, *, rpo_seconds: float | None, rto_seconds: float | None) -> tuple[str, ...]:
    """Return what is not as it should be in a switch, a sentence each. Goals are in seconds; None: there is none."""
    return _deviations(state, _goals(state, rpo_seconds, rto_seconds))


def _deviations(state: SwitchState, goals: Sequence[Goal]) -> tuple[str, ...]:
    return (*deviations_of(goals, moved_groups(state), None, ()), *stayed_sentences(state), *lacks_sentences(state))


def switch_report(
    state: SwitchState,
    *,
    lane: str,
    policy: str,
    clusters: tuple[EvidenceCluster, ...],
    version: str,
    rpo_seconds: float | None,
    rto_seconds: float | None,
    samples: tuple[Sample, ...] = (),
) -> EvidenceReport:
    """Make the report of a switch, finished or not, from its state in the ledger. Goals are in seconds.

    `samples` are those of its drain.
    """
    switch, end = state.switch, state.end
    steps, losses, groups = timeline_steps(state), losses_by_partition(state), moved_groups(state)
    stopped, service = state.done.get(Step.STOP), out_of_service(state)
    passed = None if stopped is None else passed_of(state)
    goals = _goals(state, rpo_seconds, rto_seconds)
    deviations = _deviations(state, goals)
    due = next_step(state)
    if end is None:
        outcome, summary = EvidenceOutcome.FAILED, f"it is not finished: its next step is {due}"
    elif end.outcome is SwitchOutcome.ABANDONED:
        outcome, summary = EvidenceOutcome.REFUSED, f"{end.who} has given it up: {end.why}"
    else:
        outcome = EvidenceOutcome.DEVIATIONS if deviations else EvidenceOutcome.SUCCESS
        summary = (
            f"clients were moved to {switch.via.target}; "
            f"{lost_sentence(None, passed) if stopped is None else _lost_in(state, passed)}"
        )
    return EvidenceReport(
        id=switch.id,
        kind=EvidenceKind(switch.verb.value),
        flow=switch.via,
        lane=lane,
        policy=policy,
        clusters=clusters,
        who=switch.who,
        version=version,
        began_ms=switch.at_ms,
        ended_ms=max([switch.at_ms, *(step.ended_ms for step in steps), *([end.at_ms] if end is not None else [])]),
        outcome=outcome,
        summary=summary,
        steps=steps,
        goals=goals,
        losses=losses,
        losses_at_ms=stopped.done_ms if stopped is not None else 0,
        passed_over=passed,
        rto_s=service.seconds,
        rto_means=service.means,
        from_start_s=service.from_start,
        first_record_s=service.first_record,
        first_record_means=service.first_record_means,
        groups=groups,
        samples=samples,
        deviations=deviations,
        notes=(
            *passed_notes(state),
            *unknown_losses(state),
            *unknown_groups(state),
            *outside_groups(state),
            *unchecked(state),
        ),
    )
