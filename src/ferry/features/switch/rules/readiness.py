"""Whether a flow's target could take over now: a list of checks, from facts that were gathered before. Pure."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ferry.features.groups.rules.outside import OutsideGroup, named_with_reason, offsets_clause
from ferry.features.switch.rules.partition_state import came_sentence
from ferry.ledger.history import NOT_ENDED, PastRun, PastState
from ferry.ledger.writers import LedgerWriters, others, writers_sentence
from ferry.messages.refusals import words_of
from ferry.model import ChangeKind, Left, Pause, Plan, Refusal, TopicPartition, Why, with_text
from ferry.model.check import Check
from ferry.model.evidence import PassedOver
from ferry.model.switch import Step, SwitchState
from ferry.model.topic_settings import TopicSettings
from ferry.plan.rules.blocking_transactions import HANGING_MS, ledger_notes
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from ferry.plan.rules.facts import Facts, SourceFacts
from ferry.plan.rules.lag import PartitionLag, is_behind, total_of
from ferry.plan.rules.passed_over import passed_clause, passed_sentences
from ferry.policy import ReplicationPolicy
from ferry.words import agreeing, count_of, several

_AGAINST = frozenset({Why.ACTIVE, Why.PENDING, Why.MERGED, Why.DEALT, Why.FAILED})
"""The reasons that keep a group from being moved. A group moved on the target by another client is not among them."""

_WELL = frozenset({PastState.SUCCESS, *NOT_ENDED})
"""The states of a healthy last run, unless it is silent. What runs leave undone shows in the lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """All checks, and the lag."""

    checks: tuple[Check, ...]
    records: int = 0
    """The lag in records, counted as in `TotalLag`."""
    seconds: float | None = None
    partitions: int = 0

    @property
    def ready(self) -> bool:
        """Whether all checks passed."""
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.ok)

    def passed_sentence(self) -> str:
        """Say how many checks passed, and of how many that is not known. None has failed."""
        unknown = [check.name for check in self.checks if not check.known]
        passed = f"{count_of(len(self.checks) - len(unknown), 'check')} passed"
        return f"{passed}; not known: {several(unknown)}" if unknown else passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rpo:
    """The loss that is allowed at most, in records and seconds of each partition. None means no limit."""

    records: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The facts from which readiness is decided."""

    facts: Facts
    plan: Plan
    lags: Sequence[PartitionLag]
    last_run: PastRun | None
    stamped_ms: int | None
    """When the leader of the ledger's partition wrote the last run's record, by its clock (ms); None: not known."""
    groups: Collection[Left]
    """Groups that a sync would leave now, with the reason."""
    behind_groups: int
    """The number of groups of which a sync would write offsets, without the `excepted`."""
    back: bool
    """Whether the file enables the flow back."""
    excepted: Collection[str] = ()
    """Groups that a switch leaves by its options; the checks do not judge them."""
    without_checkpoint: Mapping[str, str] = field(default_factory=dict)
    """Groups whose offsets would not be known in a failover, each with a sentence."""
    planned: bool = False
    """Whether the checks are for a switch that reads the groups' offsets from the source itself."""
    unsynced: str = ""
    """Why runs do not write the groups' offsets at all; empty if they do."""
    wants_back: bool = True
    """Whether the flow back is to be started."""
    features: Sequence[Check] = ()
    """The checks that features add (`ferry.lane.checks`)."""
    passed: Collection[PassedOver] = ()
    """What the target lacks that is not lag, as what the lane has never copied on purpose."""
    writers: LedgerWriters | None = None
    """The principals that may write to the ledger; None: not checked."""
    outside: Collection[OutsideGroup] = ()
    """Groups that the file leaves out, though they have offsets in topics of the flow; without the `excepted`."""
    stopped_by: SwitchState | None = None
    """The switch that paused the flow; None: the flow is not paused, or something else paused it."""
    unlisted: str = ""
    """Why the source did not list all of its groups; empty: it listed them all."""


def readiness_of(looked: Looked, policy: ReplicationPolicy, alias: str, rpo: Rpo) -> Readiness:
    """Make the checks, in the order in which an operator would make them by hand."""
    total = total_of(looked.lags)
    return Readiness(
        checks=(
            _reachable(looked.facts.source),
            _running(looked),
            _lag(looked.lags, rpo, _leaderless(looked.facts.source)),
            _passed(looked),
            _refused(looked.plan.refusals),
            _topics(looked, policy, alias),
            _writable(looked, policy, alias),
            _retention(looked.facts, policy, alias),
            _groups(looked),
            _checkpoints(looked),
            *_outside(looked),
            *looked.features,
            _clock(looked),
            _ledger(looked.facts),
            *_writers(looked.writers),
            _back(looked),
        ),
        records=total.records,
        seconds=None if total.unknown else total.seconds,
        partitions=total.partitions,
    )


def _named(items: Iterable[str]) -> str:
    return several(sorted(set(items)))


def _leaderless(source: SourceFacts) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in source.topics.values() for number in topic.leaderless]


def _reachable(source: SourceFacts) -> Check:
    silent = [str(place) for place in _leaderless(source)]
    if silent:
        return Check(
            name="source",
            ok=False,
            message=f"{len(silent)} source partitions have no leader that answers ({_named(silent)}): bring their "
            "brokers back, or fail over",
        )
    topics = count_of(len(source.topics), "topic")
    return Check(name="source", ok=True, message=f"{topics}, every partition answers")


def _paused(pause: Pause, state: SwitchState | None) -> Check:
    """Say who paused the flow. If it was a switch, an operator who resumes the flow undoes a part of that."""
    if state is None:
        message = f"the flow is paused by {pause.who} ({pause.why}): end that with ferry resume"
        return Check(name="replication", ok=False, message=message)
    what = f"{state.switch.verb} {state.switch.id}"
    if state.end is None:
        message = f"{what} stopped the flow and is not finished: continue or abandon it"
        return Check(name="replication", ok=False, message=message)
    message = f"the flow is on standby since {what}: do not resume it, because a switch back starts it"
    return Check(name="standby", ok=False, message=message)


def _running(looked: Looked) -> Check:
    paused = looked.facts.lane.pauses
    if "" in paused:
        return _paused(paused[""], looked.stopped_by)
    if paused:
        return Check(
            name="replication",
            ok=False,
            message=f"topics are paused ({_named(paused)}), so their lag grows: end that with ferry resume --topic",
        )
    last = looked.last_run
    if last is None:
        return Check(
            name="replication", ok=False, message=f"the flow never ran: {_run_once(looked)}, and let it catch up"
        )
    run, started_ms = last.opened.record.run, last.opened.record.started_ms
    if last.copy_state not in _WELL:
        return Check(
            name="replication",
            ok=False,
            message=f"the last run, {run}, is {last.copy_state}: see what it says with ferry ledger --run {run}",
        )
    age = max(0, looked.facts.now_ms - started_ms) // 1000
    if last.is_silent(looked.facts.now_ms):
        has = "has no sealed plan" if last.state is PastState.UNPLANNED else "has not ended"
        silent = (looked.facts.now_ms - last.heard_ms) // 1000
        return Check(
            name="replication",
            # What an open run left, the drain of a planned switch copies.
            ok=looked.planned and last.state is PastState.OPEN,
            message=f"the last run, {run}, began {age} s ago and {has}, and wrote nothing to the ledger for {silent} "
            "s: whether it still runs is not known; start another, which continues where it is",
        )
    return Check(name="replication", ok=True, message=f"the last run, {run}, began {age} s ago: {last.copy_state}")


def _lag(lags: Sequence[PartitionLag], rpo: Rpo, leaderless: Collection[TopicPartition]) -> Check:
    total = total_of(lags)
    limits = [
        *([f"{rpo.records} records"] if rpo.records is not None else []),
        *([f"{rpo.seconds:g} s"] if rpo.seconds is not None else []),
    ]
    allowed = " and ".join(limits)
    behind = [lag for lag in lags if is_behind(lag, max_records=rpo.records, max_seconds=rpo.seconds)]
    unaged = total.unknown or total.seconds is None
    age = "since when is not known" if unaged else f"for {total.seconds:.1f} s at most"
    silent = [str(lag.source) for lag in lags if lag.records is None and lag.source not in leaderless]
    if behind:
        worst = max(behind, key=lambda lag: (lag.records is None, lag.records or 0))
        there = count_of(total.partitions, "partition")
        more = agreeing(len(behind), f"of {there} has", f"of {there} have")
        most = "not known" if worst.records is None else count_of(worst.records, "record")
        return Check(
            name="lag",
            ok=False,
            message=f"{more} more lag than the RPO ({allowed}), most {worst.source} ({most}): let the flow catch up",
        )
    if silent:
        return Check(
            name="lag",
            ok=False,
            message=f"the lag of {count_of(len(silent), 'partition')} is not known ({_named(silent)}), of the others "
            f"{agreeing(total.records, 'record is', 'records are')} not copied: see ferry lag",
        )
    found = f"not copied: {count_of(total.records, 'record')} of {count_of(total.behind, 'partition')}, {age}"
    if total.behind and not allowed:
        message = (
            f"{found}; whether that is too much is not known, because no limit is set: set ferry.rpo.records or "
            "ferry.rpo.seconds"
        )
        return Check(name="lag", ok=True, message=message, known=False)
    return Check(name="lag", ok=True, message=f"{found} ({allowed or 'no limit is set'})")


def _passed(looked: Looked) -> Check:
    """Show what the target lacks for other reasons than lag. The check never fails, because no switch can bring it."""
    if not looked.passed:
        nothing = "no offset was skipped on purpose, and no record became a dead letter"
        return Check(name="passed-over", ok=True, message=nothing)
    said = "; ".join(passed_sentences(looked.passed, looked.plan.flow.target))
    known = all(one.offsets is not None for one in looked.passed)
    return Check(
        name="passed-over", ok=True, message=f"{passed_clause(looked.passed)}: {said}", known=known, warns=True
    )


def _refused(refusals: Sequence[Refusal]) -> Check:
    if not refusals:
        return Check(name="refusals", ok=True, message="a run would refuse nothing")
    first = refusals[0]
    more = f" and {len(refusals) - 1} more" if len(refusals) > 1 else ""
    message = with_text(words_of(first), f"a run would refuse: {first.message} [{first.kind}]{more}")
    return Check(name="refusals", ok=False, message=message)


def _run_once(looked: Looked) -> str:
    return f"run it once with ferry run '{looked.plan.flow}'"


def _topics(looked: Looked, policy: ReplicationPolicy, alias: str) -> Check:
    plan = looked.plan
    due = [*plan.changes, *plan.drift]
    if looked.last_run is None and not due:
        return Check(name="topics", ok=False, message=f"nothing is copied yet: {_run_once(looked)}")
    words = {ChangeKind.CREATE: "missing", ChangeKind.GROW: "too small", ChangeKind.DELETE: "to be deleted"}
    if not due:
        return Check(name="topics", ok=True, message=_alike(looked.facts, policy, alias))
    named = _named(f"{change.topic} ({words.get(change.kind, 'other settings')})" for change in due)
    return Check(
        name="topics",
        ok=False,
        message=f"{agreeing(len(due), 'topic of the target differs', 'topics of the target differ')} from the source: "
        f"{named}; {_run_once(looked)}, which corrects them, or see ferry plan",
    )


def _alike(facts: Facts, policy: ReplicationPolicy, alias: str) -> str:
    """Say that a run would change no topic, and what still differs.

    These are settings that it cannot read, or leaves unchanged.
    """
    pairs, hidden = _readable(facts, policy, alias)
    differing = set[str]()
    for source, _, target in pairs:
        for setting in (*source.own, *source.inherited):
            here, there = source.in_force(setting), target.in_force(setting)
            if there is not None and here != there:
                differing.add(setting)
    found = []
    if hidden:
        found.append(f"those of {count_of(len(hidden), 'topic')}, which may not be read ({_named(hidden)})")
    if differing:
        found.append(
            f"{count_of(len(differing), 'setting')} that a run leaves unchanged ({_named(differing)}), see "
            "config.properties.exclude and use.defaults.from"
        )
    if not found:
        return "topics and their settings are as at the source"
    return f"topics are as at the source, and so are their settings, but for {'; and for '.join(found)}"


def _readable(
    facts: Facts, policy: ReplicationPolicy, alias: str
) -> tuple[list[tuple[TopicSettings, str, TopicSettings]], list[str]]:
    """Return the settings of each source topic with its copy's name and settings.

    The second list has the topics whose settings cannot be read.
    """
    pairs, hidden = [], []
    for name, source in facts.source.topics.items():
        target = facts.target.topics.get(policy.format_remote_topic(alias, name))
        if target is None:
            continue
        if source.settings is None or target.settings is None:
            hidden.append(name if source.settings is None else target.name)
        else:
            pairs.append((source.settings, target.name, target.settings))
    return pairs, hidden


def _writable(looked: Looked, policy: ReplicationPolicy, alias: str) -> Check:
    facts, poor, count, missing = looked.facts, list[str](), 0, 0
    for name in facts.source.topics:
        topic = facts.target.topics.get(policy.format_remote_topic(alias, name))
        if topic is None:
            missing += 1
            continue
        for number in range(topic.partitions):
            count += 1
            in_sync, replicas = topic.replicas.get(number, (1, 1))
            if number not in topic.ends or in_sync < min(topic.min_in_sync, replicas):
                poor.append(f"{topic.name}-{number}")
    if facts.target.hidden:
        return Check(
            name="target",
            ok=False,
            message=f"whether the copies {_named(sorted(facts.target.hidden))} can be written is not known: they are "
            "hidden from this login; grant DESCRIBE on them",
        )
    if poor:
        return Check(
            name="target",
            ok=False,
            message=f"{len(poor)} target partitions cannot be written ({_named(poor)}): too few replicas in sync, or "
            "no leader; bring their brokers back",
        )
    if not count:
        return Check(name="target", ok=False, message=f"nothing is copied yet: {_run_once(looked)}")
    there = f"all {count} target partitions that are there can be written"
    if missing:
        there += f"; {count_of(missing, 'topic')} of the source has no copy yet"
    return Check(name="target", ok=True, message=there)


def _retention(facts: Facts, policy: ReplicationPolicy, alias: str) -> Check:
    pairs, hidden = _readable(facts, policy, alias)
    short = [
        f"{name} ({setting})"
        for source, name, target in pairs
        for setting in ("retention.ms", "retention.bytes")
        if _shorter(target, source, setting)
    ]
    if short:
        return Check(
            name="retention",
            ok=False,
            message=f"the target keeps less than the source: {_named(short)}; raise it there, or consumers with lag "
            "lose records when they move",
        )
    if hidden:
        return Check(
            name="retention",
            ok=False,
            message=f"whether the target keeps records as long as the source is not known: the settings of "
            f"{_named(hidden)} may not be read; grant DescribeConfigs on the topic to Ferry's login",
        )
    return Check(name="retention", ok=True, message="the target keeps records as long as the source, where copies are")


def _shorter(target: TopicSettings, source: TopicSettings, name: str) -> bool:
    there, here = target.in_force(name), source.in_force(name)
    if there is None or here is None or int(there) < 0:
        return False
    return int(here) < 0 or int(there) < int(here)


def _groups(looked: Looked) -> Check:
    against = [one for one in looked.groups if one.why in _AGAINST]
    if against:
        active = {one.group for one in against if one.why is Why.ACTIVE}
        named = _named(one.group or "(not known)" for one in against)
        first = against[0].message
        return Check(
            name="groups",
            ok=False,
            message=f"{count_of(len({one.group for one in against}), 'group')} could not be moved ({named}"
            + (f"; {agreeing(len(active), 'has', 'have')} members on the target" if active else "")
            + f"): {first}",
        )
    kinds = {one.group for one in looked.groups if one.why is Why.KIND}
    aside = [*_counted("never moved, because of their kind", kinds), *_aside(looked)]
    writes = f"a run that copies nothing more would write offsets of {count_of(looked.behind_groups, 'group')}"
    if looked.unsynced:
        writes = f"no run writes their offsets, because {looked.unsynced}"
    message = f"every {'other ' if aside else ''}group that the file takes can be moved; {writes}"
    return Check(name="groups", ok=True, message="; ".join([message, *aside]))


def _counted(what: str, groups: Collection[str]) -> list[str]:
    return [f"{what}: {count_of(len(groups), 'group')} ({_named(groups)})"] if groups else []


def _aside(looked: Looked) -> list[str]:
    """Say which groups a sentence about every group does not cover, and why."""
    uncopied = {one.group for one in looked.groups if one.why is Why.NOT_COPIED}
    return [
        *(["groups that are not listed: see the check outside"] if looked.unlisted else []),
        *_counted("without an offset in partitions of which nothing is copied", uncopied),
        *_counted("left by the switch, so not checked", looked.excepted),
    ]


def _checkpoints(looked: Looked) -> Check:
    """Check that each group has a checkpoint for a failover in which the source does not answer."""
    lacking, source = looked.without_checkpoint, looked.plan.flow.source
    aside = _aside(looked)
    if looked.unsynced and not lacking:
        message = (
            f"{looked.unsynced}, so no run writes a checkpoint: no group lacks one now, new ones begin by their own "
            f"auto.offset.reset, and a failover without {source} needs --leave-unknown"
        )
        return Check(name="checkpoints", ok=True, message="; ".join([message, *aside]))
    if not lacking:
        every = f"every {'other ' if aside else ''}group that the file takes and that can be moved"
        message = f"{every} has a checkpoint to continue from without the source"
        return Check(name="checkpoints", ok=True, message="; ".join([message, *aside]))
    have = agreeing(len(lacking), "group has", "groups have")
    named = f"{have} no checkpoint to use without {source} ({_named(lacking)})"
    if looked.planned:
        why = f", because {looked.unsynced}" if looked.unsynced else ""
        message = f"{named}{why}: only {source} has their current offsets, and if it is lost they would be left"
        return Check(name="checkpoints", ok=True, message="; ".join([message, *aside]))
    if looked.unsynced:
        message = (
            f"{named}, because {looked.unsynced}: in a failover they begin at their own offset, or by "
            "their own auto.offset.reset; correct that line, or write checkpoints with ferry groups sync "
            f"'{looked.plan.flow}'"
        )
        return Check(name="checkpoints", ok=False, message=message)
    return Check(name="checkpoints", ok=False, message=f"{named}: {next(iter(lacking.values()))}")


def _outside(looked: Looked) -> Iterator[Check]:
    """Name the groups that the file leaves out. The check never fails, because the file may mean that."""
    found = []
    if looked.outside:
        found.append(
            f"{offsets_clause(looked.outside, 'topics of the flow')}, and no switch moves them: "
            f"the file leaves them out ({named_with_reason(looked.outside)}): change groups or groups.exclude, "
            "or leave them with --leave-group"
        )
    if looked.unlisted:
        found.append(f"which other groups there are is not known: {looked.unlisted}")
    if found:
        yield Check(name="outside", ok=True, message="; ".join(found), known=not looked.unlisted, warns=True)


def _clock(looked: Looked) -> Check:
    if looked.last_run is None:
        message = "how far the clocks are apart is not known: the flow never ran"
        return Check(name="clock", ok=True, message=message, known=False)
    if looked.stamped_ms is None:
        return Check(
            name="clock",
            ok=False,
            message="how far the clocks are apart is not known: the ledger gives no time of a run; start one first",
        )
    off = looked.last_run.opened.record.started_ms - looked.stamped_ms
    if abs(off) > MAX_SKEW_MS:
        return Check(
            name="clock",
            ok=False,
            message=f"the last run's clock and the target's brokers' were {abs(off) // 1000} s apart: set both by NTP",
        )
    return Check(name="clock", ok=True, message=f"the last run's clock and the target's were {abs(off)} ms apart")


def _ledger(facts: Facts) -> Check:
    notes = ledger_notes(facts)
    for place, begun in sorted(facts.lane.open_on_ledger.items()):
        if begun.last_ms < 0 and not notes:
            where = f"--topic {place.topic} --partition {place.partition}"
            message = (
                f"since when a transaction is open on it from offset {begun.start} is not known, because its leader "
                f"does not report it: check it with kafka-transactions.sh describe-producers {where}, and ask again "
                "when it has ended"
            )
            return Check(name="ledger", ok=False, message=message)
    return Check(
        name="ledger",
        ok=not notes,
        message="; ".join(notes) or f"no transaction is open on it for longer than {HANGING_MS // 60_000} minutes",
    )


def _writers(writers: LedgerWriters | None) -> Iterator[Check]:
    """Show the ledger's writers. The check never fails: a failover must not wait for changes of ACLs."""
    if writers is not None:
        known = writers.acls is not None or writers.is_open
        warns = writers.is_open or bool(others(writers.acls or (), writers.topic, writers.own))
        yield Check(name="writers", ok=True, message=writers_sentence(writers), known=known, warns=warns)


def _back(looked: Looked) -> Check:
    flow = looked.plan.flow
    back = f"{flow.target}->{flow.source}"
    if looked.back:
        return Check(name="reverse", ok=True, message=f"the file has the flow back {back}")
    if not looked.wants_back:
        return Check(
            name="reverse",
            ok=True,
            message=f"the file has no flow back {back}, and none is to be started: there is no way back",
        )
    return Check(
        name="reverse",
        ok=False,
        message=f"the file has no flow back: add {back}.enabled = true and its topics, so that there is a way back "
        "(or omit it with --no-reverse)",
    )


def came_since(after: SwitchState, ends: Mapping[TopicPartition, int], copied: Container[str]) -> Check | None:
    """Check what came to the cluster that clients left in a switch, after it was drained; None if nothing is compared.

    `ends` are the ends of the drained topics there now. `copied` are topics that the flow back writes there; that flow
    searches them for records of others itself. The check blocks no switch, because a failback exports what it finds. It
    is named only after a switch that starts the flow back.
    """
    switch = after.switch
    old, by = switch.via.source, f"{switch.verb} {switch.id}"
    drained = {TopicPartition(row["topic"], row["partition"]): row["source_end"] for row in after.rows(Step.DRAIN)}
    own = {place: end for place, end in drained.items() if place.topic not in copied}
    if not own:
        return None
    topics = {place.topic for place in own}
    more = {place: end - own.get(place, 0) for place, end in ends.items() if place.topic in topics}
    came = {place: count for place, count in more.items() if count > 0}
    silent, seen = sorted(map(str, own.keys() - ends.keys())), len(own.keys() & ends.keys())
    said = [f"nothing came to {count_of(seen, 'partition')} of {old} since {by} drained it"] if seen else []
    if came:
        lacks = f"and are not on {switch.via.target}: stop who writes there, and write them again"
        where = f"since {by} drained it ({_named(map(str, came))})"
        exports = "; ferry failback exports them" if switch.options.reverse else ""
        said = [f"{came_sentence(came, old)} {where}, {lacks}{exports}"]
    if silent:
        said.append(
            f"whether records came to {count_of(len(silent), 'partition')} of {old} is not known ({several(silent)}): "
            "they do not report their ends, or were created again"
        )
    return Check(name="stranded", ok=True, message="; ".join(said), known=not silent, warns=bool(came))
