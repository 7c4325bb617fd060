"""Groups that the operator leaves (`--leave-group`): evidence names them and claims nothing else of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world

pytestmark = pytest.mark.slow
FAIL = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-reverse", "--no-smoke"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.mark.parametrize("is_lost", [False, True], ids=["the source answers", "the source is lost"])
def test_a_group_that_is_left_is_in_the_report_and_what_it_reads_twice_is_not_known(made: World, is_lost: bool) -> None:
    begun(made, "b->a.enabled = true", topics={"users": 1})
    for group in ("billing", "billing-night"):
        made.commit(made.a, group, users_0=2)
    made.ask("run", "a->b", "--id", "r1")
    made.lost = made.a if is_lost else None
    answer = made.ask(*FAIL, "--leave-group", "billing-night", "--leave-group", "nowhere")
    assert answer.code == 0, answer.out + answer.err
    (groups,) = [step for step in answer.body["steps"] if step["step"] == "groups"]
    assert {row["group"]: row["outcome"] for row in groups["rows"]} == {"billing": "moved", "billing-night": "left"}
    assert ", 1 left" in groups["sentence"]
    body = made.ask("reports", "switch", "a->b", "f-1").body
    found = {one["group"]: one for one in body["groups"]}
    assert found.keys() == {"billing", "billing-night"}
    assert found["billing-night"]["reread"] is None
    assert "--leave-group" in found["billing-night"]["note"]
    assert {one["name"]: one["measured"] for one in body["goals"]}["records read twice"] is None
