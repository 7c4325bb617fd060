"""`ferry skip` on real brokers: a batch whose bytes rotted on the source's disk."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Superseded
from ferry.features.observe.acts.textfile import metrics_file, parse
from ferry.features.observe.rules import samples as m
from ferry.ledger.report import Report, RunState
from ferry.model import RefusalKind
from ferry.run.micro_run import local_origin
from ferry.wire.batch import HEADER_BYTES, batches
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.kafka.run.test_going_back import values
from tests.program import Answer
from tests.program import warm_ferry as ferry


def damage(cluster: RunningCluster, topic: str, offset: int) -> None:
    """Change a record of the batch at `offset` on the disk of a broker that runs: it serves what lies there."""
    log = cluster.brokers[0].data / f"{topic}-0" / f"{0:020}.log"
    at = 0
    for batch in batches(log.read_bytes()):
        if batch.base_offset == offset:
            break
        at += len(batch.data)
    with log.open("r+b") as file:
        file.seek(at + HEADER_BYTES + 20)
        file.write(b"\xff\xff")


def assert_looked_up(report: Report, topic: str, config: Path) -> None:
    """The ledger says later what became of a run, as the run itself did."""
    run, (refusal,) = report.plan.run, report.refusals
    told = ferry("ledger", "--run", run, "--json", config=config).json("ledger")["run"]
    assert (told["state"], [one["kind"] for one in told["report"]["refusals"]]) == ("partial", ["corrupt"])
    narrow = ferry("ledger", "--run", run, "--topic", topic, "--json", config=config).json("ledger")
    assert (len(narrow["receipts"]), narrow["run"]) == (1, None), "of some receipts nothing is said of the whole run"
    nowhere = ferry("ledger", "--run", "r7", config=config)
    assert (nowhere.code, "run r7 of lane live" in nowhere.err) == (2, True), nowhere.err
    said = ferry("ledger", "--run", run, config=config).out
    assert f"refused: {refusal.message} [corrupt]" in said
    assert f"run {run} of {report.plan.flow}: partial; " in said


def test_a_rotten_batch_is_passed_by_hand_and_the_ledger_says_who_did_it_and_why(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic)
    client = producer(source_cluster, linger_ms=200)
    for start in (0, 10, 20):
        send(client, topic, numbered(10, start=start))
    damage(source_cluster, topic, 10)
    settings = {"ferry.metrics.folder": str(tmp_path)}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    flow, config = str(lab.flow.flow), lab.write(tmp_path)

    def skip(to: int, *more: str, of: str = topic, partition: str = "0") -> Answer:
        return ferry("skip", flow, of, partition, "--to", str(to), "--reason", "rotten", *more, config=config)

    assert skip(20).code == 2, "the flow never ran"
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 10)
    (refusal,) = report.refusals
    assert refusal.kind is RefusalKind.CORRUPT
    assert "ferry skip (--to 20" in refusal.message

    assert_looked_up(report, topic, config)
    for answer, *facts in (
        (skip(10), "--to 10 leads back: ", " live is at offset 10"),
        (skip(31), "--to 31 leads beyond "),
        (skip(20, partition="7"), "has 1 partition,"),
        (skip(20, of="elsewhere"), " not copy topic elsewhere"),
        (ferry("skip", flow, topic, "0", "--to", "20", "--reason", " ", config=config), "--reason is empty"),
    ):
        assert (answer.code, [fact for fact in facts if fact not in answer.err]) == (2, []), answer.err
    dry = skip(20, "--dry-run", "--json").json("skip")
    assert (dry["run"], dry["gap"]["start"], dry["gap"]["end"]) == (None, 10, 20)

    # A run that is at work may yet copy what is to be skipped; to end it takes a word more.
    with lab.runs() as runs:
        plan = runs.open_run("at-work", local_origin())
        answer = skip(20)
        assert (answer.code, "run at-work is active " in answer.err) == (2, True), answer.err
        at_work = ferry("ledger", "--run", "at-work", config=config).out
        assert f"run at-work of {flow}: open; " in at_work
        done = skip(20, "--interrupt", "--json")
        assert done.code == 0, done.err
        with pytest.raises(Superseded):
            lab.copy(runs, plan)
    metrics = parse(metrics_file(tmp_path, lab.flow).read_text())
    assert {(name, dict(labels).get("outcome")): count for (name, labels), count in metrics.items()} == {
        (m.GUARD_COUNT.name, "skipped"): 1,
        (m.GAP_COUNT.name, None): 1,
    }, "once, and not by the dry run nor by those that were refused"
    passed = done.json("skip")
    assert passed["gap"]["who"].startswith(f"{pwd.getpwuid(os.getuid()).pw_name}@")

    answer = ferry("run", "--json", config=config)
    body = answer.json("run")
    assert (answer.code, body["state"], body["gaps"]) == (0, "success", []), answer.out
    assert [(receipt["start"], receipt["end"]) for receipt in body["receipts"]] == [(20, 30)]
    wanted = [*range(10), *range(20, 30)]
    assert values(target_cluster.bootstrap, lab.target_topic(topic)) == wanted

    found = ferry("ledger", "--topic", topic, "--offset", "12", "--json", config=config)
    (gap,) = found.json("ledger-offset")["skipped"]
    assert (found.code, gap) == (1, passed["gap"])
    told = ferry("ledger", "--topic", topic, "--offset", "12", config=config).out
    assert f"was skipped by run {passed['run']}" in told
    assert f"by {gap['who']}: rotten [stuck]" in told
    listed = ferry("ledger", "--runs", "--json", config=config).json("ledger-runs")["runs"]
    assert {run["run"]: run["state"] for run in listed}[passed["run"]] == "success"
