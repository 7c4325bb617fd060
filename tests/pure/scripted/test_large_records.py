"""Records of the ledger that hold something for each of many partitions: they fit into it, or are refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ferry.errors import Refused
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    group_record,
    held_groups,
    saved_groups,
    saved_record,
    snapshot_record,
)
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.features.switch.acts.journal import Journal
from ferry.features.switch.rules.passed_over import passed_of, passed_rows
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.ledger import LedgerView
from ferry.ledger.plan_codec import PART_BYTES
from ferry.model import CommittedOffset, LedgerRecord, Record, TopicPartition
from ferry.model.evidence import PassedOver
from ferry.model.switch import STEPS, Evidence, Step, Switch, SwitchOptions, Verb
from tests.pure.protocol.world import FLOW, LANE
from tests.pure.scripted.lane import Lane, at_work

MANY = 20_000
RANDOM = random.Random(7)  # names and offsets do not compress better than real ones


def place(number: int) -> TopicPartition:
    return TopicPartition(f"orders.{RANDOM.getrandbits(40):010x}.v1", number % 3)


def offset() -> int:
    return RANDOM.randrange(10**9, 10**12)


PLACES = tuple(place(number) for number in range(MANY))
NAMES = tuple(f"billing-{RANDOM.getrandbits(48):012x}" for _ in range(MANY))


@dataclass
class Ledger:
    """A ledger on the scripted target, written as commands write it."""

    lane: Lane

    def view(self) -> LedgerView:
        return self.lane.view()

    def view_if_any(self) -> LedgerView:
        return self.view()

    def written(self, start: int, end: int) -> Sequence[LedgerRecord]:
        return self._run("read_untransacted", start, end)  # type: ignore[no-any-return]

    def append(self, records: Sequence[Record]) -> int:
        return self._run("append", records)  # type: ignore[no-any-return]

    def _run(self, name: str, *arguments: object) -> Any:
        target = self.lane.clusters[1]
        return target.loop.run(getattr(LedgerTopic(target, FLOW.source), name), *arguments)


EVIDENCE = {
    Step.STOP: Evidence(
        sentence="stopped",
        facts={"passed_over": MANY, "left_out": 0},
        rows=(
            *({"topic": at.topic, "partition": at.partition, "copied_end": offset()} for at in PLACES),
            *passed_rows(
                PassedOver(source=at, start=offset(), end=offset(), why="stuck", who="ann", reason="a bad record")
                for at in PLACES
            ),
        ),
    ),
    Step.FREEZE: Evidence(
        sentence="one group reads all",
        rows=(
            {
                "group": "billing",
                "offsets": [[at.topic, at.partition, offset(), 0] for at in PLACES],
                "translated": [[at.topic, at.partition, offset(), "exact"] for at in PLACES],
            },
        ),
    ),
    Step.PROMOTE: Evidence(sentence="promoted", facts={"moved_again": list(NAMES)}),
    Step.REVERSE: Evidence(
        sentence="producers have not stopped",
        facts={"stayed": [[at.topic, at.partition, offset(), offset()] for at in PLACES]},
    ),
}


@pytest.mark.slow
def test_a_switch_is_recorded_whatever_its_steps_find() -> None:
    lane = Lane([[1]])
    options = SwitchOptions(leave_groups=NAMES, leave_topics=tuple(sorted({at.topic for at in PLACES})))
    opened = Switch(
        id="s-1",
        verb=Verb.SWITCHOVER,
        named=FLOW,
        via=FLOW,
        who="ann@desk-7",
        approved_by="bob",
        approved_ms=1,
        at_ms=2,
        options=options,
    )
    with at_work(lane):
        journal = Journal(Ledger(lane), "ann@desk-7")
        journal.open(opened)
        for step in STEPS[Verb.SWITCHOVER]:
            begun = journal.begin("s-1", step)
            journal.done("s-1", begun, EVIDENCE.get(step, Evidence(sentence="done")))
        state = journal.finish("s-1")
    assert state.switch == opened
    for step, evidence in EVIDENCE.items():
        assert (state.done[step].evidence.rows, state.done[step].evidence.facts) == (evidence.rows, evidence.facts)
    parts = [record for key, record in lane.view().of_kind("switch") if key[2:3] == ["stop"] and key[3:4] != ["begun"]]
    assert max(len(record.value or b"") for record in parts) <= PART_BYTES, "the rows are in parts, however many"
    assert len(parts) > 3
    passed = passed_of(state)
    assert passed is not None
    assert len(passed) == MANY


@pytest.mark.slow
def test_a_group_of_many_partitions_is_recorded() -> None:
    held = HeldGroup(
        offsets={at: Held(Wrote(offset(), offset()), Wrote(offset(), offset())) for at in PLACES},
        sources={at.topic: at.topic for at in PLACES},
        renewed_ms=3,
        read={},
    )
    saved = {
        at: Saved(CommittedOffset(offset=offset(), metadata="", leader_epoch=number % 5), offset())
        for number, at in enumerate(PLACES)
    }
    lane = Lane([[1]])
    with at_work(lane):
        ledger = Ledger(lane)
        ledger.append(
            [
                group_record(LANE, "billing", held, run="r", at_ms=1),
                saved_record(LANE, "r", "billing", saved),
                snapshot_record(LANE, Snapshot(name="r", at_ms=1, groups=1)),
            ]
        )
        view = ledger.view()
    (found,) = held_groups(view, LANE, lambda _: True).values()
    assert (found.offsets, found.sources) == (held.offsets, held.sources)
    assert saved_groups(view, LANE, "r") == {"billing": saved}


def test_what_does_not_fit_is_refused_with_the_record_and_the_setting() -> None:
    lane = Lane([[1]])
    with at_work(lane):
        ledger = Ledger(lane)
        end = ledger.view().end
        with pytest.raises(Refused, match=r'key \["group","live","billing"\].*max\.message\.bytes'):
            ledger.append([Record(key=b'["group","live","billing"]', value=RANDOM.randbytes(2 << 20))])
        assert ledger.view().end == end
