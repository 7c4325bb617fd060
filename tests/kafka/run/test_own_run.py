"""Runs on real clusters that verify what they have copied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferry.dev import RunningCluster
from ferry.features.verify.acts.own_run import verify_run
from ferry.ledger.report import RunState
from ferry.model import DifferenceKind, VerifyMode
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topics, send
from tests.kafka.run.test_verify import AT, flipped, messages, rewrite
from tests.program import warm_ferry as ferry


def test_a_run_verifies_what_it_has_copied_by_receipts_or_by_content(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 2)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    by_receipt = replace(lab, settings={"ferry.verify": "receipt"})
    by_content = replace(lab, settings={"ferry.verify": "content", "ferry.verify.every.runs": "2"})
    made = 0
    for one, copied, expected in (
        (by_receipt, 300, "receipt"),
        (by_receipt, 0, None),
        (by_content, 200, "content"),
        (by_content, 100, None),
    ):
        send(producer(source_cluster, compression_type="lz4"), topic, numbered(copied, partitions=2, start=made))
        made += copied
        answer = ferry("run", "--json", config=one.write(tmp_path))
        body = answer.json("run")
        assert (answer.code, body["state"], body["records"]) == (0, "success", copied), answer.err
        found = body["verified"]
        assert (found and found["mode"]) == expected
        if found is not None:
            assert (found["equal"], found["records"], found["partitions"]) == (True, copied, 2)
            assert found["bytes"] == body["bytes"] * (2 if expected == "content" else 1)
            assert found["differences"] == found["not_compared"] == []


def test_what_a_run_finds_makes_its_report_red_and_says_where(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster, compression_type="lz4"), topic, messages())
    settings = {"ferry.verify": "receipt"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    run = lab.micro_run().plan.run
    name = lab.target_topic(topic)
    rows = read_topics(target_cluster.bootstrap, [name])[name]

    rewrite(target_cluster, {name: rows})
    sound = verify_run(lab.flow, run)
    assert sound is not None
    assert (sound.mode, sound.equal, sound.records) == (VerifyMode.RECEIPT, True, 120), "other batches, same records"

    rewrite(target_cluster, {name: {**rows, **flipped(rows)}})
    found = verify_run(lab.flow, run)
    assert found is not None
    (difference,) = found.differences
    assert (difference.kind, difference.source_range, difference.target_range) == (
        DifferenceKind.VALUE,
        (AT, AT + 1),
        (AT, AT + 1),
    )
    with lab.runs() as runs:
        report = runs.report(run)
    assert (report.state, report.verified) == (RunState.PARTIAL, found)
    answer = ferry("run", "--resume", run, "--json", config=lab.write(tmp_path))
    body = answer.json("run")
    assert (answer.code, body["state"], body["records"]) == (1, "partial", 120)
    assert body["guards"] == {"verification": {"refused": 1, "skipped": 0, "restarted": 0}}
    shown = ferry("run", "--resume", run, config=lab.write(tmp_path))
    assert f"differs: value in {topic}-0 [{AT}, {AT + 1}]" in shown.out
