"""The target's broker dies while transformed records are written, kept in their partitions and dealt to others."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Barrier

from ferry.dev import RunningCluster
from ferry.errors import FerryError
from ferry.features.records.acts.rows import Rows
from ferry.model import Plan
from tests.harness import Lab, create_topic, new_alias, producer, send, wait_until
from tests.kafka.run.hooks import Hooks, copy_held
from tests.kafka.run.test_kept_slot import HeldRows, Kept
from tests.pure.run.unit_flows import SOURCES, Units, messages
from tests.tiers import ANSWER_S, PATIENCE


def test_the_next_run_ends_what_a_dead_broker_has_interrupted_and_each_record_is_there_once(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    names = f"{topic}-kept", f"{topic}-dealt"
    for name in names:
        create_topic(source_cluster, name, SOURCES)
        send(producer(source_cluster), name, messages(1_500))
    chunks = {"ferry.chunk.bytes": "30000"}
    where = "offset % 3 != 1 AND offset < 290"
    some = {"ferry.transforms": "some", "ferry.transform.some.topics": names[0], "ferry.transform.some.where": where}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=names[:1], settings=chunks | some)
    kept = Kept(lab, names[0])
    dealt = Units(replace(lab, alias=new_alias(), topics=names[1:], settings=chunks), names[1])
    (broker,) = target_cluster.brokers
    both_are_there = Barrier(2, lambda: broker.kill(signal.SIGKILL), timeout=2 * ANSWER_S)

    def interrupted(flow: Kept | Units, step: str) -> Plan:
        """An attempt that commits a chunk, and meets the dead broker at this step of the next one."""
        with flow.lab.runs() as runs:
            plan = flow.plan(runs)
        hooks = Hooks()
        hooks.after["commit"] = lambda: hooks.before.update({step: both_are_there.wait})
        rows = Rows(flow.rows(plan, plan.row_slots[0]))
        try:
            with flow.lab.runs(patience_s=3 * PATIENCE) as runs:
                copy_held(runs, plan, plan.row_slots[0], hooks, port_of=partial(HeldRows, rows=rows))
        except FerryError:
            assert (hooks.before, hooks.after) == ({}, {})
            return plan
        raise AssertionError("it came to its end without a broker")

    with ThreadPoolExecutor(2) as threads:
        cases = ((kept, "append_receipts"), (dealt, "commit"))
        plans = list(threads.map(lambda case: interrupted(*case), cases))
    assert broker.state == "stopped"
    broker.start()

    def ended(flow: Kept | Units) -> bool:
        try:
            following = flow.run()
        except FerryError:  # the broker has just come back
            return False
        with flow.lab.runs() as runs:
            return not runs.unfinished_slices(following)

    flows: tuple[Kept | Units, ...] = (kept, dealt)
    for flow, plan in zip(flows, plans, strict=True):
        wait_until(partial(ended, flow), "a run that leaves nothing", 60)
        with flow.lab.runs() as runs:
            assert runs.report(plan.run).records > 0, "the chunk before"
    assert sum(one.records for one in kept.assert_once()) > 0
    assert dealt.assert_once() == 1_500
