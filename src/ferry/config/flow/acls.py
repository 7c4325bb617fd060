"""How ACLs are copied: `ferry.sync.acls.policy` and `ferry.sync.acls.principal.mapping`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from ferry.config.text.problem import BadValue
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.messages.catalogue import sentence
from ferry.model import EVERYBODY

_BETWEEN_RULES = re.compile(r"(?<!\\);")
_ARROW = re.compile(r"\s*=>\s*")
_PRINCIPAL = re.compile(r"([^:\s]+:|\$[0-9]).*")
_PLACE = re.compile(r"\\(.)|\$([0-9])")


class AclPolicy(StrEnum):
    """Which ACLs of the source are copied."""

    READ = "read"
    """The read side of single topics, as in MirrorMaker 2."""
    FULL = "full"
    """All ACLs of topics, groups, transactional ids and the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRule:
    """Principals that `pattern` (Java's) matches wholly become `replacement`.

    With an empty one, their ACLs are left out.
    """

    pattern: str
    replacement: str
    _compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the pattern. Raises BadValue with the remedy."""
        try:
            compiled = compile_java(self.pattern)
        except NotExpressible as error:
            raise BadValue(sentence("value.pattern", pattern=self.pattern, error=str(error))) from None
        object.__setattr__(self, "_compiled", compiled)
        for number in (int(found[2]) for found in _PLACE.finditer(self.replacement) if found[2]):
            if number > compiled.groups:
                raise BadValue(
                    sentence(
                        "value.principal.group",
                        replacement=self.replacement,
                        number=number,
                        pattern=self.pattern,
                        groups=compiled.groups,
                    )
                )
        if self.replacement and not _PRINCIPAL.fullmatch(self.replacement):
            raise BadValue(sentence("value.principal", replacement=self.replacement))

    def applied(self, principal: str) -> str | None:
        """Return the mapped principal; empty: its ACLs are left out; None: the rule does not match it."""
        match = self._compiled.fullmatch(principal)
        if match is None:
            return None
        return _PLACE.sub(lambda place: place[1] or match[int(place[2])] or "", self.replacement)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalMapping:
    """The principal on the target for each of the source: the first matching rule counts.

    Without rules: the same one.
    """

    rules: tuple[PrincipalRule, ...] = ()

    def of(self, principal: str) -> str | None:
        """Return the principal on the target; empty: its ACLs are left out; None: no rule matches it.

        `User:*`, Kafka's principal for all, is not a pattern and needs no rule.
        """
        if principal == EVERYBODY or not self.rules:
            return principal
        found = (rule.applied(principal) for rule in self.rules)
        return next((mapped for mapped in found if mapped is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSync:
    """The values of `ferry.sync.acls.*`."""

    policy: AclPolicy = AclPolicy.READ
    mapping: PrincipalMapping = PrincipalMapping()
    asked: bool = field(default=False, compare=False)
    """Whether the file itself sets `sync.topic.acls.enabled`; without a line it is on, too."""


def principal_mapping(text: str) -> PrincipalMapping:
    """Parse rules `PATTERN => PRINCIPAL` with semicolons between them, because principals hold commas.

    Raises BadValue.
    """
    rules = []
    for written in (part.strip() for part in _BETWEEN_RULES.split(text)):
        if not written:
            continue
        sides = _ARROW.split(written)
        if len(sides) != 2 or not sides[0]:
            raise BadValue(sentence("value.rule", written=written))
        rules.append(PrincipalRule(pattern=sides[0], replacement=sides[1]))
    return PrincipalMapping(rules=tuple(rules))
