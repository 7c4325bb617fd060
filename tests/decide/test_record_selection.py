"""What a selection may be made of."""

from __future__ import annotations

import pytest

from ferry.config.flow.selection_rules import KEPT
from ferry.decide.records.selection import Node, check_columns, check_nodes
from ferry.errors import BadInput, Refused


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
    ("node", "words"),
    [
        (plan("Join"), "the transform has a join: each row has to come of one record"),
        (plan("SomethingNew"), "the transform has SomethingNew: each row"),
        (expression("exists", has_plan=True), "the transform, line 2, column 8, has a subquery"),
        (expression("rand", deterministic=False), r"the transform, line 2, column 8, calls rand\(\), which is not"),
        (expression("current_date"), r"calls current_date\(\), which is not the same each time"),
    ],
)
def test_what_is_refused(node: Node, words: str) -> None:
    with pytest.raises(Refused, match=words):
        check_nodes([plan("Project"), node])


@pytest.mark.parametrize(
    ("types", "own", "words"),
    [
        ({name: KEPT[name] for name in KEPT if name != "timestamp"}, KEPT, "drops the column timestamp: select it"),
        ({**KEPT, "value": "string"}, KEPT, "makes the column value string, it has to be binary: cast it"),
        (KEPT, ["partition"], "changes the column offset, which says where a record came from"),
    ],
)
def test_columns_that_a_record_needs(types: dict[str, str], own: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        check_columns(types, own)
