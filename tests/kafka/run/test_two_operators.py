"""Two processes at one switch: the one that slept inside a step, or a checkpoint, changes nothing when it wakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.errors import Superseded
from ferry.features.groups.acts import checkpoint
from ferry.features.groups.acts.of_run import checkpoint as checkpoint_groups
from ferry.features.switch.acts import groups, stop, switcher
from ferry.features.switch.acts.journal import Journal
from ferry.features.switch.acts.switcher import Switcher
from ferry.features.switch.settings import SwitchHook
from ferry.ledger.ledger import pauses
from ferry.model import Pause
from ferry.model.switch import STEPS, Step, StepBegun, SwitchOutcome, Verb
from ferry.run.ledger.access import LedgerAccess
from ferry.run.ledger.pausing import lift_pause, write_pause
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import create_topic
from tests.kafka.run.switching import IDENTITY, OPTIONS, PARTITIONS, Clients, Pair, begin_group, rest
from tests.said import data_of
from tests.tiers import ANSWER_S


def operator(pair: Pair, who: str, hook: SwitchHook | None = None) -> Switcher:
    """Somebody at the switchover."""
    settings = pair.settings
    return Switcher(settings, settings.flow(pair.flow), Verb.SWITCHOVER, who=who, hook=hook, patience_s=ANSWER_S)


def sleeping(patch: pytest.MonkeyPatch, module: Any, name: str, meanwhile: Callable[[], None]) -> None:
    """The first process that calls this sleeps behind it while something else happens."""
    real, asleep = getattr(module, name), [True]

    def waking(*given: Any, **named: Any) -> Any:
        found = real(*given, **named)
        if asleep.pop() if asleep else False:
            meanwhile()
        return found

    patch.setattr(module, name, waking)


@pytest.fixture
def pair(source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients) -> Pair:
    """With names that are kept; the group has read some of what there is."""
    more = {"replication.policy.class": IDENTITY}
    made = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group, more=more)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    rest(made)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 7)
    made.run(made.flow)
    return made


def up_to(pair: Pair, step: Step) -> None:
    """Ann opens the switch, and does what comes before a step."""
    with operator(pair, "ann@desk-7") as ann:
        ann.open("s-1", OPTIONS, "eve")
        state = ann.state("s-1")
        for one in STEPS[Verb.SWITCHOVER]:
            if one is step:
                break
            state = ann.step("s-1", one)
        assert step not in state.done


def finished_by_bob(pair: Pair, hook: SwitchHook | None = None) -> None:
    """Another process goes on where Ann's seems to be dead."""
    with operator(pair, "bob@desk-8", hook) as bob:
        state = bob.run("s-1")
    assert state.end is not None
    assert (state.end.outcome, state.end.who) == (SwitchOutcome.FINISHED, "bob@desk-8")


def assert_finished_by_bob(error: Superseded) -> None:
    """Ann's process learns that the other one has ended the switch."""
    code, facts = data_of(error)
    assert (code, facts["outcome"], facts["who"]) == ("switch.lost.ended", "finished", "bob@desk-8")


@pytest.mark.parametrize("asleep_in", ["plan_groups", "snapshot_record"])
def test_groups_that_have_read_on_since_are_not_put_back(
    pair: Pair, clients: Clients, monkeypatch: pytest.MonkeyPatch, asleep_in: str
) -> None:
    up_to(pair, Step.GROUPS)
    clients.consume(pair.here, [clients.topic], 3)  # the last checkpoint does not have it

    def meanwhile() -> None:
        finished_by_bob(pair)
        clients.consume(pair.there, [clients.topic])

    sleeping(monkeypatch, groups, asleep_in, meanwhile)
    with operator(pair, "ann@desk-7") as ann, pytest.raises(Superseded) as superseded:
        ann.step("s-1", Step.GROUPS)
    assert_finished_by_bob(superseded.value)
    clients.produce(pair.there, 4)
    clients.consume(pair.there, [clients.topic])
    assert sorted(clients.read) == sorted(clients.produced), "each is read once"


def test_a_checkpoint_that_wakes_after_a_finished_switch_leaves_the_group_where_it_reads_on(
    pair: Pair, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group has no members at that moment, so the broker would take the commit."""
    clients.consume(pair.here, [clients.topic], 1)

    def meanwhile() -> None:
        clients.consume(pair.here, [clients.topic], 11)
        up_to(pair, Step.PROMOTE)
        finished_by_bob(pair)
        clients.produce(pair.there, 6)
        clients.consume(pair.there, [clients.topic])

    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:
        plan = runs.open_new("late", local_origin())
        runs.record_outcome(plan, runs.begin(plan, local_origin()), [])
        sleeping(monkeypatch, checkpoint, "commit_offsets", meanwhile)
        assert checkpoint_groups(runs, plan.run) is None
    clients.produce(pair.there, 4)
    clients.consume(pair.there, [clients.topic])
    assert sorted(clients.read) == sorted(clients.produced), "each is read once"


def test_a_checkpoint_that_a_run_commits_late_does_not_put_a_moved_group_back(
    pair: Pair, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run sleeps between its last check and the commit, which no broker can fence."""
    monkeypatch.setattr(checkpoint, "last_check", lambda *_, **__: None)
    clients.consume(pair.here, [clients.topic], 1)

    def meanwhile() -> None:
        clients.consume(pair.here, [clients.topic], 11)  # all but one, so of the same partition, too
        up_to(pair, Step.PROMOTE)

    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:
        plan = runs.open_new("late", local_origin())
        runs.record_outcome(plan, runs.begin(plan, local_origin()), [])
        sleeping(monkeypatch, checkpoint, "commit_offsets", meanwhile)
        outcome = checkpoint_groups(runs, plan.run)
    assert outcome is not None
    assert outcome.offsets, "the late commit was carried out"
    with operator(pair, "ann@desk-7") as ann:
        state = ann.run("s-1")
    assert state.fact(Step.PROMOTE, "moved_again") == [clients.group]
    clients.consume(pair.there, [clients.topic])
    assert sorted(clients.read) == sorted(clients.produced), "each is read once"


def test_the_hook_is_not_called_for_a_switch_that_another_process_has_finished(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = tmp_path / "called"
    hook = SwitchHook(command=f"sh -c 'echo $FERRY_SWITCH_TO >> {called}'", url=None)
    up_to(pair, Step.REDIRECT)
    sleeping(monkeypatch, switcher, "refuse_opposed", lambda: finished_by_bob(pair, hook))
    with operator(pair, "ann@desk-7", hook) as ann, pytest.raises(Superseded):
        ann.step("s-1", Step.REDIRECT)
    assert called.read_text().splitlines() == [pair.aliases[1]]


def test_a_flow_that_somebody_has_resumed_since_is_not_paused_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    up_to(pair, Step.STOP)
    flow = pair.settings.flow(pair.flow)

    def meanwhile() -> None:
        finished_by_bob(pair)
        with LedgerAccess(flow, patience_s=ANSWER_S) as ledger:
            lift_pause(ledger, "", "ann@desk-7", wall_ms())

    sleeping(monkeypatch, stop, "paused_before", meanwhile)
    with operator(pair, "ann@desk-7") as ann, pytest.raises(Superseded):
        ann.step("s-1", Step.STOP)
    with LedgerAccess(flow, patience_s=ANSWER_S) as ledger:
        assert pauses(ledger.view(), wall_ms()) == {}


@pytest.mark.parametrize("look", [1, 2])
def test_a_flow_back_that_has_been_paused_since_is_not_resumed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """Ann sleeps after each look at whether the step is still hers; after the last one she is fenced."""
    up_to(pair, Step.REVERSE)
    corrupt = Pause(topic="", who="eve@desk-9", why="the disk is full", since_ms=1)
    looks: list[int] = []

    def meanwhile() -> None:
        finished_by_bob(pair)
        with LedgerAccess(pair.settings.flow(pair.back), patience_s=ANSWER_S) as ledger:
            write_pause(ledger, corrupt)

    def asleep(journal: Journal, switch: str, begun: StepBegun) -> None:
        real(journal, switch, begun)
        looks.append(look)
        if len(looks) == look:
            meanwhile()

    with operator(pair, "ann@desk-7") as ann:
        real = Journal.refuse_lost
        monkeypatch.setattr(Journal, "refuse_lost", asleep)
        with pytest.raises(Superseded) as superseded:
            ann.step("s-1", Step.REVERSE)
        assert_finished_by_bob(superseded.value)
    assert len(looks) >= look, "she never looked so often"
    with LedgerAccess(pair.settings.flow(pair.back), patience_s=ANSWER_S) as ledger:
        assert pauses(ledger.view(), wall_ms()) == {"": corrupt}
