"""The part of a flow's configuration that planning depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ferry.config.flow.guards import Guards
from ferry.model import Flow
from ferry.policy import ReplicationPolicy, copies_of


class Transform(NamedTuple):
    """The transform of the flow's file that makes a topic's records."""

    name: str
    digest: str = ""
    """Empty if the plan is not written."""
    partitions: int | None = None
    """Partitions of the target topic, to which records are assigned by key; None: a record keeps its partition."""
    text: str = ""
    """The text of the transform itself (`ferry.config.flow.rule_text`), if it repartitions."""
    renames: bool = False
    """Whether it gives the copy another name than the policy does."""
    targets: tuple[str, ...] = ()
    """The topics of which each record names one; empty: the copy has one name."""
    why_unknown: str = ""
    """Why the copy's name is not known before its records are, as half a sentence; empty: it is known."""
    why_lost: str = ""
    """Why it cannot be carried out where the run is planned, as a sentence; empty: it can, or that was not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What planning depends on. Limits are bytes, records and seconds of one run; None means no limit."""

    flow: Flow
    lane: str
    policy: ReplicationPolicy
    max_tasks: int
    max_bytes: int | None
    max_records: int | None
    max_seconds: int
    replication_factor: int
    """Of new topics; -1 is the target's default."""
    config_excluded: Callable[[str], bool]
    sync_configs: bool
    replication_from_source: bool = False
    """Whether new topics have as many replicas as their source topics, whatever `replication_factor` is."""
    defaults_from_source: bool = False
    """Whether the source's defaults count if a source topic does not set a value of its own (`use.defaults.from`)."""
    topic_deletes: bool = False
    """Whether copies of deleted source topics are deleted."""
    free_percent: int | None = None
    """The percentage of a target broker's log directories that must stay free; None: it is not checked."""
    policy_name: str = "the replication policy"
    way_back: Callable[[str], tuple[Flow, ...]] = lambda _: ()
    """The other flows that would bring a source topic's records back to be copied again, in order; empty: none."""
    merges: Callable[[str], bool] = lambda _: False
    """Whether a source topic's target is shared with other flows (`ferry.merge.topics`)."""
    transform_of: Callable[[str], Transform | None] = lambda _: None
    """The transform of a source topic; raises Refused for a topic that two transforms name."""
    transforms: Mapping[str, Callable[[str], bool]] = field(default_factory=dict)
    """Whether a transform of the flow names a source topic, by the transform's name."""
    guards: Guards = field(default_factory=Guards)
    beside_live: bool = False
    """Whether the lane writes to topics of the live lane, after the records that they hold."""
    scratch: bool = False
    """Whether the lane's topics are scratch topics: they keep all records until the lane is dropped."""
    only: frozenset[str] | None = None
    """Source topics that this run is narrowed to; None means all."""

    def copies_of(self, topic: str) -> tuple[str, ...]:
        """Return the names of a source topic's copies: the policy's name, or several if records choose among them."""
        return copies_of(self.policy, self.flow.source, topic)
