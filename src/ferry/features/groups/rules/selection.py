"""Which consumer groups a flow takes, and those of them that cannot be translated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ferry.ledger.rebuilt import Rebuild
from ferry.messages.catalogue import sentence
from ferry.model import Flow, GroupKind, Left, ListedGroup, Why

OWN_GROUPS = "ferry."
"""Begins the names of groups that hold Ferry's own positions."""

NOT_TRANSLATABLE = frozenset({GroupKind.SHARE, GroupKind.STREAMS})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """What group sync obeys."""

    flow: Flow
    takes_group: Callable[[str], bool]
    takes_topic: Callable[[str], bool]
    merges: Callable[[str], bool] = lambda _: False
    """Whether several flows write the copy of a topic (`ferry.merge.topics`)."""
    only: frozenset[str] | None = None
    """Just these groups, of those that the flow takes."""
    force: bool = False
    """Whether offsets that somebody else moved on the target are written over."""
    rebuilt: Rebuild | None = None
    """The last time that the ledger was written again from an export."""

    def concern(self, group: str) -> bool:
        """Whether the group is one of those."""
        return not is_own(group) and self.takes_group(group) and (self.only is None or group in self.only)


def is_own(group: str) -> bool:
    """Whether a group holds Ferry's positions: none of these is ever translated."""
    return group.startswith(OWN_GROUPS)


def chosen(rules: GroupRules, listed: Mapping[str, ListedGroup]) -> tuple[list[ListedGroup], list[Left]]:
    """The source's groups whose offsets are translated, and those taken that have none that could be."""
    taken = [group for name, group in sorted(listed.items()) if rules.concern(name)]
    left = [
        Left(group=group.name, place=None, why=Why.KIND, message=_of_kind(group, rules.flow.source))
        for group in taken
        if group.kind in NOT_TRANSLATABLE
    ]
    return [group for group in taken if group.kind not in NOT_TRANSLATABLE], left


def merged_sentence(flow: Flow, group: str, topic: str) -> str:
    """Why an offset in a merged topic is not given on the target (ADR 9)."""
    return sentence("group.merged", group=group, topic=topic, source=flow.source, target=flow.target)


def dealt_reason(flow: Flow) -> str:
    """Why one offset in a topic that is dealt to other partitions has no counterpart on the target (ADR 39)."""
    return (
        "for its transform deals records to other partitions: none of its offsets divides there what was read from "
        f"what was not; runs set a group's offsets on {flow.target} where it misses nothing, and ferry translate "
        "--group says where that is"
    )


def _of_kind(group: ListedGroup, alias: str) -> str:
    code = "group.share" if group.kind is GroupKind.SHARE else "group.streams"
    return sentence(code, group=group.name, source=alias)
