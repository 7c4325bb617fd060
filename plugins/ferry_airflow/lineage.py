"""The OpenLineage datasets and facets of a copy: which topics went where, with their ranges of offsets.

They exist only if Airflow's OpenLineage provider is installed and has a transport. The provider makes the events, of
the job `dag.task`. The task adds the datasets, `kafka://host:port` and the topic's name, by OpenLineage's naming.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ferry.config.flow.flow import FlowConfig
from ferry.ledger.report import Report
from ferry.ledger.topic_ranges import TopicRanges, topic_ranges
from ferry_airflow.assets import namespace

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

PROVIDER = "airflow.providers.openlineage"
RUN_FACET, RANGES_FACET = "ferry_run", "ferry_ranges"


def is_sent() -> bool:
    """Return whether events are sent anywhere."""
    try:
        if find_spec(PROVIDER) is None:
            return False
    except ModuleNotFoundError:
        return False
    from airflow.providers.openlineage import conf  # noqa: PLC0415 - an extra

    return not conf.is_disabled()


def lineage_of(flow: FlowConfig, report: Report) -> OperatorLineage[Any, Any]:
    """Return a run's datasets and facets; needs the provider."""
    from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - an extra
    from openlineage.client.event_v2 import InputDataset, OutputDataset  # noqa: PLC0415 - an extra
    from openlineage.client.facet_v2 import (  # noqa: PLC0415 - an extra
        DatasetFacet,
        RunFacet,
        input_statistics_input_dataset,
        output_statistics_output_dataset,
    )

    def ranges(cluster: str, partitions: list[dict[str, int]]) -> dict[str, Any]:
        return {RANGES_FACET: DatasetFacet().with_additional_properties(cluster=cluster, partitions=partitions)}

    topics = topic_ranges(report.receipts)
    run = {
        "flow": str(flow.flow),
        "lane": report.plan.lane,
        "run": report.plan.run,
        "generation": report.plan.generation,
        "state": report.state.value,
        "refused": len(report.refusals),
        "records": report.records,
        "bytes": report.bytes,
    }
    source, target = namespace(flow, "source"), namespace(flow, "target")
    counted_in = input_statistics_input_dataset.InputStatisticsInputDatasetFacet
    counted_out = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
    return OperatorLineage(
        inputs=[
            InputDataset(
                namespace=source,
                name=one.source,
                facets=ranges(flow.flow.source, _source(one)),
                inputFacets={"inputStatistics": counted_in(rowCount=one.records, size=one.bytes)},
            )
            for one in topics
        ],
        outputs=[
            OutputDataset(
                namespace=target,
                name=one.target,
                facets=ranges(flow.flow.target, _target(one)),
                outputFacets={"outputStatistics": counted_out(rowCount=one.records, size=one.bytes)},
            )
            for one in topics
        ],
        run_facets={RUN_FACET: RunFacet().with_additional_properties(**run)},
    )


def _source(topic: TopicRanges) -> list[dict[str, int]]:
    return [{"partition": one.partition, "start": one.start, "end": one.end} for one in topic.read]


def _target(topic: TopicRanges) -> list[dict[str, int]]:
    return [{"partition": one.partition, "start": one.target_start, "end": one.target_end} for one in topic.partitions]
