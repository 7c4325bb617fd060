"""Which consumer groups a flow takes, and which of them cannot be translated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ferry.config.text.filters import LEGAL_NAME
from ferry.ledger.rebuilt import Rebuild
from ferry.messages.catalogue import sentence
from ferry.model import Flow, GroupKind, Left, ListedGroup, Why

OWN_GROUPS = "ferry."
"""The names of groups that hold Ferry's own positions begin with it."""

NOT_TRANSLATABLE = frozenset({GroupKind.SHARE, GroupKind.STREAMS})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """The rules that group sync follows."""

    flow: Flow
    takes_group: Callable[[str], bool]
    takes_topic: Callable[[str], bool]
    merges: Callable[[str], bool] = lambda _: False
    """Whether several flows write the copy of a topic (`ferry.merge.topics`)."""
    only: frozenset[str] | None = None
    """Only these groups, of those that the flow takes. None: all of them."""
    force: bool = False
    """Whether offsets that another process moved on the target are overwritten."""
    rebuilt: Rebuild | None = None
    """The last time that the ledger was rebuilt from an export; None: never."""

    def concern(self, group: str) -> bool:
        """Report whether these rules take the group."""
        return not is_own(group) and self.takes_group(group) and (self.only is None or group in self.only)


def is_own(group: str) -> bool:
    """Report whether a group holds Ferry's own positions. Such a group is never translated."""
    return group.startswith(OWN_GROUPS)


def chosen(rules: GroupRules, listed: Mapping[str, ListedGroup]) -> tuple[list[ListedGroup], list[Left]]:
    """Return the source's groups whose offsets are translated, and a `Left` for each taken group that cannot be."""
    taken = [group for name, group in sorted(listed.items()) if rules.concern(name)]
    left = [
        Left(group=group.name, place=None, why=Why.KIND, message=_of_kind(group, rules.flow.source))
        for group in taken
        if group.kind in NOT_TRANSLATABLE
    ]
    return [group for group in taken if group.kind not in NOT_TRANSLATABLE], left


def asked_by_name(
    include: Collection[str], rules: GroupRules, listed: Collection[str], held: Collection[str]
) -> list[str]:
    """Return the groups to ask for by name: a cluster lists neither hidden groups nor those that are gone.

    They are the names of `include` that are not patterns, those that are asked for, and those that the ledger `held`.
    """
    literal = {name for name in include if LEGAL_NAME.fullmatch(name)}
    named = {name for name in literal | (rules.only or frozenset()) if rules.concern(name)}
    return sorted({*named, *held} - set(listed))


def merged_sentence(flow: Flow, group: str, topic: str) -> str:
    """Say why an offset in a merged topic has no counterpart on the target (ADR 9)."""
    return sentence("group.merged", group=group, topic=topic, source=flow.source, target=flow.target)


def dealt_reason(flow: Flow) -> str:
    """Say why one offset in a repartitioned topic has no counterpart on the target (ADR 39)."""
    return (
        "because its transform repartitions records: no offset of the copy separates what was read from what was not; "
        f"runs set a group's offsets on {flow.target} where it misses nothing, and ferry translate --group shows "
        "where that is"
    )


def _of_kind(group: ListedGroup, alias: str) -> str:
    code = "group.share" if group.kind is GroupKind.SHARE else "group.streams"
    return sentence(code, group=group.name, source=alias)
