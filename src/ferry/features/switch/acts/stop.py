"""Stop a flow: pause it, fence all its writers, and record the ends of both sides. Only the target is needed.

Fencing aborts the open transaction of a dead writer, so readers of the new cluster do not wait for it.
"""

from __future__ import annotations

from ferry.clock import wall_ms
from ferry.errors import Refused, Unreachable
from ferry.features.evidence.rules.figures import beside_the_loss
from ferry.features.identical.acts.late import look_late
from ferry.features.identical.rules.late import GENERATION, LANE
from ferry.features.identical.rules.short import named
from ferry.features.switch.acts.connecting import connected
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.fencing import fence_lane
from ferry.features.switch.acts.partition_state import keeps_offsets, look_at_standings, why_lost, written_by_others
from ferry.features.switch.acts.passed_over import look_at_passed
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.partition_state import (
    LOSS,
    STATE,
    best_known,
    longest,
    loss_of,
    loss_sentence,
    parse_standings,
    short_copies,
    unseen_of,
    with_frozen,
    with_records,
)
from ferry.features.switch.rules.passed_over import passed_of, passed_rows
from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import pauses
from ferry.ledger.switch_codec import pause_reason
from ferry.messages.catalogue import sentence
from ferry.model import Pause, TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState, Verb
from ferry.plan.lag import first_timestamps
from ferry.words import agreeing, count_of, several


def paused_before(state: SwitchState) -> Pause | None:
    """Return the pause from before the switch, as `freeze` found it; it is restored if the switch is abandoned."""
    found = state.fact(Step.FREEZE, "paused")
    return None if found is None else Pause(**found)


def stop_flow(sides: Sides, state: SwitchState, still_mine: StillMine, *, who: str, patience_s: float) -> Evidence:
    """Pause the flow, fence its writers, and read both sides.

    Raises Unreachable if the target does not answer. Raises Refused for a slot that cannot be fenced, and while a batch
    with identical offsets may still arrive. But for a failover, it raises Refused for a copied partition whose end
    cannot be read. The same holds for a copy with identical offsets that ends before the source's offsets.
    """

    async def work() -> Evidence:
        view = await connections.view()
        now_ms = wall_ms()
        held = pauses(view, now_ms).get("")
        reason = pause_reason(state)
        was = held if held is not None and held.why != reason else paused_before(state)
        still_mine()
        if held is None or held.until_ms or held.why != reason:  # another pause is in the evidence of `freeze`
            pause = Pause(topic="", who=who, why=reason, since_ms=now_ms)
            await connections.ledger.append([pause_record(pause)])
        fenced = await fence_lane(sides.via, state, "stop", connections, still_mine)
        rows = await look_at_standings(sides.via, connections)
        if state.switch.verb is Verb.FAILOVER:  # the run that fenced has a plan without slices
            rows = with_frozen(rows, parse_standings(state.rows(Step.FREEZE)))
        late = await look_late(
            connections.target,
            connections.ledger.place,
            connections.cache,
            sides.via.lane,
            fenced=fenced.generation,
        )
        if late.until:
            raise Refused(late.sentence(sides.new, begun=True))
        short = short_copies(rows, keeps_offsets(sides.via), late.ends)
        if short and state.switch.verb is not Verb.FAILOVER:
            raise Refused(sentence("identical.short.begun", places=named(short), cluster=sides.new))
        rows = with_records(rows, late.ends, short)
        silent = [str(row.target) for row in rows if row.is_silent]
        unreported = (
            f"{count_of(len(silent), 'partition')} of {sides.new} ({several(silent)}) did not report their ends"
        )
        if silent and state.switch.verb is not Verb.FAILOVER:
            raise Refused(f"{unreported}: bring their brokers back, then continue")
        others = await written_by_others(sides.via, connections, rows)
        passed = await look_at_passed(sides.via, connections)
        counted = sum(one.is_counted for one in passed)
        said = f"{sides.via.flow} is paused, fenced: {count_of(fenced.slots, 'writer')}"
        if silent:
            said += f"; {unreported}"
        if others:
            said += (
                f"; other clients have written to {agreeing(len(others), 'copy', 'copies')} on {sides.new} already "
                f"({several(others)})"
            )
        if short:
            said += f"; {sentence('identical.short.lost', places=named(short), cluster=sides.new)}"
        return Evidence(
            sentence=said,
            facts={
                LANE: sides.via.lane,
                GENERATION: fenced.generation,
                "source_answers": connections.has_source,
                "source_error": why_lost(connections),
                "was_paused": None if was is None else f"by {was.who}: {was.why}",
                "written_by_others": len(others),
                "passed_over": len(passed) - counted,
                "left_out": counted,
            },
            rows=(*(STATE.dump(row) for row in rows), *passed_rows(passed)),
        )

    with connected(sides, patience_s) as connections:
        return connections.run(work)


def count_loss(sides: Sides, state: SwitchState, *, patience_s: float) -> Evidence:
    """Count what the new cluster lacks of each partition, as far as that can be known."""
    # What the plan before the run that fenced knew is in the evidence.
    before = parse_standings(state.rows(Step.FREEZE))
    found = best_known(before, parse_standings(state.rows(Step.STOP)))
    behind = {
        one.source: one.copied_end for one in found if one.source_known == "source" and one.source_end > one.copied_end
    }
    lost_ms = state.switch.options.lost_at_ms
    losses = loss_of(found, _ages(sides, behind, patience_s), wall_ms() if lost_ms is None else lost_ms)
    clauses = [loss_sentence(losses, lost_ms=lost_ms, unseen=unseen_of(found)), beside_the_loss(passed_of(state))]
    keeps = keeps_offsets(sides.via)
    if any(keeps(one.source.topic) and (one.records or not one.certain) for one in losses):
        clauses.append(sentence("identical.loss", cluster=sides.new))
    return Evidence(
        sentence="; ".join(filter(None, clauses)),
        facts={
            "records": sum(one.records for one in losses) if losses else None,
            "partitions": sum(1 for one in losses if one.records),
            "unsure": sum(1 for one in losses if not one.certain),
            "seconds": longest(losses),
        },
        rows=tuple(LOSS.dump(one) for one in losses),
    )


def _ages(sides: Sides, behind: dict[TopicPartition, int], patience_s: float) -> dict[TopicPartition, int]:
    """Return timestamps (ms) of the oldest records that are not copied, if the source still answers."""
    if not behind:
        return {}

    async def work() -> dict[TopicPartition, int]:
        if not connections.has_source:
            return {}
        await connections.source.refresh({place.topic for place in behind})
        return await first_timestamps(connections.source, behind)

    try:
        with connected(sides, patience_s) as connections:
            return connections.run(work)
    except (Unreachable, Refused):
        return {}
