"""Refusals: what was not copied, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ferry.model.sentence import Fact


class RefusalKind(StrEnum):
    """Why something was not copied; stable words for reports and alerts."""

    PARTITION_COUNT = "partition-count"
    NAME_TOO_LONG = "name-too-long"
    INVALID_NAME = "invalid-name"
    NAME_CLASH = "name-clash"
    LOOP = "loop"
    NOT_AUTHORIZED = "not-authorized"
    TOPIC_GONE = "topic-gone"
    TOPICS_NONE = "topics-none"
    """A flow that finds nothing to copy: a name that no topic has, or, without a topic, the whole filter."""
    TOPIC_RECREATED = "topic-recreated"
    TARGET_CHANGED = "target-changed"
    RETENTION_PASSED = "retention-passed"
    SOURCE_TRUNCATED = "source-truncated"
    FOREIGN_WRITER = "foreign-writer"
    LEDGER_BEHIND = "ledger-behind"
    """The lane copied more than its ledger shows: that was lost, or rebuilt from an older export."""
    TOO_LARGE = "too-large"
    NEEDS_TRANSCODING = "needs-transcoding"
    """Only in kept ledgers; such batches are transcoded now."""
    CORRUPT = "corrupt"
    NO_LEADER = "no-leader"
    TOO_FEW_REPLICAS = "too-few-replicas"
    STORAGE = "storage-error"
    OWNED = "owned-by-another-lane"
    INVALID_CONFIG = "invalid-config"
    POLICY = "policy-violation"
    QUOTA = "quota-exceeded"
    NO_SPACE = "no-space"
    SLOT_FAILED = "slot-failed"
    TOMBSTONES_PASSED = "tombstones-passed"
    CLUSTER_CHANGED = "cluster-changed"
    CLOCK_SKEW = "clock-skew"
    TRANSFORM = "transform"
    """A topic cannot be transformed as the file, or what was copied before, requires."""
    POISON = "poison"
    """A record on which the transform failed."""
    STUCK = "stuck"
    """A place that an operator passed by hand (`ferry skip`)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Refusal:
    """One topic or topic-partition that was not (wholly) copied, and why.

    `message` is one sentence with the remedy, made of `code` and `facts` by `ferry.messages.refusals`. Refusals that
    an earlier Ferry recorded have an empty code. `partition` is None when the whole topic is meant; names are the
    source's. An empty topic is the flow: its ACLs could not be synced as the file asks, or its filter takes no topic.
    """

    topic: str
    partition: int | None
    kind: RefusalKind
    message: str
    code: str = field(default="", compare=False)
    facts: tuple[tuple[str, Fact], ...] = field(default=(), compare=False)

    @property
    def order(self) -> tuple[str, int]:
        """Sort key: a topic's own refusal before those of its partitions."""
        return self.topic, -1 if self.partition is None else self.partition
