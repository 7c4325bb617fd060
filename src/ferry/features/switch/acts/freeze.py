"""The evidence from before anything is changed: the state of partitions and groups. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ferry.clock import wall_ms
from ferry.features.switch.acts.connecting import connected
from ferry.features.switch.acts.group_plan import GroupPlan, plan_groups
from ferry.features.switch.acts.partition_state import look_at_standings, why_lost
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.partition_state import STATE, PartitionState, uncopied_sentence
from ferry.ledger.ledger import pauses
from ferry.model import Pause, TopicPartition
from ferry.model.switch import Evidence, SwitchState
from ferry.words import count_of


def frozen(sides: Sides, state: SwitchState, *, patience_s: float) -> Evidence:
    """Read the state of both sides, as far as they answer; a row is a partition or a group."""

    async def work() -> tuple[list[PartitionState], Pause | None]:
        held = pauses(await connections.view(), wall_ms()).get("")
        return await look_at_standings(sides.via, connections), held

    with connected(sides, patience_s) as connections:
        rows, held = connections.run(work)
        lost = why_lost(connections)
    made = plan_groups(sides, state, settled=False, patience_s=patience_s)
    groups = _group_rows(made, rows)
    seen = count_of(len(groups), "group") + ("" if made.unknown is None else ", there may be others")
    if not groups and made.unknown is not None:
        seen = "which groups there are is not known"
    return Evidence(
        sentence=f"{uncopied_sentence(rows)}; {seen}" + (f"; {sides.old} does not answer" if lost else ""),
        facts={
            "source_answers": lost is None,
            "source_error": lost,
            "paused": None if held is None else _pause_json(held),
            "groups": len(groups),
        },
        rows=(*(STATE.dump(row) for row in rows), *groups),
    )


def _group_rows(made: GroupPlan, rows: Iterable[PartitionState]) -> list[dict[str, Any]]:
    """Return the offsets of each group, with the lag (None: not known), and their translation on the new cluster.

    If the old cluster does not answer, the offsets are those of the last checkpoint.
    """
    ends = {row.source: row.source_end for row in rows if row.source_known == "source"}
    found = []
    for group, placed in sorted(made.placed.items()):
        seen: Mapping[TopicPartition, int] = (
            {place: at.offset for place, at in made.read[group].items()}
            if group in made.read
            else {one.source: one.source_offset for one in placed.values() if one.source is not None}
        )
        against = next((one.why for one in made.moving if one.group == group), None)
        found.append(
            {
                "group": group,
                "known": "source" if group in made.read else "checkpoint",
                "offsets": [
                    [at.topic, at.partition, offset, _lag(ends, at, offset)] for at, offset in sorted(seen.items())
                ],
                "translated": [
                    [one.place.topic, one.place.partition, one.offset, one.word]
                    for _, one in sorted(placed.items())
                    if one.by != "start"
                ],
                "why": against,
            }
        )
    return found


def _lag(ends: Mapping[TopicPartition, int], place: TopicPartition, offset: int) -> int | None:
    end = ends.get(place)
    return None if end is None else max(0, end - offset)


def _pause_json(held: Pause) -> dict[str, object]:
    """Return a pause in the form that `ferry.features.switch.acts.stop` reads again, also in an earlier Ferry."""
    return {name: one for name, one in asdict(held).items() if not name.startswith("lifted")}
