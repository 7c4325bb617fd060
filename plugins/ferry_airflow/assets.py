"""Airflow's assets of a flow: those that its runs update, and the one by which its lag starts a run.

A run updates `kafka://{target}/{topic}` for every topic that it copied records of. These topics are not known when the
DAG is parsed, so its task has an alias as outlet, and names the assets when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, AssetAlias, AssetOrTimeSchedule, AssetWatcher, Context, CronTriggerTimetable
from airflow.sdk.definitions.timetables.simple import OnceTimetable

from ferry.config.flow.flow import FlowConfig
from ferry.ledger.topic_ranges import TopicRanges
from ferry.model import Flow

MOST_PARTITIONS = 100
"""The most partitions with ranges in one event; of the others it has the number. The ledger has all."""


def topic_asset(cluster: str, topic: str) -> Asset:
    """Return the asset of a topic on a cluster, by its alias in the configuration file."""
    uri = f"kafka://{cluster}/{topic}"
    return Asset(name=uri, uri=uri, group="kafka")


def flow_alias(flow: Flow) -> AssetAlias:
    """Return the alias of all that a flow copies: a DAG may be scheduled by it, whatever the topics are."""
    return AssetAlias(name=f"ferry {flow}", group="ferry")


def publish(context: Context, flow: FlowConfig, run: str, topics: Iterable[TopicRanges]) -> int:
    """Update the asset of each topic, with the ranges as extra; return how many.

    Airflow stores it when the task succeeds.
    """
    events = context["outlet_events"][flow_alias(flow.flow)]
    count = 0
    for one in topics:
        events.add(topic_asset(flow.flow.target, one.target), extra=event_extra(flow, run, one))
        count += 1
    return count


def event_extra(flow: FlowConfig, run: str, topic: TopicRanges) -> dict[str, Any]:
    """Return the content of an event of a topic's asset: its run, and what of the topic was copied."""
    return {
        "flow": str(flow.flow),
        "lane": flow.lane,
        "run": run,
        "source": f"kafka://{flow.flow.source}/{topic.source}",
        "records": topic.records,
        "bytes": topic.bytes,
        "partitions": [asdict(one) for one in topic.partitions[:MOST_PARTITIONS]],
        "more_partitions": max(0, len(topic.partitions) - MOST_PARTITIONS),
        **(_read(topic) if topic.dealt else {}),
    }


def _read(topic: TopicRanges) -> dict[str, Any]:
    """Return what was read of the source, for a repartitioned topic: partitions of the target do not show it."""
    return {
        "source_partitions": [asdict(one) for one in topic.read[:MOST_PARTITIONS]],
        "more_source_partitions": max(0, len(topic.read) - MOST_PARTITIONS),
    }


def schedule_of(flow: FlowConfig, path: Path) -> Any:
    """Return what starts the flow's runs in Airflow: the clock, its lag, both, or nothing."""
    schedule = flow.airflow.schedule
    if not flow.airflow.lag_start:
        return schedule
    lag = lag_asset(flow, path)
    if schedule is None:
        return [lag]
    clock = OnceTimetable() if schedule == "@once" else CronTriggerTimetable(schedule, timezone="UTC")
    return AssetOrTimeSchedule(timetable=clock, assets=[lag])


def lag_asset(flow: FlowConfig, path: Path) -> Asset:
    """Return the asset that is updated when a flow's lag calls for a run: a trigger of the triggerer watches it."""
    from ferry_airflow.lag_trigger import LagTrigger  # noqa: PLC0415 - only flows that have it pay for it

    start = flow.airflow.lag_start
    trigger = LagTrigger(
        config=str(path),
        flow=str(flow.flow),
        records=start.records,
        seconds=start.seconds,
        every_seconds=start.every_seconds,
    )
    name = f"lag of {flow.flow}"
    uri = f"x-ferry-lag://{flow.flow.source}/{flow.flow.target}"
    return Asset(name=name, uri=uri, group="ferry", watchers=[AssetWatcher(name=name, trigger=trigger)])
