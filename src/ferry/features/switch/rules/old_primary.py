"""What the old primary no longer holds of what was copied from it, before clients go back to it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import enum
from ferry.config.flow.guards import Guards, OnGuard
from ferry.ledger.codec import SOURCE, TARGET
from ferry.ledger.source_reads import reads_of_units
from ferry.ledger.units import least_dealt
from ferry.model import Era, Flow, Gap, Receipt, RefusalKind, Resolution, TopicPartition
from ferry.model.check import Check
from ferry.model.evidence import summed
from ferry.model.switch import Step, SwitchState
from ferry.plan.rules.left_out import is_earlier
from ferry.words import agreeing, count_of, several

NAME = "copied"
"""The name of the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A partition of the old primary that a flow copied up to offset `end`.

    `last` is the newest receipt. Of a repartitioned topic, some partitions of the copy may have more, up to `reached`.
    """

    source: TopicPartition
    end: int
    reached: int
    last: Receipt

    @property
    def copy(self) -> TopicPartition:
        """The partition of the copy; of a repartitioned topic that of the same number."""
        return TopicPartition(topic=self.last.target.topic, partition=self.source.partition)


def copied_partitions(
    lasts: Iterable[Receipt], units: Collection[Receipt], eras: Iterable[Era]
) -> dict[TopicPartition, Copied]:
    """Return what a lane copied, by source partition, from its last receipts.

    `units` are those of repartitioned topics, and `eras` their rules. A partition whose copy was renamed has two last
    receipts; the newer one counts.
    """
    found: dict[TopicPartition, Copied] = {}
    for last in lasts:
        known = found.get(last.source)
        if known is None or known.last.generation < last.generation:
            found[last.source] = Copied(source=last.source, end=last.end, reached=last.end, last=last)
    newest: dict[str, Receipt] = {}
    for last in units:
        known_unit = newest.get(last.source.topic)
        if known_unit is None or known_unit.generation < last.generation:
            newest[last.source.topic] = last
    least = least_dealt(eras, units)
    for read in reads_of_units(units):  # ascending by what was read
        end = min(least.get(read.source, 0), read.end)
        found[read.source] = Copied(source=read.source, end=end, reached=read.end, last=newest[read.source.topic])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLogs:
    """What the old primary shows now: its id, the ids of its topics, and the ends of their partitions.

    From the offsets in `cuts` on, logs have other records than those that were copied, or none.
    """

    cluster_id: str
    ids: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    cuts: Mapping[TopicPartition, int] = field(default_factory=dict)
    silent: frozenset[TopicPartition] = frozenset()
    """Partitions whose leader does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Offsets `[start, end)` of a partition that were copied, and that the old primary no longer holds.

    `copy` is the partition on the new cluster that has their records. `is_exact`: it is known that the offsets before
    `start` are held. `why` is the kind of refusal with which runs refuse the partition; its guard may accept it.
    """

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    why: RefusalKind
    is_exact: bool = False

    @property
    def records(self) -> int | None:
        """How many records at most; None: not known, because retention may have deleted most of an earlier topic."""
        return self.end - self.start if self.is_exact else None


LACK = Form(
    Lack,
    *SOURCE,
    *TARGET,
    F("start"),
    F("end"),
    F("why", kind=enum(RefusalKind)),
    F("is_exact"),
)
"""An item of the fact `lacks` of the step `stranded`."""


def lacks_of(copied: Iterable[Copied], gaps: Collection[Gap], now: OldLogs) -> list[Lack]:
    """Return what the old primary no longer holds of what was `copied`; `gaps` are those of the lane.

    If a run has decided since how the lane continues, as a guard allows, nothing is lacking: what was copied later
    counts.
    """
    later: dict[TopicPartition, list[Gap]] = {}
    for gap in gaps:
        if gap.void_from is not None and not is_earlier(gap.source.topic, gap.topic_id, now.ids):
            later.setdefault(gap.source, []).append(gap)

    def is_decided(one: Copied, start: int) -> bool:
        found = (gap for gap in later.get(one.source, ()) if gap.generation > one.last.generation)
        return any(gap.void_from is not None and gap.void_from <= start for gap in found)

    found = [one for each in copied if (one := _lack(each, now)) is not None and not is_decided(each, one.start)]
    return sorted(found, key=lambda one: one.source)


def _lack(one: Copied, now: OldLogs) -> Lack | None:
    why, start, end, cut = _other_log(one, now), 0, now.ends.get(one.source), now.cuts.get(one.source)
    if not one.reached or (why is None and one.source in now.silent):
        return None
    if why is None and end is None:  # fewer partitions than were copied
        why = RefusalKind.TOPIC_RECREATED
    elif why is None and end is not None and min(end, end if cut is None else cut) < one.reached:
        why, start = RefusalKind.SOURCE_TRUNCATED, min(end, end if cut is None else cut)
    if why is None:
        return None
    is_exact = why is RefusalKind.SOURCE_TRUNCATED and cut is not None
    return Lack(source=one.source, target=one.copy, start=start, end=one.reached, why=why, is_exact=is_exact)


def _other_log(one: Copied, now: OldLogs) -> RefusalKind | None:
    """Return why the partition's log is not the one that was copied; None if it may be."""
    then = one.last.source_cluster_id
    if then and now.cluster_id and then != now.cluster_id:
        return RefusalKind.CLUSTER_CHANGED
    if one.source.topic not in now.ids:
        return RefusalKind.TOPIC_GONE
    if is_earlier(one.source.topic, one.last.source_topic_id, now.ids):
        return RefusalKind.TOPIC_RECREATED
    return None


def reached_offsets(
    copied: Iterable[Copied], gaps: Iterable[Gap], lacks: Iterable[Lack], ids: Mapping[str, str]
) -> dict[TopicPartition, int]:
    """Return up to where the lane has the log that the old primary shows now, by partition.

    What comes after was never copied. What an operator skipped on purpose counts as copied, unless the gap is of an
    earlier topic. `gaps` are those of the lane, `ids` the topic ids of now.
    """
    parts = {one.source: one for one in copied}
    found = {place: one.end for place, one in parts.items()}
    for gap in gaps:
        if is_earlier(gap.source.topic, gap.topic_id, ids):
            continue
        known = parts.get(gap.source)
        is_later = known is None or gap.generation > known.last.generation
        if gap.how is Resolution.RESTART and is_later and known is not None:
            found[gap.source] = gap.end
        elif gap.why is RefusalKind.STUCK:
            found[gap.source] = max(found.get(gap.source, 0), gap.end)
    for lack in lacks:
        found[lack.source] = min(found.get(lack.source, 0), lack.start)
    return found


def copied_checks(flow: Flow, lacks: Iterable[Lack], silent: Collection[TopicPartition], guards: Guards) -> list[Check]:
    """Make the checks of a failback for what the old primary no longer holds; empty if it holds all.

    `flow` copied it. A check fails unless the flow's guard accepts the loss.
    """
    groups: dict[tuple[RefusalKind, OnGuard], list[Lack]] = {}
    for lack in lacks:
        groups.setdefault((lack.why, guards.of(lack.why, lack.source.topic)), []).append(lack)
    found = []
    for (why, policy), ones in groups.items():
        key, what = f"ferry.guard.{why.replace('-', '.')}", _what(flow, why, ones)
        only = f"the copies of their records are on {flow.target} alone"
        is_accepted = policy is not OnGuard.FAIL
        if is_accepted:
            message = f"{what}, and {only}: {key} = {policy} accepts that, and the report counts them as lost"
        else:
            message = (
                f"{what}, and {only}: {_remedy(flow, why)}; or accept the loss with {flow}.{key} = {_ACCEPTS[why]}"
            )
        found.append(Check(name=NAME, ok=is_accepted, message=message, warns=is_accepted))
    if silent:
        where = f"{count_of(len(silent), 'partition')} of {flow.source} ({several(sorted(map(str, silent)))})"
        message = f"whether {where} still holds what was copied is not known: bring the leaders back"
        found.append(Check(name=NAME, ok=False, message=message))
    return found


_ACCEPTS = {
    RefusalKind.CLUSTER_CHANGED: OnGuard.RESTART,
    RefusalKind.TOPIC_GONE: OnGuard.SKIP,
    RefusalKind.TOPIC_RECREATED: OnGuard.RESTART,
    RefusalKind.SOURCE_TRUNCATED: OnGuard.RESTART,
}


def _what(flow: Flow, why: RefusalKind, lacks: Sequence[Lack]) -> str:
    places = several([f"{one.source} up to {one.end}" for one in lacks])
    topics = several(sorted({one.source.topic for one in lacks}))
    if why is RefusalKind.CLUSTER_CHANGED:
        return f"the alias {flow.source} leads to another cluster than the one from which was copied ({places})"
    if why is RefusalKind.TOPIC_GONE:
        return f"{flow.source} no longer shows topics that were copied ({topics})"
    if why is RefusalKind.TOPIC_RECREATED:
        return f"topics of {flow.source} were deleted and created again since they were copied ({topics})"
    cuts = several([_cut(one) for one in lacks])
    return f"logs of {flow.source} lost records that were copied ({cuts})"


def _cut(one: Lack) -> str:
    if one.is_exact:
        return f"{one.source} was copied up to {one.end}, and was cut at {one.start}"
    return f"{one.source} was copied up to {one.end}, and ends at {one.start}"


def _remedy(flow: Flow, why: RefusalKind) -> str:
    elsewhere = (
        f"give the new cluster an alias of its own, copy {flow.target} to it, and move clients with ferry switchover"
    )
    if why is RefusalKind.CLUSTER_CHANGED:
        return f"correct the bootstrap servers of {flow.source}; if it was built again, {elsewhere}"
    return f"restore {flow.source}, or leave the topics out of both flows (topics.exclude) and move them by hand"


def lacks_clause(lacks: Collection[Lack], cluster: str) -> str:
    """Say how much a cluster no longer holds of what was copied from it; empty if it holds all."""
    if not lacks:
        return ""
    count, where = summed([one.records for one in lacks]), several([str(one.source) for one in lacks])
    if count is None:
        return f"how many records that were copied before are no longer on {cluster} is not known ({where})"
    are = agreeing(count, "record that was copied before is", "records that were copied before are")
    return f"{are} no longer on {cluster}, at most ({where})"


def lacks_in(state: SwitchState) -> list[Lack]:
    """Return what a failback has found lacking on the cluster to which it moved clients."""
    rows: Sequence[dict[str, Any]] = state.fact(Step.STRANDED, "lacks") or ()
    return [LACK.load(row) for row in rows]


def lacking_trouble(place: TopicPartition, cluster: str) -> str:
    """Say why no offset of a group leads back to a partition."""
    return (
        f"offsets of {place} are not translated, because {cluster} no longer holds all that was copied from it: leave "
        "the group with --leave-group, and set its offset by hand"
    )


def unchecked(state: SwitchState) -> Iterator[str]:
    """Say that a failback of an earlier Ferry did not check what the old primary holds: a note."""
    if Step.STRANDED in state.done and state.fact(Step.STRANDED, "lacks") is None:
        primary = state.switch.via.target
        yield f"whether {primary} held all that was copied from it is not known: the step stranded did not record it"


def lacks_sentences(state: SwitchState) -> Iterator[str]:
    """Say what a failback has found lacking: a deviation."""
    clause = lacks_clause(lacks_in(state), state.switch.via.target)
    if clause:
        yield clause
