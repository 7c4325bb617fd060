"""What clients wrote to a copy after a switch had moved them there is no difference; what came before is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from ferry.features.identical.rules.late import GENERATION
from ferry.features.verify.rules.clients import with_clients
from ferry.ledger.copied import Copied
from ferry.model import Flow, Range, Segment, TopicPartition
from ferry.model.switch import Evidence, Step, StepDone, Switch, SwitchState, Verb

FLOW = Flow.parse("primary->backup")


def copied(*segments: tuple[int, int, int], target: str = "orders", shared: bool = False) -> Copied:
    parts = tuple(Segment(source_start=a, target_start=b, count=c) for a, b, c in segments)
    return Copied(
        source=TopicPartition("orders", 0),
        target=TopicPartition(target, 0),
        ranges=((0, 100),),
        segments=parts,
        void=((3, 5),),
        target_next=parts[-1].target_end,
        shared=shared,
    )


def switched(
    name: str,
    end: int | None,
    done: Collection[Step],
    flow: Flow = FLOW,
    target: str = "orders",
    generation: int | None = None,
) -> Any:
    switch = Switch(
        id=name, verb=Verb.SWITCHOVER, named=flow, via=flow, who="x", approved_by="y", approved_ms=1, at_ms=1
    )
    facts = {} if generation is None else {GENERATION: generation}
    row = {"target_topic": target, "target_partition": 0, "target_end": end}
    steps = {
        step: StepDone(
            step=step, who="x", begun_ms=1, done_ms=2, evidence=Evidence(sentence="", facts=facts, rows=(row,))
        )
        for step in done
    }
    return SwitchState(switch=switch, offset=1, done=steps)


BOTH = (Step.STOP, Step.PROMOTE)


@pytest.mark.parametrize(
    ("states", "void"),
    [
        ([], ((3, 5),)),
        ([switched("s-1", 50, BOTH)], ((3, 5), (50, 80))),
        ([switched("s-1", 50, BOTH), switched("s-2", 90, BOTH)], ((3, 5), (50, 80), (90, 1 << 62))),
        ([switched("s-1", 50, (Step.STOP,))], ((3, 5),)),  # clients were not moved
        ([switched("s-1", None, BOTH)], ((3, 5),)),
        ([switched("s-1", 50, BOTH, Flow.parse("backup->primary"))], ((3, 5),)),
        ([switched("s-1", 50, BOTH, target="other")], ((3, 5),)),
    ],
)
def test_what_clients_wrote_reaches_from_the_cut_over_to_what_was_copied_next(
    states: Sequence[SwitchState], void: tuple[Range, ...]
) -> None:
    (found,), notes = with_clients([copied((0, 0, 49), (60, 80, 10))], states, FLOW)
    assert found.void == void
    assert len(notes) == len(void) - 1
    assert all("moved clients to backup" in note for note in notes)


@pytest.mark.parametrize("one", [copied((0, 0, 49), target="primary.orders"), copied((0, 0, 49), shared=True)])
def test_to_a_copy_that_has_a_name_of_its_own_no_client_writes(one: Copied) -> None:
    (found,), notes = with_clients([one], [switched("s-1", 50, BOTH, target=one.target.topic)], FLOW)
    assert (found.void, notes) == (((3, 5),), [])


def test_a_copy_with_identical_offsets_has_records_of_clients_since_the_lane_continued_alone() -> None:
    """Both sides have those of an earlier switch, because the flow back has copied them."""
    place, one = TopicPartition("orders", 0), copied((0, 0, 49), (60, 80, 10))
    (found,), notes = with_clients([one], [switched("s-1", 50, BOTH, generation=40)], FLOW, {place}, 39)
    assert (found.void, len(notes)) == (((3, 5), (50, 80)), 1)
    (found,), notes = with_clients([one], [switched("s-1", 50, BOTH, generation=40)], FLOW, {place}, 41)
    assert (found.void, notes) == (((3, 5),), [])
    (found,), notes = with_clients([one], [switched("s-1", 50, BOTH)], FLOW, {place}, 2)
    assert (found.void, notes) == (((3, 5),), []), "an earlier Ferry's switch counts from its beginning"
    (found,), notes = with_clients([one], [switched("s-1", 50, BOTH, generation=40)], FLOW, (), 41)
    assert (found.void, len(notes)) == (((3, 5), (50, 80)), 1), "its offsets are translated"
