"""The checks before a switch begins, by its verb. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, EmptyFilter, FerryError, Refused
from ferry.features.identical.acts.late import look_late
from ferry.features.identical.rules.short import named
from ferry.features.switch.acts.connecting import connected
from ferry.features.switch.acts.earlier import earlier_switch
from ferry.features.switch.acts.group_plan import plan_groups
from ferry.features.switch.acts.old_primary import old_primary_checks
from ferry.features.switch.acts.opposite import Opposite, look_opposite
from ferry.features.switch.acts.partition_state import keeps_offsets, look_at_standings, why_lost
from ferry.features.switch.acts.readiness import check_readiness, look_since
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.moving import again_sentence
from ferry.features.switch.rules.partition_state import PartitionState, short_copies
from ferry.features.switch.rules.readiness import Readiness, Rpo
from ferry.features.switch.rules.transformed import Made, leaving, returning, transformed_topics
from ferry.lane.connections import FlowConnections, TargetFirst
from ferry.lane.session import one_cluster
from ferry.ledger.runs import has_run
from ferry.messages.catalogue import sentence
from ferry.model import sentence_of
from ferry.model.check import Check
from ferry.model.switch import OPPOSITE, Step, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess
from ferry.words import agreeing, count_of, several


def look_before(sides: Sides, state: SwitchState, *, patience_s: float) -> tuple[Readiness, dict[str, Any]]:
    """Make the checks of a verb, and the facts for the evidence.

    Raises Unreachable for a cluster that the verb needs.
    """
    readiness, facts = _of_verb(sides, state, patience_s)
    lost = facts.get("source_error")  # the switch must not wait for it twice
    opposite = (
        Opposite(unread=lost)
        if lost is not None
        else look_opposite(sides, patience_s=patience_s, needed=sides.verb is not Verb.FAILOVER)
    )
    transforms = _transforms(sides, state.switch.options.leave_topics, patience_s)
    checks = (*readiness.checks, *transforms, opposite.check(state.switch))
    return replace(readiness, checks=checks), {**facts, OPPOSITE: opposite.known}


def _transforms(sides: Sides, leave: Collection[str], patience_s: float) -> list[Check]:
    """Make the checks for copies that a transform made.

    A failback fails for topics that --leave-topic does not name.
    """
    if sides.verb is Verb.SWITCHOVER:
        return []  # the flow's own readiness has shown it
    if sides.verb is Verb.FAILBACK:
        return [] if sides.back is None else unreturned(sides.back, sides.via, leave, patience_s=patience_s)
    return leaving(sides.via.flow, _made(sides.via, patience_s))


def unreturned(flow: FlowConfig, back: FlowConfig, leave: Collection[str], *, patience_s: float) -> list[Check]:
    """Make a failback's checks along `back` for what `flow` made by transforms; `leave` are topics that may stay."""
    return returning(
        flow.flow,
        _made(flow, patience_s),
        lambda topic: back.topics.selection.transformed_there(topic) is not None,
        leave,
    )


def _made(flow: FlowConfig, patience_s: float) -> list[Made]:
    with LedgerAccess(flow, patience_s=patience_s) as ledger:
        return transformed_topics(ledger.view_if_any(), flow.lane)


def _of_verb(sides: Sides, state: SwitchState, patience_s: float) -> tuple[Readiness, dict[str, Any]]:
    if sides.verb is Verb.FAILOVER:
        return _failover(sides, state, patience_s)
    if sides.verb is Verb.FAILBACK:
        return _failback(sides, state, patience_s)
    readiness = check_readiness(
        sides.via,
        rpo_of(sides, state),
        back=sides.back is not None,
        wants_back=state.switch.options.reverse,
        leave=state.switch.options.leave_groups,
        leave_active=state.switch.options.leave_active,
        planned=True,
        patience_s=patience_s,
    )
    return readiness, {"records": readiness.records, "seconds": readiness.seconds}


def rpo_of(sides: Sides, state: SwitchState) -> Rpo:
    """Return the RPO that was asked for, else that of the file."""
    options, own = state.switch.options, sides.via.rpo
    return Rpo(
        records=own.records if options.rpo_records is None else options.rpo_records,
        seconds=own.seconds if options.rpo_seconds is None else options.rpo_seconds,
    )


def _failover(sides: Sides, state: SwitchState, patience_s: float) -> tuple[Readiness, dict[str, Any]]:
    """Check the target alone; whether the source answers is shown, but never a failure."""
    with connected(sides, patience_s) as connections:
        rows = connections.run(partial(look_at_standings, sides.via, connections))
        lost = why_lost(connections)
        offsets = [*_short(sides, rows), *_offsets(sides, connections)]
    silent = [str(row.target) for row in rows if row.is_silent]
    seen = sum(row.source_known == "source" for row in rows)
    answering = sum(row.target_end is not None for row in rows)
    if lost:
        source = f"{sides.old} does not answer: {lost}"
    elif seen < len(rows):
        source = f"{sides.old} answers for {seen} of {count_of(len(rows), 'partition')}"
    else:
        source = f"{sides.old} answers: a switchover would lose nothing"
    checks = [
        Check(name="source", ok=True, message=source),
        Check(
            name="target",
            ok=not silent,
            message=f"no answer from {count_of(len(silent), 'partition')} of {sides.new} ({several(silent)}): bring "
            "their brokers back"
            if silent
            else f"{sides.new} answers for {count_of(answering, 'copied partition')}",
        ),
        _groups(sides, state, patience_s),
    ]
    checks += offsets
    return Readiness(checks=tuple(checks), partitions=len(rows)), {"source_answers": lost is None, "source_error": lost}


def _offsets(sides: Sides, connections: TargetFirst) -> list[Check]:
    """Check whether batches with identical offsets may arrive.

    It never fails: the step `stop` begins the time after which nothing comes, so a failover must reach it.
    """
    try:
        late = connections.run(
            lambda: look_late(connections.target, connections.ledger.place, connections.cache, sides.via.lane)
        )
    except FerryError as error:
        message = f"whether a batch with identical offsets may still come to {sides.new} is not known: {error}"
        return [Check(name="offsets", ok=True, known=False, message=message)]
    if not late.until:
        return []
    message = f"the step stop will be refused: {late.sentence(sides.new)}"
    return [Check(name="offsets", ok=True, warns=True, message=message)]


def _short(sides: Sides, rows: Iterable[PartitionState]) -> list[Check]:
    """Check whether copies end before the source's offsets. It never fails: the source may be gone for good."""
    short = short_copies(rows, keeps_offsets(sides.via))
    if not short:
        return []
    message = sentence("identical.short.lost", places=named(short), cluster=sides.new)
    return [Check(name="offsets", ok=True, warns=True, message=message)]


def _groups(sides: Sides, state: SwitchState, patience_s: float) -> Check:
    made = plan_groups(sides, state, patience_s=patience_s)
    against = made.against(state.switch.options)
    if against:
        named = several([one.group for one in against])
        message = f"{count_of(len(against), 'group')} ({named}) cannot be moved: {against[0].why}"
        return Check(name="groups", ok=False, message=message)
    if made.unknown is not None and not state.switch.options.leave_unknown:
        return Check(name="groups", ok=False, message=made.unknown)
    moved = [one for one in made.moving if one.why is None]
    left = [one.group for one in made.moving if one.why is not None]
    message = f"{count_of(len(moved), 'group')} can be moved{again_sentence(moved)}"
    if left:
        message += f"; {agreeing(len(left), 'is left', 'are left')} ({several(left)})"
    if made.unknown is not None:
        message = f"{message}; {made.unknown}" if made.moving else f"no group can be moved: {made.unknown}"
    elif not made.moving:
        message += f": neither {sides.old} nor the ledger has offsets of a group of this flow"
    return Check(name="groups", ok=True, message=message)


def _failback(sides: Sides, state: SwitchState, patience_s: float) -> tuple[Readiness, dict[str, Any]]:
    """Check a failback. Both clusters must answer; the flow that leads back may have to be started first."""
    before = earlier_switch(sides, patience_s)
    facts: dict[str, Any] = {"after": before.switch.id}
    with LedgerAccess(sides.via, patience_s=patience_s) as ledger:
        runs = has_run(ledger.view_if_any(), sides.via.lane)
    if before.fact(Step.REVERSE, "started") and runs:
        try:
            readiness = check_readiness(
                sides.via,
                rpo_of(sides, state),
                back=True,
                leave=state.switch.options.leave_groups,
                leave_active=state.switch.options.leave_active,
                planned=True,
                patience_s=patience_s,
            )
        except EmptyFilter as error:
            raise Refused(sentence_of(error)) from error
    else:
        with FlowConnections.of(sides.via, patience_s=patience_s) as connections:
            same = one_cluster(sides.via, connections.source.cluster_id, connections.target.cluster_id)
            if same is not None:
                raise BadInput(same)
        first = "the switch did not start it" if runs else "it has not run yet"
        message = f"{sides.old} and {sides.new} answer; {sides.via.flow} begins at the cut-over: {first}"
        readiness = Readiness(checks=(Check(name="clusters", ok=True, message=message),))
    since = look_since(sides.via, before, patience_s=patience_s)
    held = old_primary_checks(sides, patience_s=patience_s)
    return replace(readiness, checks=(*readiness.checks, *since, *held)), facts
