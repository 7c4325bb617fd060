"""Dead letters on real brokers: each once, as it was, whatever dies; a record that is refused stops its unit alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.config.settings import parse_settings
from ferry.copy.kafka_slot import SlotWiring
from ferry.dev import RunningCluster
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import COLUMNS, Rows
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.switch.acts.report import report_of_switch
from ferry.features.switch.acts.switcher import Switcher
from ferry.ledger.unit_codec import unit_receipts
from ferry.model import Plan, RefusalKind
from ferry.model.evidence import EvidenceReport
from ferry.model.switch import SwitchOptions, Verb
from ferry.protocol.slot import SlotProgress
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, send, settled
from tests.kafka.run.hooks import STEPS, Held, Hooks, copy_held
from tests.pure.run.unit_flows import SOURCES, TARGETS, Units, messages
from tests.tiers import ANSWER_S

RECORDS = 600
LETTER_PARTITIONS = 2
ONE = (0, 7)
"""Partition and offset of a record that is refused."""


class Killed(BaseException):
    """The process is gone: nothing of it does anything any more."""


class HeldRows(Held, RowSlot):
    """A real slot of rows with hooks around its steps."""

    def __init__(self, wiring: SlotWiring, *, rows: Rows, rules: dict[str, PoisonRule]) -> None:
        RowSlot.__init__(self, wiring, rows=rows, rules=rules)


def is_poison(offset: int) -> bool:
    return offset % 5 == 2


@dataclass
class Poisoned:
    """Units of which some records are poison, marked as `said` (column `refusal` or `letter`)."""

    units: Units
    letters: str
    said: str = "letter"

    @property
    def rules(self) -> dict[str, PoisonRule]:
        letters = DeadLetters(topic=self.letters)
        return {self.units.topic: PoisonRule(transform="masked", poison=Poison.SKIP, letters=letters)}

    def rows(self, plan: Plan, slot: int) -> Iterator[pa.RecordBatch]:
        for batch in self.units.rows(plan, slot):
            why = [f"no {at}" if is_poison(at) else None for at in batch.column("offset").to_pylist()]
            number = COLUMNS.index(self.said)
            yield batch.set_column(number, self.said, pa.array(why, pa.string()))

    def copy(self, runs: MicroRuns, plan: Plan, slot: int, hooks: Hooks | None = None) -> SlotProgress:
        port_of = partial(HeldRows, rows=Rows(self.rows(plan, slot)), rules=self.rules)
        return copy_held(runs, plan, slot, hooks or Hooks(), port_of=port_of)


@pytest.fixture
def poisoned(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Poisoned:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(RECORDS))
    settings = {"ferry.chunk.bytes": "20000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(target_cluster, lab.target_topic(topic), TARGETS)
    create_topic(target_cluster, f"{topic}-dead", LETTER_PARTITIONS)
    return Poisoned(Units(lab, topic, kept=lambda _partition, offset, _key: not is_poison(offset)), f"{topic}-dead")


def test_whatever_step_kills_it_each_letter_is_written_once_as_it_was_and_a_switch_counts_them(
    poisoned: Poisoned,
) -> None:
    def killed() -> None:
        raise Killed

    poisoned.units.kept = lambda *_: True  # they come to the slot
    lab = poisoned.units.lab
    with lab.runs() as runs:
        plan = poisoned.units.plan(runs)
        for step in STEPS:
            with pytest.raises(Killed):
                poisoned.copy(runs, plan, 0, Hooks(before={step: killed}))
        with pytest.raises(Killed):
            poisoned.copy(runs, plan, 0, Hooks(after={"commit": killed}))
        for slot in plan.row_slots:
            poisoned.copy(runs, plan, slot)
        receipts = unit_receipts(settled(runs), runs.lane, plan.run, plan.generation)
    written = poisoned.units.assert_once(lambda _partition, offset, _key: not is_poison(offset))
    wanted = {
        (partition, offset): (key, value, headers, time)
        for partition, rows in read_topic(lab.source.bootstrap, poisoned.units.topic).items()
        for offset, key, value, headers, time in rows
        if is_poison(offset)
    }
    assert (sum(one.records for one in receipts), sum(one.dead_letters for one in receipts)) == (written, len(wanted))
    assert written + len(wanted) == RECORDS
    found = {}
    for number, rows in read_topic(lab.target.bootstrap, poisoned.letters).items():
        for _, key, value, headers, time in rows:
            place, own = told(headers)
            assert place not in found, "twice"
            assert place[0] % LETTER_PARTITIONS == number
            found[place] = (key, value, own, time)
    assert found == wanted
    report = switched(lab)
    assert (report.lost_records, report.dead_letters, report.before_adoption) == (0, len(wanted), 0)
    assert str(len(wanted)) in report.summary


def switched(lab: Lab) -> EvidenceReport:
    """The report of a switchover of all clients to the target; there is nothing left to copy."""
    settings, options = parse_settings(lab.text, "lab"), SwitchOptions(quiet_seconds=0, smoke=False, reverse=False)
    with Switcher(settings, lab.flow, Verb.SWITCHOVER, who="ann", patience_s=ANSWER_S) as switcher:
        switcher.open("s-1", options, "bob")
        state = switcher.run("s-1")
    return report_of_switch(settings, lab.flow, state, patience_s=ANSWER_S)


def told(headers: tuple[tuple[str, bytes | None], ...]) -> tuple[tuple[int, int], tuple[Any, ...]]:
    """Where a letter says that it comes from, and the headers that the record had."""
    own = tuple(one for one in headers if not one[0].startswith(("__connect.errors.", "ferry.errors.")))
    more = {name: (value or b"").decode() for name, value in headers[len(own) :]}
    offset = int(more["__connect.errors.offset"])
    assert more["__connect.errors.exception.message"] == f"no {offset}"
    assert more["__connect.errors.class.name"] == "ferry.transform.masked"
    return (int(more["__connect.errors.partition"]), offset), own


def test_a_record_that_is_refused_stops_its_unit_and_no_other(poisoned: Poisoned) -> None:
    poisoned.said = "refusal"
    poisoned.units.kept = lambda partition, offset, _key: not is_poison(offset) or (partition, offset) == ONE
    with poisoned.units.lab.runs() as runs:
        plan = poisoned.units.plan(runs)
        results = {slot: poisoned.copy(runs, plan, slot) for slot in plan.row_slots}
        receipts = unit_receipts(settled(runs), runs.lane, plan.run, plan.generation)
    (refusal,) = [one for result in results.values() for one in result.refusals.values()]
    assert (refusal.kind, refusal.message) == (RefusalKind.POISON, f"no {ONE[1]}")
    done = {one.target.partition for unit in plan.dealt for one in receipts if one.ends == unit.ends}
    assert done == {unit.target.partition for unit in plan.dealt} - {refusal.partition}
    assert not read_topic(poisoned.units.lab.target.bootstrap, poisoned.letters)[0]


def test_letters_whose_topic_is_gone_are_told_and_nothing_of_their_chunk_is_written(poisoned: Poisoned) -> None:
    poisoned.units.kept = lambda *_: True
    poisoned.letters += "-gone"
    with poisoned.units.lab.runs() as runs:
        plan = poisoned.units.plan(runs)
        attempt = runs.begin(plan, local_origin())
        port_of = partial(HeldRows, rows=Rows(poisoned.rows(plan, 0)), rules=poisoned.rules)
        result = copy_held(runs, plan, 0, Hooks(), attempt, port_of)
        assert not unit_receipts(settled(runs), runs.lane, plan.run, plan.generation)
    assert result.refusals
    for refusal in result.refusals.values():
        assert refusal.code == "letters.gone"
