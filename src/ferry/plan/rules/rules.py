"""The part of a flow's configuration that planning obeys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ferry.config.flow.guards import Guards
from ferry.model import Flow
from ferry.policy import ReplicationPolicy, copies_of


class Transform(NamedTuple):
    """By which transform of the flow's file a topic's records are made."""

    name: str
    digest: str = ""
    """Empty where nothing of the plan is written."""
    partitions: int | None = None
    """Of the target topic, to which records are dealt by their keys; None: each record keeps its partition."""
    text: str = ""
    """The transform itself (`ferry.config.flow.rule_text`), where it deals."""
    renames: bool = False
    """Whether the copy has another name by it than by the policy."""
    targets: tuple[str, ...] = ()
    """The topics of which each record names one; empty: the copy has one name."""
    why_unknown: str = ""
    """Why the copy's name is not known before its records are, as half a sentence; empty: it is."""
    why_lost: str = ""
    """Why it cannot be carried out where the run is planned, as a sentence; empty: it can, or nobody has looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits are bytes, records and seconds of one run; None is no limit."""

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
    """Whether new topics have as many replicas as their source topics, whatever `replication_factor` says."""
    defaults_from_source: bool = False
    """Whose default counts where a source topic does not set a value of its own (`use.defaults.from`)."""
    topic_deletes: bool = False
    """Whether copies of deleted source topics are deleted."""
    free_percent: int | None = None
    """What must stay free of a target broker's log directories, as a share; None: nobody looks."""
    policy_name: str = "the replication policy"
    way_back: Callable[[str], tuple[Flow, ...]] = lambda _: ()
    """The other flows that would bring a source topic's records back to be copied again, in order; none: empty."""
    merges: Callable[[str], bool] = lambda _: False
    """Whether a source topic's target is shared with other flows (`ferry.merge.topics`)."""
    transform_of: Callable[[str], Transform | None] = lambda _: None
    """The transform of a source topic; raises Refused for one that two name."""
    guards: Guards = field(default_factory=Guards)
    beside_live: bool = False
    """Whether the lane writes to topics of the live lane, behind whatever they hold."""
    scratch: bool = False
    """Whether the lane's topics are scratch topics: they keep what they are given, until the lane is dropped."""
    only: frozenset[str] | None = None
    """Source topics that this run is narrowed to; None is all."""

    def copies_of(self, topic: str) -> tuple[str, ...]:
        """The names of a source topic's copies: the policy's, but where records choose among several."""
        return copies_of(self.policy, self.flow.source, topic)
