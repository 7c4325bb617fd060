"""A topic that vanishes from the source, and one that was never there, on real brokers."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from ferry.config.settings import parse_settings
from ferry.dev import RunningCluster
from ferry.errors import EmptyFilter
from ferry.features.groups.acts.of_run import checkpoint
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from ferry.plan.lag import measure_lag
from ferry.plan.rules.lag import is_behind
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, send
from tests.program import warm_ferry as ferry
from tests.said import facts_in, of_code
from tests.tiers import ANSWER_S


def topics_of(cluster: RunningCluster) -> set[str]:
    return set(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics)


def test_a_source_topic_that_was_deleted_makes_the_run_red_and_the_lag_unknown(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    gone, stays, typo = f"{topic}-gone", f"{topic}-stays", f"{topic}-typo"
    for name in (gone, stays):
        create_topic(source_cluster, name, 2)
        send(producer(source_cluster), name, numbered(100, partitions=2))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(gone, stays, typo))
    first = lab.micro_run()
    assert (first.state, first.records) == (RunState.SUCCESS, 200)
    assert [facts_in(note)["topic"] for note in of_code("topics.none.one", first.plan.notes)] == [typo]

    ids = {receipt.source_topic_id for receipt in lab.receipts() if receipt.source.topic == gone}
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    shown = str(admin.describe_topics(TopicCollection([gone]))[gone].result(ANSWER_S).topic_id)
    assert ids == {shown.replace("+", "-").replace("/", "_")}, "librdkafka prints it in base64's other alphabet"

    delete_topic(source_cluster, gone)
    send(producer(source_cluster), stays, numbered(50, partitions=2, start=100))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 50)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.kind) == (gone, RefusalKind.TOPIC_GONE)
    assert f"source topic {gone}" in refusal.message

    with caplog.at_level(logging.WARNING, "ferry"):
        lags = measure_lag(lab.flow)
    assert [(lag.source.topic, is_behind(lag, max_records=None, max_seconds=3_600)) for lag in lags] == [
        (gone, True),
        (gone, True),
        (stays, False),
        (stays, False),
    ]
    assert typo in caplog.text

    skipping = replace(lab, settings={"ferry.guard.topic.gone": "skip"})
    report = skipping.micro_run()
    assert report.state is RunState.SUCCESS
    assert [gone in note for note in of_code("passed.left-out", report.plan.notes)] == [True]
    assert {lag.source.topic for lag in measure_lag(skipping.flow)} == {stays}

    without = replace(lab, topics=(stays,))
    assert without.micro_run().state is RunState.SUCCESS


def test_a_filter_that_matches_nothing_makes_the_run_red_but_not_the_idle_one_of_two_opposite_flows(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(f"{topic[:-1]}_.*", f"{topic}x"))
    report = lab.micro_run()
    assert report.state is RunState.FAILED
    assert [(refusal.topic, refusal.kind) for refusal in report.refusals] == [
        ("", RefusalKind.TOPICS_NONE),
        (f"{topic}x", RefusalKind.TOPICS_NONE),
    ]
    assert report.refusals[0].code == "topics.none.matched"
    assert dict(report.refusals[0].facts)["patterns"] == f"{topic[:-1]}_.*"
    with pytest.raises(EmptyFilter):
        measure_lag(lab.flow)
    answer = ferry("lag", "--json", config=lab.write(tmp_path))
    assert (answer.code, answer.json("error")["error"]["kind"]) == (1, "refused"), "the code of plan and run"
    internal = {f"mm2-offset-syncs.{lab.alias}.internal", f"{lab.alias}.checkpoints.internal"}
    with lab.runs() as runs:
        assert checkpoint(runs, report.plan.run) is None
    assert not internal & topics_of(target_cluster), "what was refused as a whole leaves nothing behind"

    skipping = replace(lab, settings={"ferry.guard.topics.none": "skip"})
    report = skipping.micro_run()
    assert (report.state, len(report.plan.notes)) == (RunState.SUCCESS, 2)
    with skipping.runs() as runs:
        checkpoint(runs, report.plan.run)
    assert internal <= topics_of(target_cluster), "a flow that waits shows that it is alive"
    assert measure_lag(skipping.flow) == []

    # The list is right, but only one side has such topics: first nothing of them, then a copy.
    back = f"t{lab.alias}->{lab.alias}"
    pair = replace(lab, topics=(topic,), settings={f"{back}.enabled": "true"})
    opposite = parse_settings(pair.text, "lab.properties").flow(back)
    for run, why in (("before", "the opposite flow"), ("after", "what came from")):
        with MicroRuns(opposite, patience_s=ANSWER_S) as runs:
            idle = runs.report(runs.open_run(run, local_origin()).run)
        assert idle.state is RunState.SUCCESS
        assert [why in note for note in of_code("topics.idle", idle.notes)] == [True]
        assert pair.micro_run().state is RunState.SUCCESS
