"""One topic whose settings a broker cannot describe: that topic is refused, and the others are copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.test_hidden_topics import end_of, refusals
from tests.pure.answers.world import World, world
from tests.pure.scripted.faults import Fault

pytestmark = pytest.mark.slow
UNKNOWN = [("odd", "no-leader", "settings.unknown")]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Two clusters, and a flow of two topics."""
    with world(tmp_path) as made:
        begun(made, topics={"odd": 1, "orders": 1})
        yield made


@pytest.mark.parametrize("code", [-1, 7, 56])
def test_a_new_topic_without_settings_waits_and_the_others_are_copied(made: World, code: int) -> None:
    made.a.undescribed = {"odd": code}
    assert refusals(made.ask("run", "a->b", "--id", "r1")) == UNKNOWN
    assert "a.odd" not in made.b.ids
    assert end_of(made, "a.orders") == made.a.log("orders", 0).end
    made.a.undescribed = {}
    assert refusals(made.ask("run", "a->b", "--id", "r2")) == []
    assert end_of(made, "a.odd") == made.a.log("odd", 0).end


@pytest.mark.parametrize(("side", "name"), [("a", "odd"), ("b", "a.odd")], ids=["source", "copy"])
def test_a_copied_topic_without_settings_waits_and_the_others_are_copied(made: World, side: str, name: str) -> None:
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    for topic in ("odd", "orders"):
        made.produce(made.a, topic, 0, 3)
    getattr(made, side).undescribed = {name: -1}
    assert refusals(made.ask("run", "a->b", "--id", "r2")) == UNKNOWN
    assert end_of(made, "a.orders") == made.a.log("orders", 0).end
    getattr(made, side).undescribed = {}
    assert refusals(made.ask("run", "a->b", "--id", "r3")) == []
    assert end_of(made, "a.odd") == made.a.log("odd", 0).end


def test_a_copy_whose_limit_is_not_shown_after_the_plan_is_copied(made: World) -> None:
    fault = Fault(
        api="InitProducerId", key="ferry.a->b.live.0", skip=1, then=lambda: made.b.undescribed.update({"a.odd": -1})
    )
    made.b.faults.append(fault)
    assert refusals(made.ask("run", "a->b", "--id", "r1")) == []
    assert (fault.happened, end_of(made, "a.odd")) == (1, made.a.log("odd", 0).end)
