"""Airflow's assets of a flow: those that its runs update, and the one by which its lag starts a run.

A run updates `kafka://{host}:{port}/{topic}` for every topic that it copied records of. OpenLineage and Airflow's Kafka
provider give a topic the same name. These topics are not known when the DAG is parsed, so its task has an alias as
outlet, and names the assets when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, AssetAlias, AssetOrTimeSchedule, AssetWatcher, Context, CronTriggerTimetable
from airflow.sdk.definitions.timetables.simple import OnceTimetable
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import Side
from ferry.errors import Retryable
from ferry.ledger.topic_ranges import TopicRanges
from ferry.model import Flow
from ferry_airflow.report_link import url_of_flow, url_on_page

MOST_PARTITIONS = 100
"""The most partitions with ranges in one event; of the others it has the number. The ledger has all."""


def namespace(flow: FlowConfig, side: Side) -> str:
    """Return a cluster's namespace in OpenLineage, which its assets begin with: its first bootstrap server."""
    host, _, port = flow.servers(side).split(",")[0].strip().rpartition("//")[2].rpartition(":")
    return f"kafka://{host}:{port}"


def topic_asset(flow: FlowConfig, side: Side, topic: str) -> Asset:
    """Return the asset of a topic on one side of a flow; that of the target has the flow's page as extra.

    Airflow keeps the extra of an asset that no DAG names. For others it has the extra of the DAG that names it.
    """
    uri = f"{namespace(flow, side)}/{topic}"
    extra: dict[str, Any] | None = {"page": url_of_flow(flow.flow)} if side == "target" else None
    return Asset(name=uri, uri=uri, group="kafka", extra=extra)


def flow_alias(flow: Flow) -> AssetAlias:
    """Return the alias of all that a flow copies: a DAG may be scheduled by it, whatever the topics are."""
    return AssetAlias(name=f"ferry {flow}", group="ferry")


def publish(context: Context, flow: FlowConfig, run: str, topics: Iterable[TopicRanges]) -> int:
    """Update the asset of each topic, with the ranges as extra; return how many.

    Airflow stores it when the task succeeds.
    """
    if not flow.airflow.partitions_assets:
        return publish_by_alias(context, flow, flow.lane, run, topics)
    return sum(_publish_hour(context, flow, run, one) for one in topics)


def publish_by_alias(context: Context, flow: FlowConfig, lane: str, run: str, topics: Iterable[TopicRanges]) -> int:
    """Update the asset of each topic by the flow's alias; return how many.

    The events have the DAG run's partition key, if it has one.
    """
    events = context["outlet_events"][flow_alias(flow.flow)]
    count = 0
    for one in topics:
        events.add(topic_asset(flow, "target", one.target), extra=event_extra(flow, lane, run, one))
        count += 1
    return count


def _publish_hour(context: Context, flow: FlowConfig, run: str, topic: TopicRanges) -> bool:
    """Update a topic's asset with the hour of the newest record as partition key; return whether that is possible.

    Events of an alias have the DAG run's key, and no other. So the asset becomes an outlet while the task runs, which
    Airflow accepts if a DAG names it.
    """
    key = hour_key(topic.newest_ms)
    if key is None:
        return False
    outlet = Asset.ref(uri=topic_asset(flow, "target", topic.target).uri)
    try:
        event = context["outlet_events"][outlet]
    except AirflowRuntimeError as error:
        if error.error.error is ErrorType.ASSET_NOT_FOUND:
            return False
        raise Retryable(f"Airflow did not return asset {outlet.uri} ({error}): try again") from None
    event.extra = event_extra(flow, flow.lane, run, topic)
    event.add_partitions(key)
    task: Any = context["task"]
    if outlet not in task.outlets:
        task.add_outlets([outlet])
    return True


def hour_key(at_ms: int | None) -> str | None:
    """Return the partition key of the hour (UTC) of a time, in the form of Airflow's timetables; None if not known."""
    if at_ms is None or at_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:00:00")
    except (ValueError, OverflowError, OSError):  # a record may carry any number
        return None


def event_extra(flow: FlowConfig, lane: str, run: str, topic: TopicRanges) -> dict[str, Any]:
    """Return the content of an event of a topic's asset: its run, and what of the topic was copied."""
    return {
        "flow": str(flow.flow),
        "lane": lane,
        "run": run,
        "page": url_on_page(flow.flow, run, None if lane == flow.lane else lane),
        "source": topic_asset(flow, "source", topic.source).uri,
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
