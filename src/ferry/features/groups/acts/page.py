"""Answers the question of the operator's page about consumer groups, from both clusters."""

from __future__ import annotations

from itertools import islice
from typing import TypeAlias

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.table import find_groups
from ferry.features.groups.rules.page import (
    LIST_OF_GROUPS,
    MOST_GROUPS,
    SHOWN_LACKING,
    GroupsStory,
    OfGroups,
    group_line,
    group_story,
)
from ferry.features.groups.rules.table import GroupTable, NotShown
from ferry.page.cut import Cut, lines
from ferry.page.part import FromClusters, shared

_Found: TypeAlias = tuple[tuple[GroupTable, ...], tuple[NotShown, ...], bool]
"""The first groups by name, what could not be read of them, and whether there are more."""


def _find(flow: FlowConfig, _: OfGroups, patience_s: float) -> _Found:
    found = find_groups(flow, patience_s=patience_s)
    tables = tuple(islice(found.tables, MOST_GROUPS))
    return tables, found.not_shown, next(found.tables, None) is not None


def _show(_: FlowConfig, asked: OfGroups, found: _Found) -> GroupsStory:
    tables, lacking, more = found
    wanted = asked.q.strip().lower()
    rows = [table for table in tables if (table.group == asked.group if asked.group else wanted in table.group.lower())]
    of_group = lines(Cut.of(rows[0].rows, asked.partitions), group_line) if asked.group and rows else None
    return GroupsStory(
        groups=lines(Cut.of(rows, asked.page, LIST_OF_GROUPS), group_story),
        of_group=of_group,
        lacking=lacking[:SHOWN_LACKING],
        more=more,
    )


PAGE = (FromClusters(of=OfGroups, find=_find, show=_show, same=shared),)
