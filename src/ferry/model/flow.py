"""A flow and its lanes: the words of MirrorMaker 2's configuration file (`source->target`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from ferry.errors import BadInput

LIVE = "live"
"""The lane of scheduled runs; a backfill or a drill has a lane of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Flow:
    """One direction of replication between two cluster aliases."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def back(self) -> Flow:
        """The opposite direction."""
        return Flow(source=self.target, target=self.source)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `"a->b"` as a flow. Raises BadInput when it is not of that form."""
        source, arrow, target = (part.strip() for part in text.partition("->"))
        if not (source and arrow and target) or "->" in target:
            raise BadInput(f"flow {text!r} is not of the form source->target, for example primary->backup")
        return cls(source=source, target=target)


class TopicPartition(NamedTuple):
    """One partition of one topic, on the cluster that the context names; a tuple, because inner loops hash it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
