"""What comes after the copy of a filtered topic: windows, a lost ledger, drills, clients that move and come back."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ferry.config.flow.start import StartEarliest
from ferry.copy.kafka_slot import KafkaSlot
from ferry.copy.slot_end import SlotEnd, end_of
from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.errors import FerryError, Refused
from ferry.features.archive.acts.export import JsonLines, export_ledger, json_lines
from ferry.features.archive.acts.rebuild import rebuild_ledger
from ferry.features.drill.acts.full import FullDrill, FullOptions
from ferry.features.drill.acts.shadow import ShadowDrill, ShadowOptions
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.drain import Copy
from ferry.features.switch.acts.switcher import Switcher
from ferry.lane.connections import TargetConnection
from ferry.ledger.receipts import receipts
from ferry.model import Attempt, Plan, RefusalKind, TimeWindow
from ferry.model.switch import Step, SwitchOptions, SwitchOutcome, SwitchState, Verb
from ferry.plan.options import RunOptions
from ferry.protocol.names import ledger_topic
from ferry.run.local import copy_plan
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import (
    Lab,
    Message,
    awaited,
    commit_offsets,
    committed_offsets,
    create_topic,
    delete_topic,
    new_alias,
    producer,
    read_topic,
    send,
    settled,
)
from tests.kafka.run.switching import IDENTITY, OPTIONS, Pair, rest
from tests.kafka.run.test_kept_slot import Kept, keeps
from tests.pure.run.unit_flows import LATELY
from tests.tiers import ANSWER_S

LANE = "backfill-week"


def settings_of(topic: str) -> Mapping[str, str]:
    return {
        "ferry.transforms": "some",
        "ferry.transform.some.topics": topic,
        "ferry.transform.some.where": "offset % 3 != 1 AND offset < 290",
    }


def given(count: int, start: int = 0) -> list[Message]:
    """A record each second."""
    return [Message(value=b"%d" % number, timestamp=LATELY + number * 1_000) for number in range(start, start + count)]


@pytest.fixture
def kept(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Kept:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, given(60))
    lab = Lab(
        source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings_of(topic)
    )
    return Kept(lab, topic)


class InWindow(Kept):
    """The same in a lane of its own."""

    @property
    def target(self) -> str:
        return f"{self.lab.target_topic(self.topic)}.backfill.{LANE}"

    def copied(self, start: int, end: int) -> int:
        window = TimeWindow(from_ms=LATELY + start * 1_000, to_ms=LATELY + end * 1_000)
        with MicroRuns(self.lab.flow, lane=LANE, patience_s=ANSWER_S) as runs:
            plan = runs.open_run(f"run-{secrets.token_hex(4)}", local_origin(), RunOptions(window=window))
            self.copy(runs, plan)
            done = [one for one in receipts(settled(runs), lane=LANE, run=plan.run) if one.transform == "some"]
        return sum(one.records for one in done)


def test_windows_of_a_filtered_topic_join_and_are_not_copied_twice(kept: Kept) -> None:
    window = InWindow(kept.lab, kept.topic)
    assert [window.copied(0, 20), window.copied(20, 45), window.copied(0, 45)] == [13, 17, 0]
    source = read_topic(kept.lab.source.bootstrap, kept.topic)[0]
    target = read_topic(kept.lab.target.bootstrap, window.target)[0]
    assert [row[1:] for row in target] == [row[1:] for row in source if row[0] < 45 and keeps(row[0])]


def test_a_ledger_that_is_rebuilt_knows_where_a_filtered_topic_goes_on_and_what_it_lacks(
    kept: Kept, tmp_path: Path
) -> None:
    lab, path = kept.lab, tmp_path / "ledger.jsonl"

    def lose() -> None:
        delete_topic(lab.target, ledger_topic(lab.alias))
        with TargetConnection.of(lab.flow) as connection:

            async def gone() -> bool:
                return not await connection.has_ledger()

            connection.run(lambda: awaited(connection.loop, gone, "the end of the ledger's topic"))

    kept.run()
    export_ledger(lab.flow, path, JsonLines)
    lose()
    assert rebuild_ledger(lab.flow, path, json_lines, who="ann", dry_run=False).ahead == ()
    send(producer(lab.source), kept.topic, given(40, start=60))
    kept.run()
    kept.assert_once()
    # The export does not know of that run: the position does, and the next run does not copy it again.
    lose()
    (ahead,) = rebuild_ledger(lab.flow, path, json_lines, who="ann", dry_run=False).ahead
    assert (ahead.exported, ahead.copied) == (60, 100)
    plan = kept.run()
    assert {refusal.kind for refusal in plan.refusals} == {RefusalKind.LEDGER_BEHIND}
    assert not plan.slices


def test_a_shadow_drill_leaves_out_what_takes_spark_and_says_so(kept: Kept) -> None:
    plain = f"{kept.topic}-plain"
    create_topic(kept.lab.source, plain)
    send(producer(kept.lab.source), plain, given(3))
    lab = replace(kept.lab, topics=(kept.topic, plain))
    options = ShadowOptions(lane="drill-a", who="ann", start=StartEarliest())
    _, plan = ShadowDrill(lab.flow, options).preview()
    assert {piece.source.topic for piece in plan.slices} == {plain}
    with pytest.raises(Refused, match=f"{kept.topic} .*transform"):
        ShadowDrill(lab.flow, replace(options, topics=frozenset({kept.topic}))).preview()


@dataclass
class Masked(Kept):
    """As with names that are kept, beside topics that are copied as they are."""

    @property
    def target(self) -> str:
        return self.topic

    def copy_all(self, runs: MicroRuns, plan: Plan, attempt: Attempt) -> list[SlotEnd]:
        ends = []
        for slot in plan.used_slots:
            spec = runs.slot_task(plan, slot, attempt)
            port_of = self.port_of(plan, slot) if slot in plan.row_slots else KafkaSlot
            ends.append(end_of(slot, run_slot(spec, lambda: False, lambda _: None, port_of=port_of)))
        return ends


def test_clients_move_to_a_transformed_copy_and_nothing_leads_back_from_it(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    masked, plain, group = f"{topic}-masked", f"{topic}-plain", f"g-{new_alias()}"
    pair = Pair(here=source_cluster, there=target_cluster, topic=f"{masked}, {plain}", group=group)
    own = {f"{pair.flow}.{key}" if key == "ferry.transforms" else key: one for key, one in settings_of(masked).items()}
    pair = replace(pair, more={**own, "replication.policy.class": IDENTITY, "tasks.max": "2"})
    for name in (masked, plain):
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, given(30))
        commit_offsets(source_cluster, f"{group}-{name}", {(name, 0): 10})
    rest(pair)
    lab = Lab(source=source_cluster, target=target_cluster, alias=pair.aliases[0], topics=(masked,))
    spark = Masked(lab, masked)

    def copy(runs: MicroRuns, plan: Plan) -> FerryError | None:
        return copy_plan(runs, plan, spark.copy_all)

    def switcher(verb: Verb) -> Switcher:
        flow = pair.settings.flow(pair.flow)
        return Switcher(pair.settings, flow, verb, who="ann@desk-7", copy=copy, patience_s=ANSWER_S)

    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:
        plan = runs.open_new("r-1", local_origin())
        assert (plan.refusals, len(plan.slices)) == ((), 2)
        assert copy(runs, plan) is None
        checkpoint(runs, plan.run)
    assert_drilled_only_when_left(pair, copy, masked)
    with switcher(Verb.SWITCHOVER) as over:
        assert over.states() == {}
        over.open("over", OPTIONS, "bob")
        assert_moved_there(over.run("over"), masked)
    stands = {name: committed_offsets(target_cluster, f"{group}-{name}", name, 1)[0] for name in (masked, plain)}
    assert stands == {masked: sum(map(keeps, range(10))), plain: 10}

    for name in (masked, plain):
        send(producer(target_cluster), name, [Message(value=b"since")])
    options = replace(OPTIONS, export=str(tmp_path / "stranded.jsonl"))
    left = (f"{group}-{masked}",)
    with switcher(Verb.FAILBACK) as back:
        assert_refused_until_left(back, options, pair, masked)
        options = replace(options, leave_topics=(masked,))
        back.open("back", options, "bob")
        against = rf" {group}-{masked}: .* {masked}-0 .* transform "
        with pytest.raises(Refused, match=against):
            back.run("back")
        back.abandon("back", "one group is in the way")
        back.open("again", replace(options, leave_groups=left, export=str(tmp_path / "s2.jsonl")), "bob")
        state = back.run("again")
        assert state.end is not None
        assert state.end.outcome is SwitchOutcome.FINISHED
        (row,) = [row for row in state.rows(Step.READINESS) if row["message"].startswith(f"{masked} on ")]
        assert row["message"].endswith(f" on {pair.aliases[1]} alone, as was said (--leave-topic {masked})")
    values = {name: [row[2] for row in read_topic(source_cluster.bootstrap, name)[0]] for name in (masked, plain)}
    assert values[plain] == [*(b"%d" % number for number in range(30)), b"since"]
    assert values[masked] == [b"%d" % number for number in range(30)], "nothing came back"
    assert committed_offsets(source_cluster, f"{group}-{plain}", plain, 1) == {0: 10}


def assert_refused_until_left(back: Switcher, options: SwitchOptions, pair: Pair, masked: str) -> None:
    """A failback that would leave records of a transformed topic behind does not begin by itself."""
    here, there = pair.aliases
    (told,) = [one for one in back.preview("back", options).readiness.checks if one.name == "transforms"]
    assert not told.ok
    why = f"{masked} on {there} was made of {masked} on {here} by ferry.transform.some: "
    assert told.message.startswith(why)
    assert f" stays on {there} alone" in told.message
    with pytest.raises(
        Refused,
        match=rf"{here} .*transforms: {masked} .. {there} .* {masked} .. {here} .*ferry\.transform\.some: .*"
        f"--leave-topic {masked}",
    ):
        back.open("back", options, "bob")
    with pytest.raises(Refused, match="--leave-topic other: "):
        back.open("back", replace(options, leave_topics=(masked, "other")), "bob")
    assert "back" not in back.states(), "nothing was written"


def assert_drilled_only_when_left(pair: Pair, copy: Copy, masked: str) -> None:
    """A full drill asks before clients are moved there what its way back would be refused for."""
    flow = pair.settings.flow(pair.flow)
    options = FullOptions(drill="d-1", who="ann", approved_by="bob", switch=OPTIONS)
    with pytest.raises(Refused, match=rf" {pair.aliases[1]}, .* --leave-topic {masked}"):
        FullDrill(pair.settings, flow, options, copy=copy, patience_s=ANSWER_S).preview()
    _, failure = FullDrill(pair.settings, flow, options, copy=copy, patience_s=ANSWER_S).run(lambda _step, _done: None)
    assert isinstance(failure, Refused)
    assert f"--leave-topic {masked}" in str(failure)
    left = replace(options, switch=replace(OPTIONS, leave_topics=(masked,)))
    assert FullDrill(pair.settings, flow, left, copy=copy, patience_s=ANSWER_S).preview()


def assert_moved_there(state: SwitchState, masked: str) -> None:
    """It says which copy a transform made, and what does not go back."""
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    (check,) = [row for row in state.rows(Step.READINESS) if row["name"] == "transforms"]
    assert check["ok"]
    assert f"({masked} by ferry.transform.some): " in check["message"]
    assert state.fact(Step.REVERSE, "left_out") == [masked]
