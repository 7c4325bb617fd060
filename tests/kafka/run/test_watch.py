"""A flow looked at again and again: what came since, old receipts in pages, and a side that is down."""

from __future__ import annotations

from dataclasses import replace

from ferry.dev import RunningCluster
from ferry.features.groups.rules.offset_map import Exact
from ferry.ledger.history import PastRun
from ferry.model import OffsetWindow, TopicPartition
from ferry.plan.options import RunOptions
from ferry.reader.watch import FlowWatch
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.tiers import ANSWER_S


def test_each_look_has_what_came_since_and_receipts_come_in_pages(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic, 2)
    client = producer(source_cluster)
    place = TopicPartition(topic=topic, partition=1)
    with FlowWatch(lab.flow, patience_s=ANSWER_S) as watch:
        first = watch.look()
        assert first.view is not None
        assert (first.view.runs, first.troubles) == ((), {})
        for round_ in range(3):
            send(client, topic, numbered(10, partitions=2, start=10 * round_))
            behind = watch.look().lags
            assert behind is not None
            assert sum(lag.records or 0 for lag in behind) == 10
            lab.micro_run()
        seen = watch.look()
        assert seen.view is not None
        assert seen.lags is not None
        assert len(seen.view.runs) == 3
        assert [lag.records for lag in seen.lags] == [0, 0]

        runs = [run for run in map(watch.past, seen.view.runs[1:]) if isinstance(run, PastRun)]
        assert [run.report.records for run in runs if run.report] == [10, 10]
        name = runs[0].opened.record.run
        assert watch.run(name) == runs[0]
        assert watch.run("no-such-run") is None

        newest_first = [one for one in reversed(lab.receipts()) if one.source == place]
        assert len(newest_first) == 3
        pages = [watch.receipts(place, skip, 2) for skip in (0, 2, 4)]
        assert [total for _, total in pages] == [3, 3, 3]
        assert [one for page, _ in pages for one in page] == newest_first

        part = newest_first[0].segments[0]
        found, holders = watch.where(place, part.source_start + 1, backward=False)
        assert found.outcome == Exact(offset=part.target_start + 1)
        assert [holder.receipt for holder in holders] == newest_first[:1]
        back, _ = watch.where(found.target, part.target_start + 1, backward=True)
        assert back.outcome == Exact(offset=part.source_start + 1)
        assert watch.lanes() == []

        clusters = watch.clusters()
        for story in (clusters.source, clusters.target):
            assert story.facts
            assert story.health
            assert story.steering
            assert story.facts.answering == len(story.facts.brokers) > 0
            assert all(one.version for one in story.facts.brokers)
            assert story.steering.controller is not None
            assert story.steering.protocol.startswith("metadata.version")
            assert (story.steering.not_known, story.not_known, story.why) == ((), "", "")
            assert (story.health.offline, story.health.under_replicated) == (0, 0)
        assert clusters.source.health
        assert clusters.source.health.partitions == 2


def test_a_lane_is_looked_into_run_by_run_down_to_its_segments(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(20, partitions=2))
    place, lane, names = TopicPartition(topic=topic, partition=1), "backfill-jan", ["jan", "jan~2"]
    live = lab.micro_run().plan.run
    with MicroRuns(lab.flow, lane=lane) as runs:
        for name, window in zip(names, ((1, 4), (4, 9)), strict=True):
            options = RunOptions(window=OffsetWindow(ranges={place: window}))
            lab.copy(runs, runs.open_run(name, local_origin(), options))
    with FlowWatch(lab.flow, patience_s=ANSWER_S) as watch:
        assert [one.name for one in watch.lanes()] == [lane]
        found = watch.lane(lane)
        assert found is not None
        known, opened = found
        assert (known.records, [part.source for part in known.parts]) == (8, [place])
        assert [run.record.run for run in opened] == names[::-1]
        done = [past.report for past in map(watch.past, opened) if isinstance(past, PastRun)]
        assert [one.records for one in done if one] == [5, 3]
        assert watch.lane("backfill-no") is None

        its = watch.run("jan", lane=lane)
        assert isinstance(its, PastRun)
        assert its.report is not None
        (receipt,) = its.report.receipts
        assert (watch.run("jan"), watch.run(live, lane=lane)) == (None, None), "a run is one of its lane"
        assert [(one.start, one.end) for one in watch.receipts(place, 0, 9, lane=lane)[0]] == [(4, 9), (1, 4)]
        assert watch.receipt(place, 1, "", lane=lane) == receipt
        there, holders = watch.where(place, 2, backward=False, lane=lane)
        assert (there.target.topic, [one.receipt for one in holders]) == (receipt.target.topic, [receipt])
        assert receipt.target.topic.endswith(f".backfill.{lane}")
        back, _ = watch.where(there.target, there.outcome.offset, backward=True, lane=lane)
        assert (back.source, back.outcome) == (place, Exact(offset=2))
        assert watch.where(place, 2, backward=False)[0].target != there.target


def test_a_source_that_is_down_is_named_and_the_ledger_is_read(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    lab.micro_run()
    nowhere = replace(lab, settings={f"{lab.alias}.bootstrap.servers": "127.0.0.1:1"})
    with FlowWatch(nowhere.flow, patience_s=1) as watch:
        for _ in range(2):
            seen = watch.look()
            assert seen.view is not None
            assert len(seen.view.runs) == 1
            assert seen.lags is None
            assert set(seen.troubles) == {lab.alias}


def test_a_target_that_is_down_is_named_with_the_ledger_in_it(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    nowhere = replace(lab, settings={f"t{lab.alias}.bootstrap.servers": "127.0.0.1:1"})
    with FlowWatch(nowhere.flow, patience_s=1) as watch:
        for _ in range(2):
            seen = watch.look()
            assert (seen.view, seen.lags) == (None, None)
            assert set(seen.troubles) == {f"t{lab.alias}"}
            assert "127.0.0.1" in seen.troubles[f"t{lab.alias}"]
