"""Records that the source deleted before they were copied, on real brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.ledger.ledger import gaps
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send, whole_ledger
from tests.program import warm_ferry as ferry
from tests.said import codes
from tests.tiers import ANSWER_S


def test_a_partition_goes_on_behind_what_retention_took(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic)
    client = producer(source_cluster, linger_ms=500)
    send(client, topic, numbered(100))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 100
    for start in (100, 150):  # a batch each: retention takes whole segments, so it ends where a batch begins
        send(client, topic, numbered(50, start=start))
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    place = TopicPartition(topic, 0, 150)
    assert admin.delete_records([place])[place].result(ANSWER_S).low_watermark == 150

    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.FAILED, 0)
    (refusal,) = report.refusals
    assert refusal.kind is RefusalKind.RETENTION_PASSED
    assert "records 100 to 149 " in refusal.message
    assert "ferry.guard.retention.passed = skip" in refusal.message

    skipping = replace(lab, settings={"ferry.guard.retention.passed": "skip"})
    report = skipping.micro_run()
    assert report.state is RunState.SUCCESS
    assert codes(report.plan.notes) == ["passed.skipped"]
    (receipt,) = report.receipts
    assert receipt.start == 150
    with lab.runs() as runs:
        (gap,) = gaps(whole_ledger(runs), "live")
    assert (gap.start, gap.end, gap.why, gap.run) == (100, 150, RefusalKind.RETENTION_PASSED, report.plan.run)
    wanted = [*range(100), *range(150, 200)]
    rows = read_topic(target_cluster.bootstrap, lab.target_topic(topic))[0]
    assert [int((row[2] or b"").partition(b":")[0]) for row in rows] == wanted

    config = skipping.write(tmp_path)
    answer = ferry("ledger", "--topic", topic, "--offset", "120", "--json", config=config)
    assert (answer.code, answer.json("ledger-offset")["receipts"]) == (1, [])
    (skipped,) = answer.json("ledger-offset")["skipped"]
    assert (skipped["start"], skipped["end"], skipped["why"]) == (100, 150, "retention-passed")
    said = ferry("ledger", "--topic", topic, "--offset", "120", config=config).out
    assert f"offset 120 of {topic}-0 was skipped by run {report.plan.run}" in said

    send(client, topic, numbered(10, start=200))
    report = skipping.micro_run()
    assert (report.state, report.records, report.plan.notes) == (RunState.SUCCESS, 10, ())
