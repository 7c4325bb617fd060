"""What a selection may be made of."""

from __future__ import annotations

import pytest

from ferry.config.flow.selection_rules import KEPT
from ferry.errors import BadInput, Refused
from ferry.features.records.rules.selection import Node, check_columns, check_nodes
from tests.golden import Golden


def plan(kind: str) -> Node:
    return Node(kind=kind, name=kind, is_plan=True, deterministic=True, has_plan=False, position=None)


def expression(name: str, *, deterministic: bool = True, has_plan: bool = False) -> Node:
    return Node(
        kind=name.title(), name=name, is_plan=False, deterministic=deterministic, has_plan=has_plan, position=(2, 8)
    )  # fmt: skip


def test_rows_of_one_record_each() -> None:
    check_nodes([plan("Project"), expression("sha2"), plan("Filter"), plan("SubqueryAlias"), plan("View")])
    check_columns({**KEPT, "more": "string"}, ["offset", "partition", "key"])


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(plan("Join"), id="Join"),
        pytest.param(plan("SomethingNew"), id="SomethingNew"),
        pytest.param(expression("exists", has_plan=True), id="exists, has_plan=true"),
        pytest.param(expression("rand", deterministic=False), id="rand, deterministic=false"),
        pytest.param(expression("current_date"), id="current_date"),
    ],
)
def test_what_is_refused(node: Node, golden: Golden) -> None:
    with pytest.raises(Refused) as caught:
        check_nodes([plan("Project"), node])
    golden(caught.value)


@pytest.mark.parametrize(
    ("types", "own"),
    [
        pytest.param(
            {name: KEPT[name] for name in KEPT if name != "timestamp"},
            KEPT,
            id="no timestamp",
        ),
        pytest.param({**KEPT, "value": "string"}, KEPT, id="a text as value"),
        pytest.param(KEPT, ["partition"], id="another offset"),
    ],
)
def test_columns_that_a_record_needs(types: dict[str, str], own: list[str], golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        check_columns(types, own)
    golden(caught.value)
