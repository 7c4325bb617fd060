"""Records before and after their transform, to be shown. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.config.flow.transforms import TransformSpec
from ferry.errors import FerryError

Headers = tuple[tuple[str, bytes | None], ...]


class Became(StrEnum):
    """What a transform does with a record."""

    CHANGED = "changed"
    SAME = "same"
    LEFT_OUT = "left out"
    POISON = "poison"
    NOT_LISTED = "not listed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A record before or after; `topic` is the source's, or the target's whole name."""

    topic: str
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A record of the source, and what would be written; `after` None: it is left out."""

    partition: int
    offset: int
    before: Side
    after: Side | None
    poison: str | None
    """Why the transform cannot be applied to it. `TransformSpec.poison` decides what happens to it."""
    broken: str | None = None
    """Why the transform breaks off at it, or at a record near it; `after` is not known then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some of a topic's last records. `topic` None: no topic of the source has this transform."""

    transform: TransformSpec
    digest: str
    """Empty with `error`."""
    topic: str | None
    target: str | None
    """The name of its copy, as far as the source topic's name decides it."""
    named: str | None
    """The name that the policy gives it."""
    pairs: tuple[Pair, ...]
    error: FerryError | None = None
    """Why the transform cannot be carried out at all, by its key; there are no pairs then."""

    def became(self, pair: Pair) -> Became:
        """Return what the transform does with one of its records."""
        if pair.broken is not None:
            return Became.BROKEN
        if pair.poison:
            return Became.POISON
        if pair.after is None:
            return Became.LEFT_OUT
        listed = self.transform.targets_of(self.topic or "", self.named or "")
        if listed and pair.after.topic not in listed:
            return Became.NOT_LISTED
        before, after = pair.before, pair.after
        same = (after.key, after.value, after.headers, after.timestamp) == (
            before.key, before.value, before.headers, before.timestamp,
        )  # fmt: skip
        return Became.SAME if same and after.topic == self.named else Became.CHANGED
