"""Groups on the way back from a switch: runs lead them on, and what a failover then reads again is known before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.groups.acts.of_run import sync_groups
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.features.switch.rules.report import moved_groups
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.model import Difference
from ferry.model.switch import Step, SwitchOptions, SwitchState, Verb
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import wait_until
from tests.kafka.run.switching import (
    OPTIONS,
    PARTITIONS,
    Clients,
    Pair,
    begin_group,
    member,
    pair_of,
    read_there,
    refuses,
    switch_killed_at_every_change,
)
from tests.said import data_of
from tests.tiers import ANSWER_S

POLICIES = pytest.mark.parametrize("policy", ["Default", "Identity"])


def switched(pair: Pair, verb: Verb, name: str, options: SwitchOptions = OPTIONS) -> SwitchState:
    """A switch along the flow there, from its begin to its end."""
    with pair.switcher(verb) as switcher:
        switcher.open(name, options, "bob")
        return switcher.run(name)


def moved(state: SwitchState, group: str) -> dict[str, object]:
    """The group's row of the step `groups`."""
    (row,) = [row for row in state.rows(Step.GROUPS) if row["group"] == group]
    assert row["outcome"] == "moved", row
    return row


def again(values: list[bytes]) -> int:
    """How many records were read that had been read before."""
    return sum(times - 1 for times in Counter(values).values())


def failed_checks(pair: Pair) -> dict[str, str]:
    """What readiness of the flow there has against it."""
    found = check_readiness(pair.settings.flow(pair.flow), Rpo(), back=True, patience_s=ANSWER_S)
    return {check.name: check.message for check in found.failed}


def verified(pair: Pair, flow: str) -> list[Difference]:
    """What differs between the clusters of what the flow has copied."""
    with Verifier(pair.settings.flow(flow), Wanted(), patience_s=ANSWER_S) as verifier:
        survey = verifier.survey()
        found = verifier.sum_up(survey, verifier.compare(survey))
    assert found.records > 0
    return list(found.differences)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("policy", "protocol"), [("Default", "classic"), ("Identity", "classic"), ("Identity", "consumer")]
)
def test_a_failover_after_a_switchover_loses_nothing_and_reads_no_more_again_than_it_says(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    clients: Clients,
    impatient: None,
    policy: str,
    protocol: str,
) -> None:
    """One of the switchovers is killed at each of its changes, and continued."""
    clients.protocol = protocol
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    there, home = read_there(pair), read_there(pair.turned)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 12)
    pair.run(pair.flow)
    kill = (policy, protocol) == ("Identity", "classic")
    state = (switch_killed_at_every_change if kill else switched)(pair, Verb.SWITCHOVER, "over-1", OPTIONS)
    assert state.fact(Step.REVERSE, "started") is True

    clients.produce(target_cluster, 10)
    clients.consume(target_cluster, there, 4)  # so that it still has some to read that were born here
    pair.run(pair.back)
    assert failed_checks(pair.turned) == {}
    clients.consume(target_cluster, there, 3)

    state = switched(pair.turned.lost, Verb.FAILOVER, "lost-1")
    said = moved(state, clients.group)["again"]
    clients.consume(source_cluster, home)
    assert set(clients.read) == set(clients.produced), "nothing is lost"
    if policy == "Identity":
        assert again(clients.read) == 3, "what it had read since its last checkpoint"
    assert isinstance(said, int)
    assert again(clients.read) <= said


@pytest.mark.timeout(300)
@POLICIES
def test_clients_go_there_and_back_and_there_and_back_and_each_checkpoint_counts(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    clients: Clients,
    tmp_path: Path,
    impatient: None,
    policy: str,
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    there, home = read_there(pair), read_there(pair.turned)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 9)
    pair.run(pair.flow)
    for number in range(2):
        switched(pair, Verb.SWITCHOVER, f"over-{number}")
        clients.produce(target_cluster, 8)
        clients.consume(target_cluster, there, 5)
        pair.run(pair.back)
        assert failed_checks(pair.turned) == {}, number
        if number == 0:
            options = replace(OPTIONS, export=str(tmp_path / "stranded.jsonl"))
            state = switched(pair, Verb.FAILBACK, "back-0", options)
            assert moved(state, clients.group)["again"] == 0
            clients.produce(source_cluster, 8)
            clients.consume(source_cluster, home, 5)
            pair.run(pair.flow)
            assert failed_checks(pair) == {}
        for flow in (pair.flow, pair.back):
            assert verified(pair, flow) == [], "what clients wrote on either side is no difference"
    assert again(clients.read) == 0, "planned switches double nothing"

    clients.consume(target_cluster, there, 4)
    state = switched(pair.turned.lost, Verb.FAILOVER, "lost-1")
    said = moved(state, clients.group)["again"]
    clients.consume(source_cluster, home)
    assert set(clients.read) == set(clients.produced), "nothing is lost"
    if policy == "Identity":
        assert again(clients.read) == 4, "what it had read since its last checkpoint"
    assert isinstance(said, int)
    assert again(clients.read) <= said


@pytest.mark.timeout(240)
@POLICIES
def test_a_failover_before_any_switch_reads_no_more_again_than_it_says(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, impatient: None, policy: str
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    clients.produce(source_cluster, 20)
    pair.run(pair.flow)
    clients.consume(source_cluster, [clients.topic], 7)
    assert failed_checks(pair) == {}
    pair.run(pair.flow)
    clients.consume(source_cluster, [clients.topic], 4)
    state = switched(pair.lost, Verb.FAILOVER, "lost-1")
    said = moved(state, clients.group)["again"]
    clients.consume(target_cluster, read_there(pair))
    assert set(clients.read) == set(clients.produced), "nothing is lost"
    assert again(clients.read) == 4, "what it had read since its last checkpoint"
    assert isinstance(said, int)
    assert 4 <= said <= 13 + PARTITIONS, "all that is copied behind it, with the markers"


@pytest.mark.timeout(240)
def test_a_failover_does_not_end_well_with_no_group_moved_where_no_run_has_told_the_groups(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, impatient: None
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, "Identity")
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 7)
    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:  # it dies before it looks at the groups
        plan = runs.open_new("killed", local_origin())
        attempt = runs.begin(plan, local_origin())
        runs.record_outcome(plan, attempt, copy_all(runs, plan, attempt))
    refuses(pair.lost, Verb.FAILOVER, "switch.not-ready", match="--leave-unknown", check="groups")

    with pair.lost.switcher(Verb.FAILOVER) as switcher:
        switcher.open("lost-1", replace(OPTIONS, leave_unknown=True), "bob")
        state = switcher.run("lost-1")
    assert state.rows(Step.GROUPS) == ()
    assert f"no run of {pair.flow} " in state.done[Step.GROUPS].evidence.sentence
    assert "is not known" in str(state.fact(Step.GROUPS, "unknown"))


@pytest.mark.timeout(240)
def test_a_group_that_somebody_moved_on_the_way_back_is_named_and_left_until_it_is_taken_over(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, impatient: None
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, "Identity")
    group = clients.group
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic])
    pair.run(pair.flow)
    switched(pair, Verb.SWITCHOVER, "over-1")
    begin_group(source_cluster, group, clients.topic)  # an operator's rewind on the cluster that was left
    clients.produce(target_cluster, 6)
    clients.consume(target_cluster, [clients.topic])
    pair.run(pair.back)

    against = failed_checks(pair.turned)
    assert against.keys() == {"checkpoints"}
    assert f"ferry groups sync --force --group {group}" in against["checkpoints"]
    check = check_readiness(pair.settings.flow(pair.back), Rpo(), back=True, planned=True, patience_s=ANSWER_S)
    assert check.ready, "a planned switch asks the source where groups stand"
    check = check_readiness(pair.settings.flow(pair.back), Rpo(), back=True, leave=(group,), patience_s=ANSWER_S)
    assert check.ready
    assert [one.name for one in check.checks if f"1 group ({group})" in one.message] == ["groups", "checkpoints"]
    lost = pair.turned.lost
    with lost.switcher(Verb.FAILOVER) as switcher:
        with pytest.raises(Refused, match=f"groups: 1 .*{group}.* --leave-group {group}"):
            switcher.open("lost-1", OPTIONS, "bob")
        assert switcher.states() == {}
        preview = switcher.preview("lost-1", replace(OPTIONS, leave_groups=(group,)))
        assert preview.readiness.ready

    flow = pair.settings.flow(pair.back)
    with MicroRuns(flow, patience_s=ANSWER_S) as runs:
        sync_groups(runs, "by-hand", only=frozenset({group}), force=True)
    assert failed_checks(pair.turned) == {}
    state = switched(lost, Verb.FAILOVER, "lost-1")
    assert moved(state, group)["again"] == 0
    clients.produce(source_cluster, 3)
    clients.consume(source_cluster, [clients.topic])
    assert sorted(clients.read) == sorted(clients.produced), "each is read once"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILOVER])
def test_a_group_that_was_rewound_at_the_source_reads_from_there_on_the_other_side(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, impatient: None, verb: Verb
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, "Identity")
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 14)
    pair.run(pair.flow)  # the target has it further on
    begin_group(source_cluster, clients.group, clients.topic)
    clients.consume(source_cluster, [clients.topic], 3)
    if verb is Verb.FAILOVER:
        pair.run(pair.flow)
    state = switched(pair if verb is Verb.SWITCHOVER else pair.lost, verb, "s-1")
    assert moved(state, clients.group)["outcome"] == "moved"
    clients.produce(target_cluster, 4)
    found = clients.consume(target_cluster, [clients.topic])
    assert sorted(found + clients.read[14:17]) == sorted(clients.produced), "all that it was rewound for, each once"


@pytest.mark.timeout(240)
def test_a_group_at_work_is_left_where_it_is_when_that_is_asked_for_and_the_others_move(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, "Identity")
    busy = Clients(topic=clients.topic, group=f"{clients.group}-busy")
    begin_group(source_cluster, busy.group, clients.topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 8)
    pair.run(pair.flow)
    with member(source_cluster, busy.group, [clients.topic]) as reader:
        wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member")
        with pair.switcher(Verb.SWITCHOVER) as switcher:
            switcher.open("s-1", replace(OPTIONS, quiet_timeout_seconds=1.5), "bob")
            with pytest.raises(Refused) as refused:
                switcher.run("s-1")
            code, facts = data_of(refused.value)
            assert (code, facts["groups"]) == ("switch.not-quiet", busy.group)
            switcher.abandon("s-1", "it is to be left")
            switcher.open("s-2", replace(OPTIONS, leave_active=True), "bob")
            state = switcher.run("s-2")
    assert moved(state, clients.group)["again"] == 0
    (left,) = [row for row in state.rows(Step.GROUPS) if row["group"] == busy.group]
    assert (left["outcome"], "has members" in str(left["why"])) == ("left", True), left
    clients.produce(target_cluster, 4)
    clients.consume(target_cluster, [clients.topic])
    assert sorted(clients.read) == sorted(clients.produced), "each is read once"


@pytest.mark.timeout(240)
def test_what_a_group_reads_on_while_a_failover_moves_it_is_not_known(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    """The source answers, and nobody waits for it to be quiet."""
    pair = pair_of(source_cluster, target_cluster, clients, "Identity")
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 8)
    pair.run(pair.flow)
    with member(source_cluster, clients.group, [clients.topic]) as reader:
        wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member")
        state = switched(pair, Verb.FAILOVER, "s-1")
    row = moved(state, clients.group)
    assert row["again"] is None
    assert f"it has members on {pair.aliases[0]} still" in str(row["notes"])
    (told,) = moved_groups(state)
    assert (told.reread, told.skipped) == (None, None), "evidence says no number that nobody measured"


@pytest.mark.timeout(240)
def test_a_group_that_no_run_looks_at_is_named_as_one_without_a_checkpoint(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, "Identity")
    pair = replace(pair, more={**pair.more, "refresh.groups.enabled": "false"})
    late = f"{clients.group}-late"
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 8)
    pair.run(pair.flow)
    assert failed_checks(pair) == {}
    begin_group(source_cluster, late, clients.topic)
    pair.run(pair.flow)
    against = failed_checks(pair)
    assert against.keys() == {"checkpoints"}
    assert f" no run checks group {late}" in against["checkpoints"]
    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:
        sync_groups(runs, "by-hand", only=frozenset({late}))
    assert failed_checks(pair) == {}
