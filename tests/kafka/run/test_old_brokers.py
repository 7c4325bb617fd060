"""Kafka 3.9.1 on one side: switches, drills, comparisons and windows do there what they do on today's brokers.

`make test` goes from 4.3.0 to 3.9.1, and back from there in failbacks. `make test-all` has both ways, and windows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.features.verify.acts.wanted import Wanted
from ferry.ledger.report import RunState
from ferry.model import DifferenceKind
from ferry.model.switch import Step, SwitchOptions, SwitchOutcome, SwitchState, Verb, next_step
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send
from tests.kafka.run.switching import OPTIONS, Clients, Pair, pair_of, read_there
from tests.kafka.run.test_backfill import LANE, History
from tests.kafka.run.test_drills import LATER, PARTITIONS, RECORDS, drill_lab, drilled, left_on
from tests.kafka.run.test_verify import AT, flipped, found_in, messages, rewrite, verified
from tests.program import warm_ferry as ferry
from tests.said import facts_in, of_code

FROM_TODAY, FROM_OLD = "from 4.3.0 to 3.9.1", "from 3.9.1 to 4.3.0"


@pytest.fixture(params=[FROM_TODAY, pytest.param(FROM_OLD, marks=pytest.mark.extra)])
def sides(
    request: pytest.FixtureRequest, source_cluster: RunningCluster, old_cluster: RunningCluster
) -> tuple[RunningCluster, RunningCluster]:
    """Source and target."""
    return (source_cluster, old_cluster) if request.param == FROM_TODAY else (old_cluster, source_cluster)


def switched(pair: Pair, verb: Verb, switch: str, options: SwitchOptions) -> SwitchState:
    """A switch from its opening to its end."""
    with pair.switcher(verb) as switcher:
        state = switcher.open(switch, options, "bob")
        while (due := next_step(state)) is not None:
            state = switcher.step(switch, due)
        return switcher.finish(switch)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("policy", ["Default", pytest.param("Identity", marks=pytest.mark.extra)])
def test_clients_move_there_and_come_back(
    sides: tuple[RunningCluster, RunningCluster], clients: Clients, tmp_path: Path, policy: str
) -> None:
    here, there = sides
    pair = pair_of(here, there, clients, policy)
    pair = replace(pair, more={**pair.more, f"{pair.back}.ferry.start": "latest"})
    clients.produce(here, 20)
    clients.consume(here, [clients.topic], 7)
    pair.run(pair.flow)
    clients.produce(here, 10)

    state = switched(pair, Verb.SWITCHOVER, "over-1", OPTIONS)
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    (frozen,) = [row for row in state.rows(Step.FREEZE) if "group" in row]
    assert (frozen["group"], sum(lag for _, _, _, lag in frozen["offsets"])) == (clients.group, 23)
    assert sum(offset for _, _, offset, _ in frozen["translated"]) == 7
    clients.produce(there, 12)
    clients.consume(there, read_there(pair), 30)

    options = replace(OPTIONS, export=str(tmp_path / "stranded.jsonl"))
    state = switched(pair, Verb.FAILBACK, "back-1", options)
    assert state.end is not None
    assert (state.end.outcome, state.fact(Step.STRANDED, "records")) == (SwitchOutcome.FINISHED, 0)
    clients.produce(here, 5)
    clients.consume(here, read_there(pair.turned))
    assert sorted(clients.read) == sorted(clients.produced)


@pytest.mark.timeout(240)
def test_a_failover_counts_what_is_lost_and_a_failback_names_it(
    sides: tuple[RunningCluster, RunningCluster], clients: Clients, tmp_path: Path, impatient: None
) -> None:
    here, there = sides
    pair = pair_of(here, there, clients, "Default")
    clients.produce(here, 20)
    clients.consume(here, [clients.topic], 7)
    pair.run(pair.flow)
    stranded = clients.produce(here, 6)

    state = switched(pair.lost, Verb.FAILOVER, "lost-1", OPTIONS)
    assert state.end is not None
    assert (state.end.outcome, state.fact(Step.LOSS, "unsure")) == (SwitchOutcome.FINISHED, PARTITIONS)
    assert [row["known"] for row in state.rows(Step.FREEZE) if "group" in row] == ["checkpoint"]
    clients.produce(there, 12)
    clients.consume(there, read_there(pair))

    file = tmp_path / "stranded.jsonl"
    state = switched(pair, Verb.FAILBACK, "back-1", replace(OPTIONS, export=str(file)))
    assert state.end is not None
    assert (state.end.outcome, state.fact(Step.STRANDED, "records")) == (SwitchOutcome.FINISHED, len(stranded))
    named = [str(json.loads(line)["value"]).encode() for line in file.read_text().splitlines()]
    assert sorted(named) == sorted(stranded)
    clients.produce(here, 5)
    clients.consume(here, read_there(pair.turned))
    assert len(clients.read) == len(set(clients.read)), "nothing is read twice"
    assert set(clients.produced) - set(clients.read) <= set(named), "what is not read is named"


def test_a_shadow_drill_finds_what_is_there_and_leaves_nothing(
    sides: tuple[RunningCluster, RunningCluster], tmp_path: Path
) -> None:
    lab = drill_lab(*sides)
    before = left_on(lab.target, lab)
    body = drilled(lab, tmp_path, "shadow", "--from", "earliest", "--approve-by", "anna")
    assert (body["outcome"], body["deviations"], body["refusals"]) == ("success", [], [])
    checked = body["verification"]
    assert (checked["equal"], checked["records"], checked["partitions"]) == (True, RECORDS + LATER, PARTITIONS)
    (group,) = body["groups"]
    assert (group["committed"], group["exact"], group["reread"], group["skipped"], group["beyond"]) == (2, 2, 0, 0, 0)
    assert left_on(lab.target, lab) == before


def test_a_planted_difference_is_found_where_it_is(sides: tuple[RunningCluster, RunningCluster], topic: str) -> None:
    source, target = sides
    topics = [f"{topic[-40:]}-{name}" for name in ("flipped", "short", "sound")]
    for one in topics:
        create_topic(source, one)
        send(producer(source, compression_type="lz4"), one, messages())
    settings = {"tasks.max": "1"}  # one transaction, so that the copies can be written again offset by offset
    lab = Lab(source=source, target=target, alias=new_alias(), topics=tuple(topics), settings=settings)
    assert lab.micro_run().state is RunState.SUCCESS
    result = verified(lab)
    assert (result.is_equal, result.is_complete, result.records) == (True, True, 3 * len(messages()))
    wrong, short, _ = (lab.target_topic(one) for one in topics)
    rows = {name: read_topic(target.bootstrap, name) for name in (wrong, short)}
    rewrite(target, {wrong: flipped(rows[wrong]), short: {0: rows[short][0][:AT]}})
    result = verified(lab)
    assert found_in(result, topics[0]) == [(DifferenceKind.VALUE, 0, (AT, AT + 1), 0, (AT, AT + 1))]
    assert found_in(result, topics[1]) == [(DifferenceKind.MISSING, 0, (AT, len(messages())), 0, (AT, AT))]
    assert found_in(result, topics[2]) == []
    assert verified(lab, Wanted(topics=[topics[2]])).is_equal


def test_windows_of_history_are_copied_compared_and_dropped(
    sides: tuple[RunningCluster, RunningCluster], topic: str, tmp_path: Path
) -> None:
    history = History(*sides, topic)
    history.record(0.5, 1.5, 2.5)
    history.record(0.2, partition=1)
    assert history.copy(history.hours(0, 1)).records == 2
    history.record(0.9, 1.1, partition=1)  # the first came late: the window that it belongs to in time was copied
    assert [history.copy(history.hours(hour, hour + 1)).records for hour in (1, 2, 0)] == [3, 1, 0]
    assert history.scratch() == {0: ["0.5", "1.5", "2.5"], 1: ["0.2", "0.9", "1.1"]}
    config = history.lab.write(tmp_path)
    compared = ferry("verify", "--lane", LANE, "--json", config=config)
    assert (compared.code, compared.json("verify")["records"]) == (0, 6), compared.err
    assert history.lab.micro_run().records == 6
    dropped = ferry("lanes", "drop", LANE, "--yes", "--json", config=config)
    assert dropped.code == 0, dropped.err
    assert dropped.json("lanes-drop")["topics"] == [f"{history.lab.target_topic(topic)}.backfill.{LANE}"]
    assert history.lab.assert_equal() == 6


@pytest.mark.extra
def test_settings_that_the_newer_kafka_no_longer_has_are_left_out_and_the_topic_is_copied(
    old_cluster: RunningCluster, source_cluster: RunningCluster, topic: str
) -> None:
    gone = {"message.format.version": "2.8-IV1", "message.downconversion.enable": "false"}
    create_topic(old_cluster, topic, partitions=1, config={**gone, "retention.ms": "864000000"})
    send(producer(old_cluster), topic, numbered(10, partitions=1))
    lab = Lab(source=old_cluster, target=source_cluster, alias=new_alias(), topics=(topic,))
    first = lab.micro_run()
    assert (first.state, first.records) == (RunState.SUCCESS, 10)
    named = [facts_in(one)["setting"] for one in of_code("topic.setting-unknown", first.plan.notes)]
    assert named == sorted(gone)
    assert lab.micro_run().state is RunState.SUCCESS
    assert lab.assert_equal() == 10
