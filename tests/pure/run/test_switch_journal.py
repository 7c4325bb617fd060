"""The journal of a switch: whoever is killed wherever, the same steps are done in the same order, and once will do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused, Superseded
from ferry.features.switch.acts.earlier import refuse_unfinished
from ferry.features.switch.acts.engine import Act, StillMine, advance, do_step
from ferry.features.switch.acts.history import abandon
from ferry.features.switch.acts.journal import Journal
from ferry.features.switch.acts.stranded import refuse_unwritable
from ferry.features.switch.rules.steps import sentence
from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import LedgerView, fold, pauses
from ferry.ledger.switch_codec import done_records, end_record, pause_reason, switch_states
from ferry.messages import catalogue
from ferry.model import Fate, Flow, LedgerRecord, Pause, Record
from ferry.model.switch import (
    STEPS,
    Evidence,
    Step,
    StepBegun,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
    next_step,
)
from tests.golden import Golden
from tests.said import data_of

FLOW = Flow.parse("primary->backup")


class Killed(Exception):
    """The process ends here."""


@dataclass(kw_only=True)
class Ledger:
    """A ledger in memory; the process is killed at the append that `dies_at` counts, before or behind it."""

    records: list[LedgerRecord] = field(default_factory=list)
    appends: int = 0
    dies_at: int = -1
    behind: bool = False

    def view(self) -> LedgerView:
        """As LedgerFile."""
        return fold(self.records, len(self.records))

    def view_if_any(self) -> LedgerView:
        """As LedgerFile."""
        return self.view()

    def written(self, start: int, end: int) -> list[LedgerRecord]:
        return self.records[start:end]

    def append(self, records: Sequence[Record]) -> int:
        """As LedgerFile."""
        self.appends += 1
        dies = self.appends == self.dies_at
        if dies and not self.behind:
            raise Killed
        self.records += [
            LedgerRecord(
                offset=len(self.records) + at, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=1
            )
            for at, one in enumerate(records)
        ]
        if dies:
            raise Killed
        return len(self.records) - 1


@dataclass(kw_only=True)
class World:
    """What steps change, each by an idempotent effect; killed at the effect that `dies_at` counts."""

    done: dict[Step, int] = field(default_factory=dict)
    order: list[Step] = field(default_factory=list)
    effects: int = 0
    dies_at: int = -1
    behind: bool = False

    def acts(self) -> Mapping[Step, Act]:
        """One for each step there is."""

        def act(step: Step) -> Act:
            def do(state: SwitchState, still_mine: StillMine) -> Evidence:
                still_mine()
                self.effects += 1
                dies = self.effects == self.dies_at
                if dies and not self.behind:
                    raise Killed
                self.done[step] = len(state.done)
                self.order = [one for one in self.order if one is not step] + [step]
                if dies:
                    raise Killed
                return Evidence(sentence=f"{step} is done", facts={"before": len(state.done)}, rows=({"at": step},))

            return do

        return {step: act(step) for step in Step}


def switch(verb: Verb, name: str = "s-1") -> Switch:
    """A switch of that kind."""
    return Switch(
        id=name,
        verb=verb,
        named=FLOW,
        via=FLOW if verb is not Verb.FAILBACK else Flow.parse("backup->primary"),
        who="ann@desk-7",
        approved_by="bob",
        approved_ms=1,
        at_ms=2,
        options=SwitchOptions(leave_groups=("audit",), leave_topics=("masked",), rpo_seconds=1.5),
    )


@pytest.mark.slow
@given(
    verb=st.sampled_from(Verb),
    deaths=st.lists(st.tuples(st.sampled_from(["append", "effect"]), st.integers(1, 12), st.booleans()), max_size=8),
)
def test_whoever_is_killed_wherever_the_end_is_the_same(verb: Verb, deaths: list[tuple[str, int, bool]]) -> None:
    ledger, world = Ledger(), World()
    for where, number, behind in [*deaths, ("never", 0, False)]:
        ledger.dies_at = ledger.appends + number if where == "append" else -1
        world.dies_at = world.effects + number if where == "effect" else -1
        ledger.behind = world.behind = behind
        journal = Journal(ledger, "ann@desk-7")
        try:
            journal.open(switch(verb))
            advance(journal, "s-1", world.acts())
        except Killed:
            continue
    state = switch_states(ledger.view())["s-1"]
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    assert state.switch == switch(verb)
    assert tuple(world.order) == STEPS[verb], "each step's last effect came in its turn"
    assert world.done == {step: at for at, step in enumerate(STEPS[verb])}
    assert {step: done.evidence.facts["before"] for step, done in state.done.items()} == world.done


def test_a_step_that_refuses_names_the_command_that_continues(golden: Golden) -> None:
    ledger = Ledger()
    journal = Journal(ledger, "ann@desk-7")
    opened = journal.open(switch(Verb.FAILOVER)).switch

    def refuses(_: SwitchState, __: StillMine) -> Evidence:
        raise Refused("a broker is down")

    def not_ready(_: SwitchState, __: StillMine) -> Evidence:
        why = catalogue.sentence("source.silent", place="orders-3", cluster="a")
        raise Refused(catalogue.caused("switch.not-ready", why, cluster="b", check="source", more=""))

    with pytest.raises(Refused) as caught:
        do_step(journal, "s-1", Step.READINESS, not_ready)
    code, facts = data_of(caught.value)
    assert (code, facts["check"], facts["cluster"]) == ("switch.not-ready", "source", "b")
    assert (facts["of"], facts["place"]) == ("source.silent", "orders-3")
    with pytest.raises(Refused) as caught:
        do_step(journal, "s-1", Step.READINESS, refuses)
    golden(caught.value)
    assert f"ferry failover '{opened.named}' --id s-1" in str(caught.value)
    assert Step.READINESS not in journal.state("s-1").done


def test_one_step_at_a_time_is_as_good_as_all_and_none_out_of_turn(golden: Golden) -> None:
    ledger, world = Ledger(), World()
    journal = Journal(ledger, "ann@desk-7")
    journal.open(switch(Verb.FAILOVER))
    acts = world.acts()
    with pytest.raises(Refused) as refused:
        do_step(journal, "s-1", Step.PROMOTE, acts[Step.PROMOTE])
    golden(refused.value, "out of turn")
    with pytest.raises(BadInput) as wrong:
        do_step(journal, "s-1", Step.DRAIN, acts[Step.DRAIN])
    golden(wrong.value, "of another verb")
    for step in STEPS[Verb.FAILOVER]:
        with pytest.raises(Refused) as refused:
            journal.finish("s-1")
        golden(refused.value, f"finished before {step}")
        for _ in range(2):
            do_step(journal, "s-1", step, acts[step])
    assert world.effects == len(STEPS[Verb.FAILOVER]), "what is done is not done again"
    assert journal.finish("s-1") == journal.finish("s-1")


def test_a_second_switch_waits_for_the_first_and_of_two_at_once_one_counts(golden: Golden) -> None:
    ledger = Ledger()
    first, second = Journal(ledger, "ann@desk-7"), Journal(ledger, "bob@desk-8")
    first.open(switch(Verb.SWITCHOVER))
    with pytest.raises(Refused) as refused:
        second.open(switch(Verb.FAILOVER, "s-2"))
    code, facts = data_of(refused.value)
    assert (code, facts["switch"], facts["verb"]) == ("switch.unfinished", "s-1", "switchover")
    golden(refused.value, "the first is not finished")
    with pytest.raises(BadInput) as wrong:
        second.open(switch(Verb.FAILOVER))
    assert data_of(wrong.value)[0] == "switch.other-verb"
    golden(wrong.value, "another verb")
    first.abandon("s-1", "too early")

    class Between(Ledger):
        """Another process opens a switch of its own just before this one's record."""

        def append(self, records: Sequence[Record]) -> int:
            if not self.appends:
                Journal(ledger, "eve@desk-9").open(switch(Verb.FAILOVER, "s-3"))
            return super().append(records)

    late = Between(records=ledger.records)
    with pytest.raises(Refused) as refused:
        Journal(late, "bob@desk-8").open(switch(Verb.FAILOVER, "s-4"))
    golden(refused.value, "at the same time")
    assert {name: state.end is None for name, state in first.states().items()} == {
        "s-1": False,
        "s-3": True,
        "s-4": False,
    }


def test_a_switch_whose_end_alone_is_missing_is_named_as_such(golden: Golden) -> None:
    ledger, world = Ledger(), World()
    journal = Journal(ledger, "ann@desk-7")
    journal.open(switch(Verb.FAILOVER))
    for step in STEPS[Verb.FAILOVER]:
        do_step(journal, "s-1", step, world.acts()[step])
    with pytest.raises(Refused) as refused:
        journal.open(switch(Verb.FAILOVER, "s-2"))
    golden(refused.value, "opened")
    with pytest.raises(Refused) as refused:
        refuse_unfinished(journal.states())
    assert data_of(refused.value)[0] == "switch.unfinished.before"
    golden(refused.value, "finished first")
    journal.finish("s-1")
    refuse_unfinished(journal.states())


def test_a_file_that_is_there_is_not_written_over_but_by_the_switch_that_began_it(
    tmp_path: Path, golden: Golden
) -> None:
    file = tmp_path / "stranded.jsonl"
    asked = switch(Verb.FAILBACK)
    state = SwitchState(switch=replace(asked, options=replace(asked.options, export=str(file))), offset=0)
    refuse_unwritable(state)
    file.write_text("of an earlier failback")
    with pytest.raises(BadInput) as wrong:
        refuse_unwritable(state)
    golden(wrong.value)
    begun = StepBegun(step=Step.STRANDED, who="ann@desk-7", begun_ms=1, token="t")
    refuse_unwritable(replace(state, begun={Step.STRANDED: begun}))


def test_who_begins_a_step_again_takes_it_over(golden: Golden) -> None:
    ledger, world = Ledger(), World()
    ann, bob = Journal(ledger, "ann@desk-7"), Journal(ledger, "bob@desk-8")
    ann.open(switch(Verb.FAILOVER))
    begun = ann.begin("s-1", Step.READINESS)
    do_step(bob, "s-1", Step.READINESS, world.acts()[Step.READINESS])
    with pytest.raises(Superseded) as caught:
        ann.done("s-1", begun, Evidence(sentence="late"))
    lost = {"step": "readiness", "switch": "s-1", "who": "bob@desk-8"}
    assert data_of(caught.value) == ("switch.lost.step", lost)
    golden(caught.value)
    done = ann.state("s-1").done[Step.READINESS]
    assert (done.who, done.since_ms) == ("bob@desk-8", begun.begun_ms)


@dataclass(kw_only=True)
class Slow(Ledger):
    """The ledger as a process has it that sleeps before its next append, while others do something."""

    meanwhile: Callable[[], object] | None = None

    def append(self, records: Sequence[Record]) -> int:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().append(records)


def test_of_two_that_open_one_switch_at_once_the_first_gives_it_its_options(golden: Golden) -> None:
    ledger, first = Ledger(), switch(Verb.FAILOVER)
    other = replace(first, approved_by="carl", options=replace(first.options, leave_groups=()))
    slow = Slow(records=ledger.records, meanwhile=lambda: Journal(ledger, "ann@desk-7").open(first))
    assert Journal(slow, "bob@desk-8").open(other).switch == first
    slow.meanwhile = lambda: Journal(ledger, "ann@desk-7").open(switch(Verb.FAILOVER, "s-2"))
    Journal(ledger, "ann@desk-7").abandon("s-1", "not today")
    with pytest.raises(BadInput) as wrong:
        Journal(slow, "bob@desk-8").open(switch(Verb.SWITCHOVER, "s-2"))
    golden(wrong.value)
    assert Journal(ledger, "ann@desk-7").state("s-2").switch.verb is Verb.FAILOVER
    assert Journal(ledger, "ann@desk-7").state("s-1").switch == first


@pytest.mark.parametrize("whole", [False, True])
def test_a_process_that_sleeps_before_it_begins_a_step_takes_nothing_that_is_done(whole: bool) -> None:
    ledger, world, acts = Ledger(), World(), World().acts()
    ann = Journal(ledger, "ann@desk-7")
    ann.open(switch(Verb.FAILOVER))

    def meanwhile() -> None:
        do_step(ann, "s-1", Step.READINESS, acts[Step.READINESS])
        if whole:
            advance(ann, "s-1", acts)

    slow = Slow(records=ledger.records, meanwhile=meanwhile)
    with pytest.raises(Superseded):
        do_step(Journal(slow, "bob@desk-8"), "s-1", Step.READINESS, world.acts()[Step.READINESS])
    assert not world.effects
    state = ann.state("s-1")
    assert state.done[Step.READINESS].who == "ann@desk-7"
    assert tuple(state.done) == (STEPS[Verb.FAILOVER] if whole else (Step.READINESS,))
    if not whole:
        advance(ann, "s-1", acts)


@pytest.mark.parametrize("whole", [False, True])
def test_a_process_that_sleeps_before_it_records_a_step_replaces_nothing_of_who_did_it_again(
    whole: bool, golden: Golden
) -> None:
    ledger, acts = Ledger(), World().acts()
    ann = Journal(ledger, "ann@desk-7")
    ann.open(switch(Verb.FAILOVER))
    slow = Slow(records=ledger.records)
    bob = Journal(slow, "bob@desk-8")
    begun = bob.begin("s-1", Step.READINESS)
    slow.meanwhile = lambda: (
        advance(ann, "s-1", acts) if whole else do_step(ann, "s-1", Step.READINESS, acts[Step.READINESS])
    )
    late = Evidence(sentence="late", rows=({"topic": "orders"}, {"topic": "users"}))
    with pytest.raises(Superseded) as caught:
        bob.done("s-1", begun, late)
    golden(caught.value)
    assert ann.state("s-1").done[Step.READINESS].who == "ann@desk-7"
    assert ann.state("s-1").rows(Step.READINESS) == ({"at": "readiness"},)


@pytest.mark.parametrize("whole", [False, True])
def test_a_process_that_sleeps_before_it_abandons_a_switch_does_not_end_one_that_promoted(
    whole: bool, golden: Golden
) -> None:
    ledger, acts = Ledger(), World().acts()
    ann = Journal(ledger, "ann@desk-7")
    ann.open(switch(Verb.FAILOVER))
    held = Pause(topic="", who="ann@desk-7", why=pause_reason(ann.state("s-1")), since_ms=1)

    def meanwhile() -> None:
        for step in STEPS[Verb.FAILOVER]:
            do_step(ann, "s-1", step, acts[step])
            if step is Step.PROMOTE and not whole:
                return
        ann.finish("s-1")

    ledger.append([pause_record(held)])
    slow = Slow(records=ledger.records)
    bob = Journal(slow, "bob@desk-8")

    class LateEnd(Journal):
        """Sleeps before the record of the end, after the pause was changed."""

        def abandon(self, *words: Any) -> SwitchState:
            slow.meanwhile = meanwhile
            return bob.abandon(*words)

    with pytest.raises(Refused) as refused:
        abandon(slow, LateEnd(slow, "bob@desk-8"), "s-1", "not today")
    golden(refused.value)
    assert pauses(ledger.view(), wall_ms()) == {"": held}
    assert ann.state("s-1").end is None, "it is written again when the switch is continued"
    assert advance(ann, "s-1", acts).end is not None


def test_the_end_of_a_switch_says_whether_who_abandoned_it_knew_an_opposite_one(golden: Golden) -> None:
    """A process that dies before it takes its end record back does not leave a promoted switch abandoned."""

    def promoted(ledger: Ledger) -> Journal:
        ann = Journal(ledger, "ann@desk-7")
        ann.open(switch(Verb.FAILOVER))
        for step in STEPS[Verb.FAILOVER][: STEPS[Verb.FAILOVER].index(Step.PROMOTE) + 1]:
            do_step(ann, "s-1", step, World().acts()[step])
        return ann

    saw, died = Ledger(), Ledger()
    ann = promoted(saw)
    ann.abandon("s-1", "not today", ann.state("s-1"))  # an opposite switch was begun since

    class Dies(Journal):
        def _written(self, records: Sequence[Record]) -> dict[str, SwitchState]:
            if records[0].value is None:
                raise Killed
            return super()._written(records)

    late = promoted(died)
    view = died.records[:-2]  # the promotion comes after the look
    with pytest.raises(Killed):
        Dies(Slow(records=view, meanwhile=lambda: view.extend(died.records[-2:])), "bob@desk-8").abandon("s-1", "late")
    died.records = view
    assert [one.key for one in died.records] == [one.key for one in saw.records]
    assert ann.state("s-1").end is not None
    assert (late.state("s-1").end, next_step(late.state("s-1"))) == (None, Step.REDIRECT)
    with pytest.raises(Refused) as refused:
        late.abandon("s-1", "once more")
    golden(refused.value)
    assert advance(late, "s-1", World().acts()).end is not None
    assert late.state("s-1").end is not None


def test_an_end_of_an_earlier_ferry_counts_after_a_promotion() -> None:
    """Its ledger does not show whether an opposite switch was begun."""
    ledger = Ledger()
    ann = Journal(ledger, "ann@desk-7")
    ann.open(switch(Verb.FAILOVER))
    for step in STEPS[Verb.FAILOVER][: STEPS[Verb.FAILOVER].index(Step.PROMOTE) + 1]:
        do_step(ann, "s-1", step, World().acts()[step])
    ledger.append([end_record("s-1", SwitchEnd(outcome=SwitchOutcome.ABANDONED, who="bob", why="late", at_ms=3))])
    assert ann.state("s-1").end is not None


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("dies_at", [1, 2])
def test_who_is_killed_while_a_switch_is_abandoned_can_abandon_it_again(
    dies_at: int, behind: bool, golden: Golden
) -> None:
    ledger = Ledger()
    journal = Journal(ledger, "ann@desk-7")
    state = journal.open(switch(Verb.SWITCHOVER))
    held = Pause(topic="", who="ann@desk-7", why=pause_reason(state), since_ms=1)
    ledger.append([pause_record(held)])
    ledger.dies_at, ledger.behind = ledger.appends + dies_at, behind
    with pytest.raises(Killed):
        abandon(ledger, journal, "s-1", "not today")
    if journal.state("s-1").end is None or pauses(ledger.view(), wall_ms()):
        assert abandon(ledger, journal, "s-1", "not today").end is not None
    assert (journal.state("s-1").end is not None, pauses(ledger.view(), wall_ms())) == (True, {})
    with pytest.raises(Refused) as refused:
        abandon(ledger, journal, "s-1", "not today")
    golden(refused.value)


@pytest.mark.slow
def test_a_switch_is_given_up_before_it_promotes_and_not_after(golden: Golden) -> None:
    ledger, world = Ledger(), World()
    journal = Journal(ledger, "ann@desk-7")
    journal.open(switch(Verb.SWITCHOVER))
    acts = world.acts()
    for step in STEPS[Verb.SWITCHOVER]:
        if step is Step.PROMOTE:
            break
        do_step(journal, "s-1", step, acts[step])
    begun = journal.begin("s-1", Step.PROMOTE)
    assert journal.abandon("s-1", "a producer still writes").end is not None, "its last look may refuse for good"
    with pytest.raises(Superseded) as caught:
        journal.done("s-1", begun, Evidence(sentence="late"))
    ended = {"switch": "s-1", "outcome": "abandoned", "who": "ann@desk-7"}
    assert data_of(caught.value) == ("switch.lost.ended", ended)
    golden(caught.value, "done late")
    with pytest.raises(Refused) as refused:
        journal.begin("s-1", Step.REDIRECT)
    golden(refused.value, "begun late")
    journal.open(switch(Verb.SWITCHOVER, "s-2"))
    for step in STEPS[Verb.SWITCHOVER]:
        do_step(journal, "s-2", step, acts[step])
        if step is Step.PROMOTE:
            break
    with pytest.raises(Refused) as refused:
        journal.abandon("s-2", "changed my mind")
    golden(refused.value, "promoted")
    advance(journal, "s-2", acts)
    with pytest.raises(Refused) as refused:
        journal.abandon("s-2", "changed my mind")
    golden(refused.value, "finished")
    journal.open(switch(Verb.SWITCHOVER, "s-3"))
    assert journal.abandon("s-3", "too early").end is not None
    with pytest.raises(Refused) as refused:
        journal.begin("s-3", Step.READINESS)
    golden(refused.value, "abandoned")


@pytest.mark.parametrize("until_ms", [0, 2])
def test_a_switch_that_is_given_up_puts_back_the_pause_that_it_found(until_ms: int) -> None:
    corrupt = Pause(topic="", who="eve@desk-9", why="the source is corrupt", since_ms=1, until_ms=until_ms)
    ledger = Ledger()
    journal = Journal(ledger, "ann@desk-7")
    state = journal.open(switch(Verb.FAILOVER))
    for step in (Step.READINESS, Step.FREEZE):
        do_step(journal, "s-1", step, lambda *_: Evidence(sentence="seen", facts={"paused": asdict(corrupt)}))
    ledger.append([pause_record(replace(corrupt, why=pause_reason(state), until_ms=0))])
    abandon(ledger, journal, "s-1", "not today")
    assert pauses(ledger.view(), wall_ms()) == ({} if until_ms else {"": corrupt}), "unless its time has passed"


def test_an_operator_who_pauses_a_flow_while_its_switch_is_given_up_is_obeyed() -> None:
    ledger = Ledger()
    journal = Journal(ledger, "ann@desk-7")
    state = journal.open(switch(Verb.FAILOVER))
    ledger.append([pause_record(Pause(topic="", who="ann@desk-7", why=pause_reason(state), since_ms=1))])
    corrupt = Pause(topic="", who="eve@desk-9", why="the source is corrupt", since_ms=1)
    slow = Slow(records=ledger.records, meanwhile=lambda: ledger.append([pause_record(corrupt)]))
    abandon(slow, Journal(slow, "ann@desk-7"), "s-1", "not today")
    assert pauses(ledger.view(), wall_ms()) == {"": corrupt}
    assert journal.state("s-1").end is not None


def test_a_switch_that_promotes_while_it_is_given_up_keeps_its_pause(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    ledger, world = Ledger(), World()
    ann, bob = Journal(ledger, "ann@desk-7"), Journal(ledger, "bob@desk-8")
    state = ann.open(switch(Verb.SWITCHOVER))
    acts = world.acts()
    steps = STEPS[Verb.SWITCHOVER]
    for step in steps[: steps.index(Step.PROMOTE)]:
        do_step(ann, "s-1", step, acts[step])
    held = Pause(topic="", who="ann@desk-7", why=pause_reason(state), since_ms=1)
    ledger.append([pause_record(held)])
    real = bob.abandon

    def late(*words: Any) -> SwitchState:
        do_step(ann, "s-1", Step.PROMOTE, acts[Step.PROMOTE])
        return real(*words)

    monkeypatch.setattr(bob, "abandon", late)
    with pytest.raises(Refused) as refused:
        abandon(ledger, bob, "s-1", "not today")
    golden(refused.value)
    assert pauses(ledger.view(), wall_ms()) == {"": held}


def test_rows_of_any_number_come_back_and_a_missing_part_is_told(golden: Golden) -> None:
    rows = tuple({"topic": "orders", "partition": number, "end": number * 7} for number in range(1_000))
    done = StepDone(
        step=Step.FREEZE,
        who="ann@desk-7",
        begun_ms=1,
        done_ms=2,
        evidence=Evidence(sentence="seen", facts={"a": None}, rows=rows),
    )
    ledger = Ledger()
    Journal(ledger, "ann@desk-7").open(switch(Verb.FAILOVER))
    records = done_records("s-1", done, part_bytes=5_000)
    assert len(records) > 5
    ledger.append(records)
    assert switch_states(ledger.view())["s-1"].done[Step.FREEZE] == done
    ledger.append([replace(records[2], value=None)])
    with pytest.raises(BadInput) as wrong:
        switch_states(ledger.view())
    golden(wrong.value)


@pytest.mark.parametrize("verb", Verb)
def test_every_step_has_a_sentence(verb: Verb) -> None:
    made = switch(verb)
    sentences = [sentence(made, step) for step in STEPS[verb]]
    assert len(set(sentences)) == len(sentences)
    assert next_step(SwitchState(switch=made, offset=0)) is Step.READINESS
