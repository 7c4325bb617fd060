"""Transforms of a flow: the topics that are copied record by record, and how their records change (ADR 39)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial

from ferry.config.flow.routes import NotKnown, target_by_steps
from ferry.config.flow.steps import Rename, Route, Step, meaning_of
from ferry.config.text.filters import PatternList
from ferry.config.text.secrets import Providers
from ferry.errors import Refused
from ferry.policy import ReplicationPolicy, RoutedPolicy

TIME_ZONE = "UTC"
"""The session's time zone, which the job sets."""
ANSI = True
"""Spark's ANSI mode, which the job sets, too: what cannot be cast is an error, not a null."""
CONNECT = "transforms"
"""The name of the transform that Connect's own key makes; no other transform can have it."""
SALT = "ferry.transform.{}.salt"
_NO_SALT = ""


class Poison(StrEnum):
    """What happens to a record on which the transform failed."""

    FAIL = "fail"
    SKIP = "skip"
    """It goes to the dead letters."""
    PASS = "pass"
    """The record is copied unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformSpec:
    """One transform: `sql` or `function` first, if there is one, then `steps` in their order."""

    name: str
    topics: PatternList
    """Topics of the source, in the form of the flow's own `topics`; the flow must take them, too."""
    sql: str | None = None
    """SELECT ... FROM records WHERE ..."""
    function: str | None = None
    """`package.module:callable`, DataFrame -> DataFrame."""
    steps: tuple[Step, ...] = ()
    partitions: int | None = None
    """Partitions of the target topics; None: as many as the source has."""
    targets: tuple[str, ...] = ()
    """The topics that records may name as their target, as written, with `{topic}` and `{target}`.

    Each record names its own; empty: a source topic has one copy. Only with `partitions`.
    """
    poison: Poison = Poison.FAIL
    salt: str = field(default=_NO_SALT, repr=False)
    """The salt of hashes, as written: usually a reference. `secret` resolves it."""
    timeout_ms: int = field(default=0, compare=False)
    """How long one Spark task of it may take, in ms; 0: no limit. It does not change the records."""
    providers: Providers = field(default_factory=Providers, repr=False, compare=False)

    def secret(self) -> bytes:
        """Return the resolved salt. Raises BadInput when a variable, file or entry is missing."""
        return self.providers.resolved(SALT.format(self.name), self.salt).encode()

    def target_of(self, topic: str, target: str) -> str | None:
        """Return the topic that records of `topic` go to, where the policy names it `target`.

        None where records decide. Of several topics the first one.
        """
        if self.targets:
            return self.targets_of(topic, target)[0]
        try:
            return target_by_steps(self.steps, topic, target)
        except NotKnown:
            return None

    def targets_of(self, topic: str, target: str) -> tuple[str, ...]:
        """Return the topics among which records of `topic` choose, where the policy names it `target`.

        Empty when there is one copy.
        """
        return tuple(one.replace("{topic}", topic).replace("{target}", target) for one in self.targets)

    def why_unknown(self, topic: str, target: str) -> str | None:
        """Return why `target_of` does not know the topic, as half a sentence; None: it does."""
        if self.targets:
            return None
        try:
            target_by_steps(self.steps, topic, target)
        except NotKnown as why:
            return str(why)
        return None

    def digest(self, *, spark_version: str, time_zone: str = TIME_ZONE, ansi: bool = ANSI, code: str = "") -> str:
        """Return the SHA-256 (hexadecimal) of all that decides what a record becomes.

        `code`: a digest of the function's own. `topics` is not part of it: what a record becomes does not depend on the
        transform's other topics.

        The salt enters slowly hashed (scrypt). Another salt makes another transform, and salts cannot be tried against
        a digest faster than against the records. Raises BadInput when the salt cannot be resolved.
        """
        shown: dict[str, object] = {
            "sql": self.sql,
            "function": [self.function, code],
            "steps": meaning_of(self.steps),
            "partitions": self.partitions,
            "poison": self.poison,
            "spark": [spark_version, time_zone, ansi],
        }
        if self.targets:
            shown["targets"] = list(self.targets)
        if self.salt:
            shown["salt"] = hashlib.scrypt(self.secret(), salt=b"ferry.transform", n=2**14, r=8, p=1).hex()
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()

    def meaning(self) -> list[object]:
        """Return what enters the digest of the flow's file: what needs no secret and no Spark."""
        return [
            sorted(set(self.topics.items)), self.sql, self.function,
            [[type(step).__name__, asdict(step)] for step in self.steps], self.partitions, self.poison,
            *([list(self.targets)] if self.targets else []),
        ]  # fmt: skip


def routed_policy(base: ReplicationPolicy, transforms: Sequence[TransformSpec]) -> ReplicationPolicy:
    """Return the policy that names copies: `base`, and then the transforms whose route the source topic decides."""
    routes = any(isinstance(step, Route | Rename) for spec in transforms for step in spec.steps)
    if not routes and not any(spec.targets for spec in transforms):
        return base
    known = tuple(transforms)
    return RoutedPolicy(base=base, route=partial(_routed, known), several=partial(_several, known))


def _routed(transforms: Sequence[TransformSpec], topic: str, target: str) -> str:
    found = _only(transforms, topic)
    name = None if found is None else found.target_of(topic, target)
    return target if name is None else name


def _several(transforms: Sequence[TransformSpec], topic: str, target: str) -> tuple[str, ...]:
    found = _only(transforms, topic)
    return () if found is None else found.targets_of(topic, target)


def _only(transforms: Sequence[TransformSpec], topic: str) -> TransformSpec | None:
    """Return the transform of a topic; a topic that two name is refused, and has the policy's name."""
    found = [spec for spec in transforms if spec.topics.matches(topic)]
    return found[0] if len(found) == 1 else None


def transform_of(transforms: Sequence[TransformSpec], topic: str) -> TransformSpec | None:
    """Return the transform of a source topic; None: it is copied unchanged. Raises Refused for one that two name."""
    found = [spec for spec in transforms if spec.topics.matches(topic)]
    if len(found) > 1:
        names = " and ".join(f"ferry.transform.{spec.name}.topics" for spec in found)
        raise Refused(f"topic {topic} is named by {names}: a topic has one transform; take it out of all but one")
    return found[0] if found else None
