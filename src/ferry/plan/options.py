"""What one run is narrowed to, and the rules for planning that follow from it and from the flow's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.parts import DEFAULT_REPLICATION_FACTOR
from ferry.config.flow.rule_text import rule_text
from ferry.model import LaneKind, Window, lane_kind
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.transform_digest import pyspark_version

DEFAULT_LEDGER_REPLICATION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What one run is narrowed to: some source topics, smaller budgets (bytes, records, seconds)."""

    only: frozenset[str] | None = None
    max_bytes: int | None = None
    max_records: int | None = None
    max_seconds: int | None = None
    window: Window | None = None
    """The range of history that the run copies, and nothing else; a backfill lane needs one."""
    take_over: bool = False
    """Whether the run takes the lane from another deployment with another configuration, on purpose."""

    @property
    def topics(self) -> frozenset[str] | None:
        """The source topics that the run is for; None means all."""
        named = None if self.window is None else self.window.topics
        return self.only if named is None else named


DEFAULT_RUN = RunOptions()
"""All topics that the flow selects, within its own budgets."""


def rules_of(
    flow: FlowConfig,
    lane: str,
    options: RunOptions,
    digests: Mapping[str, str] = MappingProxyType({}),
    lost: Mapping[str, str] = MappingProxyType({}),
) -> Rules:
    """Return the rules for planning: the flow's configuration, narrowed to what one run is for.

    `digests` are those of the flow's transforms by name; they are only needed if the plan is to be written. `lost`
    holds by name why a transform cannot be carried out.
    """

    def transform_of(topic: str) -> Transform | None:
        found = flow.transform_of(topic)
        if found is None:
            return None
        first = flow.first_name(topic)
        return Transform(
            found.name,
            digests.get(found.name, ""),
            found.partitions,
            "" if found.partitions is None else rule_text(found, pyspark_version()),
            renames=found.target_of(topic, first) not in (None, first),
            targets=found.targets,
            why_unknown=found.why_unknown(topic, first) or "",
            why_lost=lost.get(found.name, ""),
        )

    topics, budget, kind = flow.topics, flow.copy.budget, lane_kind(lane)
    factor = topics.replication_factor if topics.replication_factor is not None else DEFAULT_REPLICATION_FACTOR
    return Rules(
        flow=flow.flow,
        lane=lane,
        policy=topics.policy,
        max_tasks=flow.copy.tasks_max,
        max_bytes=_least(budget.max_bytes, options.max_bytes),
        max_records=_least(budget.max_records, options.max_records),
        max_seconds=min(budget.max_seconds, options.max_seconds or budget.max_seconds),
        replication_factor=factor,
        replication_from_source=topics.replication_from_source,
        config_excluded=cache(topics.config_exclude.matches),
        sync_configs=topics.sync_topic_configs and topics.sync_topic_configs_interval_s is not None,
        defaults_from_source=topics.use_defaults_from == "source",
        topic_deletes=topics.sync_topic_deletes,
        free_percent=topics.target_free_percent,
        policy_name=topics.policy_name,
        way_back=topics.selection.way_back,
        merges=topics.merge.matches,
        transform_of=cache(transform_of),
        transforms={one.name: one.topics.matches for one in flow.records.transforms},
        guards=topics.guards,
        scratch=kind is not None and kind.has_scratch_topics,
        beside_live=kind is LaneKind.APPEND,
        only=options.topics,
    )


def _least(one: int | None, other: int | None) -> int | None:
    given = [value for value in (one, other) if value is not None]
    return min(given) if given else None
