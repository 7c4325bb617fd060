"""The names of a lane other than the live one: the flow's own policy, and the lane after it."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model import scratch_topic
from ferry.policy.wrapped import WrappedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePolicy(WrappedPolicy):
    """`orders` of `primary` becomes `primary.orders.backfill.backfill-january`; all else comes from `base`."""

    lane: str

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return scratch_topic(self.base.format_remote_topic(source_alias, topic), self.lane)
