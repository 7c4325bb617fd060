"""A target whose policy or quota stands against topics: one sentence each, the others copied, nothing half done."""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.ledger.ledger import claims
from ferry.ledger.report import Report, RunState
from ferry.model import RefusalKind
from ferry.plan.options import RunOptions
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, whole_ledger
from tests.kafka.run.test_topic_changes import configure, settings_of
from tests.quotas import quota
from tests.tiers import ANSWER_S, PATIENCE

PATIENCE_S = 3 * PATIENCE


def lab_of(source: RunningCluster, target: RunningCluster, topic: str, *names: str) -> Lab:
    """A flow of topics with ten records each."""
    for name in names:
        create_topic(source, f"{topic}-{name}")
        send(producer(source), f"{topic}-{name}", numbered(10))
    return Lab(source=source, target=target, alias=new_alias(), topics=(f"{topic}-.*",))


def impatient_run(lab: Lab, run: str) -> Report:
    """A run that waits no longer for a quota than PATIENCE_S."""
    with lab.runs(PATIENCE_S) as runs:
        plan = runs.open_run(run, local_origin())
        return lab.copy(runs, plan)


def copies(lab: Lab) -> set[str]:
    """The names of the copies on the target, without their alias."""
    found = AdminClient({"bootstrap.servers": lab.target.bootstrap}).list_topics(timeout=ANSWER_S).topics
    return {name.removeprefix(f"{lab.alias}.") for name in found if name.startswith(f"{lab.alias}.")}


def test_a_topic_that_a_policy_of_the_target_forbids_is_refused_alone(
    source_cluster: RunningCluster, forgetful: RunningCluster, topic: str
) -> None:
    lab = lab_of(source_cluster, forgetful, topic, "fine", "forbidden")
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 10)
    (refused,) = report.refusals
    forbidden = f"{topic}-forbidden"
    assert (refused.topic, refused.partition, refused.kind) == (forbidden, None, RefusalKind.POLICY)
    for words in (
        f"topic {lab.target_topic(forbidden)} on cluster t{lab.alias} was not created",
        "ask the platform team for names like this",
        "create.topic.policy.class.name",
    ):
        assert words in refused.message
    assert copies(lab) == {f"{topic}-fine"}
    with lab.runs() as runs:
        assert set(claims(whole_ledger(runs))) == {lab.target_topic(f"{topic}-fine")}
    assert lab.assert_equal() == 10

    configure(source_cluster, f"{topic}-fine", segment_ms="1234", retention_ms="3600000")
    send(producer(source_cluster), f"{topic}-fine", numbered(5, start=10))
    report = replace(lab, topics=(f"{topic}-fine",)).micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 5)
    (refused,) = report.refusals
    assert (refused.topic, refused.kind) == (f"{topic}-fine", RefusalKind.POLICY)
    assert "at least a minute" in refused.message
    assert settings_of(forgetful, lab.target_topic(f"{topic}-fine")) == {}, "all of its changes or none"


def test_topics_for_which_the_quota_on_changes_leaves_no_room_are_refused_and_made_when_it_does(
    source_cluster: RunningCluster, forgetful: RunningCluster, topic: str
) -> None:
    lab = lab_of(source_cluster, forgetful, topic, "a", "b", "c")
    with lab.runs() as runs:  # the ledger is no part of what the quota is to bound here
        runs.open_run("first", local_origin(), RunOptions(only=frozenset({f"{topic}-a"})))
    with quota(lab.target, f"ferry.{lab.flow.flow}", "controller_mutation_rate", 0.01):
        report = impatient_run(lab, "bounded")
    made = copies(lab)
    assert report.state is RunState.PARTIAL
    assert {refused.topic for refused in report.refusals} == {f"{topic}-{name}" for name in "abc"} - made
    assert {refused.kind for refused in report.refusals} == {RefusalKind.QUOTA}
    for refused in report.refusals:
        assert f"topic {lab.target_topic(refused.topic)} on cluster t{lab.alias} was not changed" in refused.message
        assert "(controller_mutation_rate): raise the quota" in refused.message
    assert report.records == 10 * len(made)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 10 * (3 - len(made)))
    assert lab.assert_equal() == 30
