"""The task `copy` over Spark Connect waits in a real triggerer, which is its client: it is ended, and it dies."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from ferry.ledger.report import RunState
from ferry.model import Receipt
from tests.airflow.conftest import AWAITED, Flows
from tests.airflow.test_restarts import Parts
from tests.harness import Lab, create_topic, numbered, producer, send
from tests.quotas import held
from tests.spark.jobs import until

RECORDS = 6_000
"""Of 300 bytes each, in batches of twenty, each a chunk of its own."""


@pytest.fixture
def lab(flows: Flows, spark_connect: str, topic: str) -> Lab:
    """The flow, with a topic that is to be copied."""
    assert spark_connect
    create_topic(flows.source, f"{AWAITED}-{topic}", 4)
    send(
        producer(flows.source, batch_num_messages=20),
        f"{AWAITED}-{topic}",
        numbered(RECORDS, partitions=4, size=300),
    )
    return flows.lab(AWAITED)


@pytest.fixture
def parts(flows: Flows) -> Iterator[Parts]:
    """The parts of Airflow; whole again after the test."""
    parts = Parts(home=flows.home, rest=flows.rest)
    try:
        yield parts
    finally:
        parts.restore()


def written(lab: Lab, run: str) -> list[Receipt]:
    """What the run has committed."""
    return [receipt for receipt in lab.receipts() if receipt.origin.dag_run_id == run]


def process_of(receipt: Receipt) -> psutil.Process:
    """The process whose attempt wrote the receipt."""
    return psutil.Process(int(receipt.origin.host.rpartition(":")[2]))


def waiting(flows: Flows, lab: Lab) -> str:
    """Begin a run whose copy waits, and has committed something; the run."""
    run = flows.rest.trigger(flows.dag(AWAITED))
    flows.rest.wait_task(flows.dag(AWAITED), run, "copy", ("deferred",))
    until(lambda: bool(written(lab, run)), "a first receipt")
    assert flows.rest.states(flows.dag(AWAITED), run)["copy"] == "deferred"
    return run


def assert_all_copied(lab: Lab, run: str) -> None:
    """The run has copied its topic, once."""
    with lab.runs() as runs:
        report = runs.report(run)
        assert not runs.whole_ledger().open
    assert (report.state, report.unfinished) == (RunState.SUCCESS, ())
    assert lab.assert_equal() % RECORDS == 0


def test_a_copy_waits_in_the_triggerer_which_may_die(flows: Flows, lab: Lab, parts: Parts) -> None:
    with held(lab) as release:
        run = waiting(flows, lab)
        first = process_of(written(lab, run)[0])
        triggerer = parts.process("triggerer")
        assert triggerer is not None
        assert triggerer in [first, *first.parents()], "the copy is of the triggerer, not of a worker"
        parts.kill("triggerer", whole=True)
        parts.start("triggerer")
        release()
    dag = flows.dag(AWAITED)
    assert flows.rest.wait_run(dag, run, seconds=300) == "success"
    assert len({receipt.origin.host for receipt in written(lab, run)}) == 2, "the next triggerer copied the rest"
    assert flows.rest.tries(dag, run, "copy").keys() == {1}, "it is one try of the task"
    assert_all_copied(lab, run)
    assert f"run {run} of" in flows.rest.log(dag, run, "copy"), "its lines are in the task's log"


def test_a_copy_that_waits_is_ended_with_its_task(flows: Flows, lab: Lab) -> None:
    dag = flows.dag(AWAITED)
    with held(lab):
        run = waiting(flows, lab)
        flows.rest.set_task_state(dag, run, "copy", "failed")
        with lab.runs() as runs:
            until(lambda: not runs.whole_ledger().open, "the end of the open chunks", 30)
        assert flows.rest.wait_run(dag, run) == "failed"
        kept = written(lab, run)
        assert 0 < sum(receipt.records for receipt in kept) < RECORDS, "the end came too late to matter"
    again, state = flows.run(AWAITED)
    assert state == "success"
    assert written(lab, run) == kept, "tasks of the server went on"
    with lab.runs() as runs:
        assert runs.report(again).state is RunState.SUCCESS
    assert lab.assert_equal() % RECORDS == 0
