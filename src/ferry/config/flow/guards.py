"""What a flow does when a guard trips: `ferry.guard.*`, for all its topics or for some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum

from ferry.config.text.filters import PatternList
from ferry.config.text.problem import BadValue
from ferry.config.text.regex import NotExpressible
from ferry.messages.catalogue import sentence


class OnGuard(StrEnum):
    """What happens to the topic or partition of a guard (ADR 18)."""

    FAIL = "fail"
    """The topic or partition is refused, and the run is red until an operator acts."""
    RESTART = "restart"
    """What the target holds stays unchanged. The source is copied again after it, from where both sides still agree."""
    SKIP = "skip"
    """It continues at its position: the plan shows it, and the ledger keeps a gap with what is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPolicy:
    """One guard's policy: `default`, except for topics that a pattern of `exceptions` names; the first match counts."""

    default: OnGuard = OnGuard.FAIL
    exceptions: tuple[tuple[OnGuard, PatternList], ...] = ()
    """Patterns of source topics, in the file's order."""

    def of(self, topic: str) -> OnGuard:
        """Return the policy for a source topic."""
        return next((policy for policy, pattern in self.exceptions if pattern.matches(topic)), self.default)

    def __str__(self) -> str:
        return ", ".join([self.default, *(f"{policy}:{pattern.items[0]}" for policy, pattern in self.exceptions)])


FAIL = GuardPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards that a file may set; all others fail."""

    topics_none: GuardPolicy = FAIL
    topic_gone: GuardPolicy = FAIL
    topic_recreated: GuardPolicy = FAIL
    retention_passed: GuardPolicy = FAIL
    source_truncated: GuardPolicy = FAIL
    target_changed: GuardPolicy = FAIL
    foreign_writer: GuardPolicy = FAIL
    tombstones_passed: GuardPolicy = FAIL
    cluster_changed: GuardPolicy = FAIL
    clock_skew: GuardPolicy = FAIL

    def of(self, kind: str, topic: str) -> OnGuard:
        """Return the policy for a source topic that is refused for `kind`: the refusal's word is the guard's name."""
        policy: GuardPolicy = getattr(self, kind.replace("-", "_"))
        return policy.of(topic)

    def digested(self) -> dict[str, str]:
        """Return the guards for a configuration's digest: of later guards only those that are not at `fail`."""
        first = ("topic_gone", "retention_passed")
        values: dict[str, GuardPolicy] = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: str(policy) for name, policy in values.items() if name in first or policy != FAIL}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardKey:
    """One guard as the file names it, with the policies that it may have."""

    attribute: str
    """The attribute of Guards."""
    policies: tuple[OnGuard, ...]
    per_topic: bool = True

    @property
    def kind(self) -> str:
        """The word of its refusals."""
        return self.attribute.replace("_", "-")

    @property
    def key(self) -> str:
        """Its key at top level."""
        return f"ferry.guard.{self.attribute.replace('_', '.')}"


_F, _R, _S = OnGuard
GUARD_KEYS = (
    GuardKey(attribute="topics_none", policies=(_F, _S), per_topic=False),
    GuardKey(attribute="topic_gone", policies=(_F, _S)),
    GuardKey(attribute="topic_recreated", policies=(_F, _R)),
    GuardKey(attribute="retention_passed", policies=(_F, _S)),
    GuardKey(attribute="source_truncated", policies=(_F, _R, _S)),
    GuardKey(attribute="target_changed", policies=(_F, _R, _S)),
    GuardKey(attribute="foreign_writer", policies=(_F, _S)),
    GuardKey(attribute="tombstones_passed", policies=(_F, _S)),
    GuardKey(attribute="cluster_changed", policies=(_F, _R), per_topic=False),
    GuardKey(attribute="clock_skew", policies=(_F, _S), per_topic=False),
)


def guard_policy(guard: GuardKey) -> Callable[[str], GuardPolicy]:
    """Return a reader of a guard's policy.

    It reads `fail`, or `fail, skip:logs.*, restart:orders`: a policy for all topics, and others for some.
    """
    words = ", ".join(guard.policies)

    def policy(text: str) -> OnGuard:
        if text not in guard.policies:
            raise BadValue(sentence("value.choice", value=text, choices=words))
        return OnGuard(text)

    def read(text: str) -> GuardPolicy:
        default: OnGuard | None = None
        exceptions: list[tuple[OnGuard, PatternList]] = []
        for item in (part.strip() for part in text.split(",")):
            word, colon, pattern = item.partition(":")
            if not colon:
                if default is not None:
                    raise BadValue(sentence("value.guard.twice", item=item))
                default = policy(item)
                continue
            if not guard.per_topic:
                raise BadValue(sentence("value.guard.whole-flow", item=item, words=words))
            exceptions.append((policy(word.strip()), _pattern(item, pattern.strip())))
        return GuardPolicy(default=default or OnGuard.FAIL, exceptions=tuple(exceptions))

    return read


def _pattern(item: str, pattern: str) -> PatternList:
    if not pattern:
        raise BadValue(sentence("value.guard.no-topics", item=item))
    try:
        return PatternList(items=(pattern,))
    except NotExpressible as error:
        raise BadValue(sentence("value.pattern", pattern=pattern, error=str(error))) from None
