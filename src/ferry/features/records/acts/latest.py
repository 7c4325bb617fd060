"""The last records of topics, a few of each, to be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ferry.config.flow.clients import flow_fetch_options, kafka_python_options
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.start import StartEarliest, StartLatest
from ferry.config.record_source import TASK_RECORDS, RecordSource
from ferry.config.text.filters import PatternList
from ferry.errors import BadInput
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.acts.survey import survey
from ferry.features.records.rules.ranges import distributed
from ferry.model import located


def latest_specs(
    flow: FlowConfig, topics: PatternList, wanted: Callable[[str], bool], count: int
) -> dict[str, tuple[ReadSpec, ...]]:
    """Describe how the last `count` offsets of each partition are read, by topic of the source, also of empty topics.

    `topics` are those to ask the cluster for, `wanted` reports of each whether it is meant. Raises BadInput, Refused
    and Unreachable as `survey` does.
    """
    properties = flow.client("source", "consumer")
    try:
        connection = kafka_python_options({"client.id": "ferry-sample", **properties})
    except BadInput as error:
        raise BadInput(located(f"cluster {flow.flow.source}", properties.redacted(error))) from None
    found = survey(
        RecordSource(
            alias=flow.flow.source,
            connection=connection,
            fetch=flow_fetch_options(flow),
            topics=topics,
            begin=StartEarliest(),
            end=StartLatest(),
            task_records=TASK_RECORDS,
        )
    )
    ranges = {
        place: (max(start, end - count), end) for place, (start, end) in found.ranges.items() if wanted(place.topic)
    }
    specs: dict[str, tuple[ReadSpec, ...]] = {}
    for topic in sorted({place.topic for place in ranges}):
        mine = {place: part for place, part in ranges.items() if place.topic == topic and part[0] < part[1]}
        blank = ReadSpec(
            alias=found.alias,
            connection=found.connection,
            fetch=found.fetch,
            pieces=(),
            topic_ids={topic: found.topic_ids[topic]},
        )
        specs[topic] = tuple(replace(blank, pieces=pieces) for pieces in distributed(mine, found.task_records))
    return specs


def patterns(items: Mapping[str, PatternList]) -> PatternList:
    """Combine several lists to one."""
    return PatternList(items=tuple(dict.fromkeys(item for one in items.values() for item in one.items)))
