"""Records that clients wrote to the copies after a switch moved them there: Ferry did not copy those. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ferry.features.identical.rules.late import GENERATION
from ferry.ledger.copied import Copied, united
from ferry.model import Flow, Range, TopicPartition
from ferry.model.switch import POINT_OF_NO_RETURN, Step, SwitchState
from ferry.words import count_of

_NO_END = 1 << 62


def with_clients(
    every: Sequence[Copied],
    states: Iterable[SwitchState],
    flow: Flow,
    identical: Collection[TopicPartition] = (),
    since: int = -1,
) -> tuple[list[Copied], list[str]]:
    """Return the copies with what clients wrote there as `void`, and a note on each switch that moved them.

    If names are kept, producers continue in the copy itself. Their records begin where the copy ended when a switch
    along the flow stopped it. They end at what the lane copied next. With other names only the lane writes to a copy.
    `identical` are the target partitions with identical offsets. What clients wrote there is compared with the source's
    records at the same offsets, if there are any. `since` is the ledger offset at which the lane continued after such
    records: both sides have those of earlier switches.
    """
    begins: dict[TopicPartition, list[int]] = {}
    notes = []
    kept = {one.target for one in every if one.target.topic == one.source.topic and not one.shared}
    for state in sorted(states, key=lambda one: one.offset):
        switch = state.switch
        if switch.via != flow or POINT_OF_NO_RETURN not in state.done:
            continue
        stopped = state.fact(Step.STOP, GENERATION)
        stopped = state.offset if stopped is None else int(stopped)
        places = []
        for row in state.rows(Step.STOP):
            place = TopicPartition(topic=row["target_topic"], partition=row["target_partition"])
            is_over = place in identical and stopped < since
            if place in kept and row["target_end"] is not None and not is_over:
                begins.setdefault(place, []).append(int(row["target_end"]))
                places.append(place)
        same = sum(place in identical for place in places)
        moved = f"{switch.verb} {switch.id} moved clients to {flow.target}: what they wrote to "
        if len(places) > same:
            there = count_of(len(places) - same, "partition")
            notes.append(f"{moved}{there} there until the flow continued was not copied, and is not compared")
        if same:
            there = count_of(same, "partition")
            notes.append(f"{moved}{there} there is compared as far as {flow.source} has records at the same offsets")
    return [replace(one, void=united([*one.void, *_theirs(one, begins.get(one.target, ()))])) for one in every], notes


def _theirs(one: Copied, begins: Iterable[int]) -> Iterable[Range]:
    for begin in begins:
        yield begin, min((part.target_start for part in one.segments if part.target_start >= begin), default=_NO_END)
