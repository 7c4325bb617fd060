"""Airflow's assets of a flow: those that its runs update, and the one by which its lag starts a run.

A run updates `kafka://{target}/{topic}` for every topic that it copied records of. Which topics that will be is not
known when the DAG is parsed, so its task has an alias as outlet, and names the assets when it runs.
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
"""Whose ranges one event names; of the others it tells how many there are. All are in the ledger."""


def topic_asset(cluster: str, topic: str) -> Asset:
    """The asset of a topic on a cluster, by its alias in the configuration file."""
    uri = f"kafka://{cluster}/{topic}"
    return Asset(name=uri, uri=uri, group="kafka")


def flow_alias(flow: Flow) -> AssetAlias:
    """The alias of all that a flow copies: a DAG may be scheduled by it, whatever the topics are."""
    return AssetAlias(name=f"ferry {flow}", group="ferry")


def publish(context: Context, flow: FlowConfig, run: str, topics: Iterable[TopicRanges]) -> int:
    """Update the asset of each topic, with the ranges as extra; how many. Airflow stores it when the task succeeds."""
    events = context["outlet_events"][flow_alias(flow.flow)]
    count = 0
    for one in topics:
        events.add(topic_asset(flow.flow.target, one.target), extra=event_extra(flow, run, one))
        count += 1
    return count


def event_extra(flow: FlowConfig, run: str, topic: TopicRanges) -> dict[str, Any]:
    """What an event of a topic's asset tells: its run, and what of the topic was copied."""
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
    """What was read of the source, where no partition of the target tells."""
    return {
        "source_partitions": [asdict(one) for one in topic.read[:MOST_PARTITIONS]],
        "more_source_partitions": max(0, len(topic.read) - MOST_PARTITIONS),
    }


def schedule_of(flow: FlowConfig, path: Path) -> Any:
    """What Airflow starts the flow's runs by: the clock, its lag, both, or nothing."""
    if not flow.lag_start:
        return flow.schedule
    lag = lag_asset(flow, path)
    if flow.schedule is None:
        return [lag]
    clock = OnceTimetable() if flow.schedule == "@once" else CronTriggerTimetable(flow.schedule, timezone="UTC")
    return AssetOrTimeSchedule(timetable=clock, assets=[lag])


def lag_asset(flow: FlowConfig, path: Path) -> Asset:
    """What is updated when a flow's lag calls for a run: a trigger watches it, in Airflow's triggerer."""
    from ferry_airflow.lag_trigger import LagTrigger  # noqa: PLC0415 - only flows that have it pay for it

    start = flow.lag_start
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
