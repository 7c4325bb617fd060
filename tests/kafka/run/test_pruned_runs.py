"""Runs prune the ledger on real brokers: what is deleted on both sides goes, what either side has stays translated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.features.groups.acts import offset_maps
from ferry.features.groups.rules.offset_map import Before, LogStart, Translated
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.lane import pruning, summaries, upkeep
from ferry.lane.connections import FlowConnections
from ferry.ledger import block_index
from ferry.ledger.ledger import fold
from ferry.ledger.pruning import Pruned, pruned
from ferry.ledger.receipts import last_receipts, receipts
from ferry.model import NotComparedKind, TopicPartition
from ferry.protocol import driver
from ferry.run.ledger.access import LedgerAccess
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, whole_ledger
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

RUNS = 8
EACH = 10


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """A summary in each run, blocks of two receipts, two runs that are remembered, a block's tombstones a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "is_due", lambda view: True)
        patch.setattr(summaries, "FIRST_WINDOW", 4)
        patch.setattr(block_index, "BLOCK_ROWS", 2)
        patch.setattr(offset_maps, "WHOLE_BLOCKS", 0)
        patch.setattr(driver, "KEPT_RUNS", 2)
        patch.setattr(pruning, "TOMBSTONES_A_RUN", 2)
        patch.setattr(pruning, "FOR_EACH_SLICE", 0)
        yield


def test_what_both_sides_have_deleted_goes_from_the_ledger_and_nothing_else(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    _copied(lab, source_cluster, topic, 0, RUNS)
    here, there = TopicPartition(topic, 0), TopicPartition(lab.target_topic(topic), 0)
    everything = {backward: _translated(lab, here, there, backward=backward) for backward in (False, True)}

    _deleted(source_cluster, here, 45)
    _copied(lab, source_cluster, topic, RUNS, RUNS + 2)
    assert _receipts_of(lab) == RUNS + 2, "the target has it all: nothing goes"

    _deleted(target_cluster, there, 55)
    _copied(replace(lab, settings={"ferry.ledger.prune": "false"}), source_cluster, topic, RUNS + 2, RUNS + 4)
    assert not _pruned(lab), "the file says to keep all"
    _copied(lab, source_cluster, topic, RUNS + 4, RUNS + 8)
    (mark,) = _pruned(lab)
    # Receipts of two runs make a block; the one with source offset 45 keeps its neighbour from 40 on alive.
    assert (mark.start, mark.end, mark.source_log_start, mark.target_log_start) == (0, 40, 45, 55)
    assert mark.done == mark.end, "runs have written all tombstones, a block at a time"
    assert _receipts_of(lab) == RUNS + 8 - 4

    for backward in (False, True):
        now = _translated(lab, here, there, backward=backward)
        for offset, was in everything[backward].items():
            first, end = (55, mark.target_next) if backward else (45, mark.end)
            if offset >= first:
                assert now[offset] == was or (backward is False and isinstance(now[offset], LogStart)), offset
            elif offset < end:
                assert isinstance(now[offset], Before | LogStart), offset
    with lab.runs() as runs, LedgerAccess(lab.flow) as access:
        assert access.receipts_near(access.view(), lab.flow.lane, topic, 5) == []
        assert last_receipts(access.whole(), lab.flow.lane) == last_receipts(access.view(), lab.flow.lane)
        assert whole_ledger(runs).end == access.whole().end
    with Verifier(lab.flow, Wanted(), values=False, patience_s=ANSWER_S) as verifier:
        survey = verifier.survey()
        found = verifier.sum_up(survey, verifier.compare(survey))
    assert found.is_equal
    assert (NotComparedKind.SOURCE_DELETED, 0, 45) in [(one.why, one.start, one.end) for one in found.not_compared]

    config = lab.write(tmp_path)
    place = ("--topic", topic, "--partition", "0", "--offset", "5")
    (gone,) = ferry("ledger", *place, "--json", config=config).json("ledger-offset")["pruned"]
    assert (gone["start"], gone["end"], gone["target_next"], gone["run"]) == (0, 40, mark.target_next, mark.run)
    assert f" before 40, by run {mark.run}" in ferry("ledger", *place, config=config).out
    back = ("translate", str(lab.flow.flow), there.topic, "0", "5", "--reverse")
    answer = ferry(*back, "--json", config=config)
    assert answer.code == 1
    assert (answer.json("translate")["outcome"], answer.json("translate")["pruned_before"]) == (
        "before",
        mark.target_next,
    )
    assert f"receipts of all before {mark.target_next}" in ferry(*back, config=config).out


def _pruned(lab: Lab) -> list[Pruned]:
    with FlowConnections.of(lab.flow) as connection:
        return list(pruned(connection.run(connection.view)).values())


def _copied(lab: Lab, source: RunningCluster, topic: str, first: int, last: int) -> None:
    for number in range(first, last):
        send(producer(source), topic, numbered(EACH, start=number * EACH))
        assert lab.micro_run().records == EACH


def _deleted(cluster: RunningCluster, place: TopicPartition, upto: int) -> None:
    at = Place(place.topic, place.partition, upto)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert admin.delete_records([at])[at].result(ANSWER_S).low_watermark == upto


def _receipts_of(lab: Lab) -> int:
    """How many receipts the topic has for a reader who knows no summary."""
    with FlowConnections.of(lab.flow) as connection:

        async def work() -> int:
            await connection.ledger.find()
            return len(list(receipts(fold(*await connection.ledger.read()))))

        return connection.run(work)


def _translated(lab: Lab, here: TopicPartition, there: TopicPartition, *, backward: bool) -> dict[int, Translated]:
    place, end = (there, RUNS * (EACH + 1) - 1) if backward else (here, RUNS * EACH)
    with FlowConnections.of(lab.flow) as connection:

        async def work() -> dict[int, Translated]:
            asked = {place: range(end)}
            maps = await offset_maps.offset_maps(connection, lab.flow.lane, asked, backward=backward)
            return {offset: maps[place].translate(offset) for offset in range(end)}

        return connection.run(work)
