"""Flows run by a real Airflow: green when all is copied, red after everything copyable is copied."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
from dataclasses import replace
from functools import partial

import psutil

from ferry.kafka.admin.topics import transaction_state
from ferry.plan.options import RunOptions
from ferry.protocol.names import transactional_id
from ferry_airflow.rest import ENDED, Json
from tests.airflow.conftest import BY_ITSELF, Flows
from tests.airflow.parts import job_processes
from tests.harness import (
    commit_offsets,
    committed_offsets,
    create_topic,
    numbered,
    on_cluster,
    producer,
    read_topic,
    send,
    watermark,
    whole_ledger,
)
from tests.quotas import held
from tests.spark.jobs import all_gone, first_receipts, until

MOST_LINES = 12
"""Lines of a short copy's log that are in no group: its begin, its progress, notes and its end."""


def test_a_triggered_run_copies_and_reports(flows: Flows) -> None:
    create_topic(flows.source, "plain-orders", 4)
    send(producer(flows.source, compression_type="lz4"), "plain-orders", numbered(20_000, partitions=4))
    commit_offsets(flows.source, "plain-billing", {("plain-orders", 0): 1_234, ("plain-orders", 3): 5_000})
    dag = flows.dag("plain")
    run, state = flows.run("plain")
    assert state == "success", flows.rest.log(dag, run, "copy")
    assert flows.lab("plain").assert_equal() == 20_000
    origin = flows.lab("plain").receipts()[0].origin
    assert (origin.dag_id, origin.dag_run_id, origin.try_number) == (dag, run, 1)
    assert "copied 20000 records" in flows.rest.log(dag, run, "copy")
    report = flows.rest.log(dag, run, "report")
    assert "success, 4 of 4 slices, 20000 records" in report
    assert "plain-orders-3" in report
    where = committed_offsets(flows.target, "plain-billing", "plain.plain-orders", 4)
    end = watermark(flows.target, "plain.plain-orders", 3)
    assert where == {0: 1_234, 3: end}, "the group that has read all of a partition has no lag there"
    for task in ("checkpoint", "report"):
        assert "1 written with 2 offsets" in flows.rest.log(dag, run, task)
    tasks = flows.rest.tasks(dag, run)
    assert {name: tasks[name]["pool"] for name in ("plan", "copy", "checkpoint")} == dict.fromkeys(
        ("plan", "copy", "checkpoint"), "ferry_plain_tplain"
    )

    # An empty run starts no Spark.
    run, state = flows.run("plain")
    assert state == "success"
    assert "nothing is left" in flows.rest.log(dag, run, "copy")
    assert "Spark-Submit" not in flows.rest.log(dag, run, "copy")


def test_a_flow_with_identical_offsets_is_copied_by_its_dag(flows: Flows) -> None:
    create_topic(flows.source, "kept-orders", 2)
    dag = flows.dag("kept")
    for begin in (0, 4_000):
        send(producer(flows.source), "kept-orders", numbered(4_000, partitions=2, start=begin))
        run, state = flows.run("kept")
        assert state == "success", flows.rest.log(dag, run, "copy")
        assert "Spark-Submit" in flows.rest.log(dag, run, "copy")
    here = read_topic(flows.source.bootstrap, "kept-orders")
    assert read_topic(flows.target.bootstrap, "kept.kept-orders") == here
    assert sum(map(len, here.values())) == 8_000
    receipts = flows.lab("kept").receipts()
    assert all(one.identical for one in receipts)
    assert {one.origin.dag_id for one in receipts} == {dag}


def test_a_dry_run_writes_nothing(flows: Flows) -> None:
    create_topic(flows.source, "dry-orders", 4)
    send(producer(flows.source), "dry-orders", numbered(100, partitions=4))
    dag, lab = flows.dag("dry"), flows.lab("dry")
    lab.micro_run()
    send(producer(flows.source), "dry-orders", numbered(100, partitions=4))
    before = len(lab.receipts())
    run, state = flows.run("dry", {"dry_run": True})
    assert state == "success"
    assert flows.rest.states(dag, run) == {
        "plan": "success",
        "copy": "skipped",
        "checkpoint": "skipped",
        "report": "success",
    }
    assert "(dry run)" in flows.rest.log(dag, run, "report")
    assert len(lab.receipts()) == before

    # A run that asks for a topic that is not there fails, the list of runs gives the reason, and the flow stays well.
    run, state = flows.run("plain", {"topics": ["plain-nosuch"]})
    assert state == "failed"
    place = "/ferry/flow/plain/tplain"
    known = re.compile(r'id="live-state">.*?class="badge (?P<badge>\w+)', re.DOTALL)

    def flow_badge() -> str:
        found = known.search(flows.rest.opened(f"{place}/"))
        return found["badge"] if found else ""

    until(lambda: "plain-nosuch" in flows.rest.opened(f"{place}/runs"), "the list of runs gives the reason")
    until(lambda: flow_badge() not in ("", "unknown"), "the page has looked at the flow")
    assert flow_badge() == "good"


def test_a_run_may_be_narrowed_by_the_form(flows: Flows) -> None:
    for topic in ("narrow-a", "narrow-b"):
        create_topic(flows.source, topic)
        send(producer(flows.source, batch_num_messages=10), topic, numbered(100))
    _, state = flows.run("narrow", {"topics": ["narrow-b"], "max_records": 50})
    assert state == "success"
    assert {receipt.source.topic for receipt in flows.lab("narrow").receipts()} == {"narrow-b"}
    assert sum(receipt.records for receipt in flows.lab("narrow").receipts()) == 50
    # Somebody took the lane over by hand, with a file of his own: the form takes it back.
    lab = flows.lab("narrow")
    by_hand = {"ferry.deployment": "by-hand", "ferry.run.max.records": "10"}
    assert replace(lab, settings={**lab.settings, **by_hand}).micro_run(RunOptions(take_over=True)).records
    _, state = flows.run("narrow", {"topics": [], "take_over": True})
    assert state == "success"
    with lab.runs() as runs:
        first, hand, last = (opened.record for opened in whole_ledger(runs).runs)
    assert first.deployment == f"airflow:127.0.0.1:{flows.home.port}@{socket.gethostname()}"
    assert (hand.deployment, hand.took_over) == ("by-hand", first.deployment)
    assert (last.deployment, last.took_over) == (first.deployment, "by-hand")
    assert lab.assert_equal() == 200


def test_a_refused_topic_makes_the_run_red_after_the_rest_is_copied_or_changed(flows: Flows) -> None:
    for topic, partitions in (("refused-good", 2), ("refused-bad", 1), ("refused-halved", 1)):
        create_topic(flows.source, topic, partitions)
        send(producer(flows.source), topic, numbered(1_000, partitions=partitions))
    create_topic(flows.target, "refused.refused-bad", 5)
    for topic in ("refused-taken", "refused-let"):
        create_topic(flows.source, topic)
        create_topic(flows.target, f"refused.{topic}")
        send(producer(flows.target), f"refused.{topic}", numbered(1))
    dag = flows.dag("refused")
    run, state = flows.run("refused")
    assert state == "failed"
    tasks = flows.rest.tasks(dag, run)
    assert {name: task["state"] for name, task in tasks.items()} == {
        "plan": "success",
        "copy": "success",
        "checkpoint": "success",
        "report": "failed",
    }
    # The flow has retries, but what was refused stays refused.
    assert (tasks["report"]["try_number"], tasks["report"]["max_tries"]) == (1, 2)
    assert len(read_topic(flows.target.bootstrap, "refused.refused-good")[0]) == 500
    whole = read_topic(flows.source.bootstrap, "refused-halved")[0]
    halved = read_topic(flows.target.bootstrap, "refused.refused-halved")[0]
    assert [row[1:] for row in halved] == [row[1:] for row in whole if row[0] % 2 == 0]
    assert len(halved) == 500
    said = flows.rest.log(dag, run, "report")
    assert "refused-bad" in said
    assert "partial" in said
    *_, page, last = flows.rest.unfolded(dag, run, "report")
    assert last.startswith(f"2 not copied in run {run} of refused->trefused: ")
    assert page.endswith(flows.rest.links(dag, run, "report")["Receipts"])
    assert "Traceback" not in said
    copied = flows.rest.unfolded(dag, run, "copy")
    assert len(copied) <= MOST_LINES, copied
    assert "copied 1500 records" in copied[-1]
    assert "SparkContext: Running Spark" in flows.rest.log(dag, run, "copy"), "it is folded, not lost"
    flow = "source=refused,target=trefused,"
    rate = f"airflow.ferry.byte-rate,lane=live,{flow}"
    until(lambda: any(line.startswith(rate) for line in flows.metrics.of(flow)), "the report's last metrics")
    assert sorted(line for line in flows.metrics.of(flow) if ".guard." in line) == [
        f"airflow.ferry.guard.refused,{flow}guard=foreign-writer,topic=refused-taken:1|c",
        f"airflow.ferry.guard.skipped,{flow}guard=foreign-writer,topic=refused-let:1|c",
    ], "a topic with other partitions is refused, too, but there is no policy for it"
    good = f"lane=live,{flow}topic=refused.refused-good"
    assert f"airflow.ferry.record-count,{good}:1000|c" in flows.metrics.of(flow)
    for word in ("record-age-ms", "record-age-ms-max", "replication-latency-ms-avg"):
        assert [line for line in flows.metrics.of(good) if line.startswith(f"airflow.ferry.{word},")]
    # And how far that left the flow behind, though its file asks for no metrics of its own.
    until(lambda: f"airflow.ferry.lag-records,{good}:0|g" in flows.metrics.of(flow), "the lag behind the run")
    behind = f"lane=live,{flow}topic=refused.refused-taken"
    assert f"airflow.ferry.lag-records,{behind}:1|g" not in flows.metrics.of(flow), "nobody sent there"
    bad = f"lane=live,{flow}topic=refused.refused-bad"
    assert f"airflow.ferry.lag-records,{bad}:1000|g" in flows.metrics.of(flow)
    seconds, size = (
        [line for line in flows.metrics.of(bad) if line.startswith(f"airflow.ferry.lag-{word},")]
        for word in ("seconds", "bytes")
    )
    assert len(seconds) == len(size) == 1, "a figure per topic"


def test_an_old_run_cleared_copies_nothing(flows: Flows) -> None:
    create_topic(flows.source, "cleared-t", 2)
    send(producer(flows.source), "cleared-t", numbered(1_000, partitions=2))
    dag = flows.dag("cleared")
    old, state = flows.run("cleared")
    assert state == "success"
    send(producer(flows.source), "cleared-t", numbered(1_000, partitions=2, start=1_000))
    _, state = flows.run("cleared")
    assert state == "success"
    receipts = flows.lab("cleared").receipts()
    send(producer(flows.source), "cleared-t", numbered(1_000, partitions=2, start=2_000))
    flows.rest.clear(dag, old)
    flows.rest.wait_run(dag, old, states=("queued", "running"))
    assert flows.rest.wait_run(dag, old) == "success"
    assert flows.lab("cleared").receipts() == receipts
    assert "nothing is left" in flows.rest.log(dag, old, "copy", 2)
    assert flows.lab("cleared").assert_equal() == 2_000


def test_killing_copy_ends_the_chunk_and_leaves_no_spark_behind(flows: Flows) -> None:
    create_topic(flows.source, "killed-t", 4)
    send(producer(flows.source, batch_num_messages=20), "killed-t", numbered(60_000, partitions=4, size=300))
    dag, lab = flows.dag("killed"), flows.lab("killed")
    run = flows.rest.trigger(dag)
    flows.rest.wait_task(dag, run, "copy", {"running"})
    first_receipts(lab)
    assert job_processes(run)
    flows.rest.set_task_state(dag, run, "copy", "failed")
    until(lambda: not job_processes(run), "the end of Spark")
    with lab.runs() as runs:
        until(lambda: not whole_ledger(runs).open, "the end of the open chunks")
    assert flows.rest.wait_run(dag, run) == "failed"
    kept = lab.receipts()
    assert kept
    assert flows.rest.states(dag, run)["report"] == "failed"

    # A newer run that copies something else owns what is left; the old one, cleared, says so and copies nothing.
    create_topic(flows.source, "killed-empty")
    newer, state = flows.run("killed", {"topics": ["killed-empty"]})
    assert state == "success"
    flows.rest.clear(dag, run)
    flows.rest.wait_run(dag, run, states=("queued", "running"))
    assert flows.rest.wait_run(dag, run) == "failed"
    assert f"superseded by {newer}" in flows.rest.log(dag, run, "plan", 2)
    assert f"superseded by {newer}" in flows.rest.log(dag, run, "report", 2)
    assert lab.receipts() == kept
    _, state = flows.run("killed")
    assert state == "success"
    assert lab.assert_equal() == 60_000


def test_a_copy_task_killed_outright_is_tried_again_by_its_own_plan(flows: Flows, rng: random.Random) -> None:
    create_topic(flows.source, "struck-t", 4)
    send(producer(flows.source, batch_num_messages=20), "struck-t", numbered(8_000, partitions=4, size=300))
    dag, lab = flows.dag("struck"), flows.lab("struck")
    with held(lab, 100_000):  # the last records come 13 s after the first million bytes
        run = flows.rest.trigger(dag)
        flows.rest.wait_task(dag, run, "copy", {"running"})
        point = rng.randint(1, 130)  # of about 200 chunks with two receipts each
        receipt = first_receipts(lab, point)[0]
        task = psutil.Process(int(receipt.origin.host.rpartition(":")[2]))
        spark = task.children(recursive=True)
        assert set(job_processes(run)) <= set(spark), "the receipts do not name the process of the task"
        with lab.runs() as runs:
            before = runs.sealed_plan(run)
        os.kill(task.pid, signal.SIGKILL)
        all_gone([task, *spark])

    assert not job_processes(run)
    with lab.runs() as runs:
        until(lambda: not whole_ledger(runs).open, "the end of the open chunks")
    assert 0 < sum(receipt.records for receipt in lab.receipts()) < 8_000, "the kill came too late to matter"
    send(producer(flows.source), "struck-t", numbered(400, partitions=4, start=8_000))
    flows.rest.wait_task(dag, run, "copy", {"up_for_retry"})

    assert flows.rest.wait_run(dag, run) == "success"
    with lab.runs() as runs:
        assert runs.sealed_plan(run) == before, "the retry has another plan"
    assert {receipt.origin.try_number for receipt in lab.receipts()} == {1, 2}
    assert not job_processes(run)
    assert lab.assert_equal() == 8_000, "what came after the plan is for the next run"


def test_a_missing_or_wrong_connection_is_named(flows: Flows) -> None:
    for alias, sentence in (
        ("unconnected", "Spark connection 'no_such_connection' does not exist"),
        ("wrongly", "connection 'kafka_not_spark' is of type 'kafka'"),
    ):
        create_topic(flows.source, f"{alias}-t")
        send(producer(flows.source), f"{alias}-t", numbered(10))
        run, state = flows.run(alias)
        assert state == "failed"
        assert flows.rest.unfolded(flows.dag(alias), run, "copy")[-1].startswith(sentence)
        assert "yarn" not in flows.rest.log(flows.dag(alias), run, "copy")
        assert "not copied up to" in flows.rest.log(flows.dag(alias), run, "report")


def test_spark_connect_runs_the_same_job(flows: Flows, spark_connect: str) -> None:
    assert spark_connect.startswith("sc://127.0.0.1:")
    create_topic(flows.source, "connect-t", 2)
    send(producer(flows.source), "connect-t", numbered(2_000, partitions=2))
    run, state = flows.run("connect")
    said = flows.rest.log(flows.dag("connect"), run, "copy")
    assert state == "success", said
    assert "Spark-Submit" not in said
    assert flows.lab("connect").assert_equal() == 2_000


def test_killing_copy_on_spark_connect_ends_the_chunk_and_keeps_the_receipts(flows: Flows, spark_connect: str) -> None:
    assert spark_connect.startswith("sc://127.0.0.1:")
    create_topic(flows.source, "severed-t", 4)
    send(producer(flows.source, batch_num_messages=20), "severed-t", numbered(24_000, partitions=4, size=300))
    dag, lab = flows.dag("severed"), flows.lab("severed")
    run = flows.rest.trigger(dag)
    flows.rest.wait_task(dag, run, "copy", {"running"})
    first_receipts(lab)
    flows.rest.set_task_state(dag, run, "copy", "failed")
    ended = "ended the open chunks; what was committed stays"
    until(lambda: ended in flows.rest.log(dag, run, "copy"), "the end of the attempt")
    with lab.runs() as runs:
        assert not whole_ledger(runs).open
    kept = lab.receipts()
    assert 0 < sum(receipt.records for receipt in kept) < 24_000, "the kill came too late to matter"
    assert flows.rest.wait_run(dag, run) == "failed"
    assert flows.rest.states(dag, run)["report"] == "failed"
    assert lab.receipts() == kept, "tasks of the server went on after the task was killed"

    # The server serves on, and the next run need not wait for a transaction's timeout.
    with lab.runs() as runs:
        slots = runs.sealed_plan(run).used_slots
    for slot in slots:
        name = transactional_id(lab.flow.flow, "live", slot)
        assert "Ongoing" not in on_cluster(flows.target, partial(transaction_state, transactional_id=name))
    _, state = flows.run("severed")
    assert state == "success"
    assert lab.receipts()[: len(kept)] == kept
    assert lab.assert_equal() == 24_000


def test_a_continuous_flow_runs_by_itself_until_it_is_paused(flows: Flows) -> None:
    create_topic(flows.source, "continuous-t")
    dag = flows.dag(BY_ITSELF)
    flows.rest.pause(dag, paused=False)
    try:
        # No record, no Spark: what counts is who started the runs.
        until(lambda: len(ended_runs(flows, dag)) >= 2, "two runs by themselves")
    finally:
        flows.rest.pause(dag, paused=True)
    first, second = ended_runs(flows, dag)[:2]
    assert [(each["run_type"], each["state"]) for each in (first, second)] == [("scheduled", "success")] * 2
    assert first["end_date"] <= second["start_date"], "one run at a time"
    with flows.lab(BY_ITSELF).runs() as runs:
        opened = [each.record.run for each in whole_ledger(runs).runs]
    assert opened[:2] == [first["dag_run_id"], second["dag_run_id"]]


def ended_runs(flows: Flows, dag: str) -> list[Json]:
    """The DAG's runs that have ended, oldest first."""
    return [run for run in flows.rest.runs(dag) if run["state"] in ENDED]
