"""A backfill that an error ends between two of its runs: what was copied before is in the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ferry.errors import FerryError, Refused, Superseded, Unreachable
from ferry.run.micro_run import MicroRuns
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world

pytestmark = pytest.mark.slow
WINDOW = "backfill", "a->b", "--lane", "backfill-june", "--from-offset", "users:0:0", "--to-offset", "users:0:9"
BUDGET = "--max-records", "3"
GONE = Unreachable("cluster b does not answer: look at its health")
OTHER = Superseded("run r2 has the lane now")
DENIED = Refused("not allowed to write to topic a.users: grant WRITE")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Records in batches of one, so that a budget is met."""
    with world(tmp_path) as made:
        begun(made, topics={"users": 0})
        made.a.topic("users")
        for _ in range(9):
            made.produce(made.a, "users", 0, 1)
        yield made


def failing(name: str, number: int, error: FerryError) -> Any:
    """A method of MicroRuns raises at its call of this number, from 1, and does its work before."""
    real: Callable[..., object] = getattr(MicroRuns, name)
    calls = 0

    def work(*args: Any, **more: Any) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            raise error
        return real(*args, **more)

    return mock.patch.object(MicroRuns, name, work)


@pytest.mark.parametrize("error", [GONE, OTHER, DENIED], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(("method", "number", "runs", "left"), [("open_new", 2, 1, 6), ("window", 3, 2, 6)])
def test_what_was_copied_before_an_error_is_the_answer(
    made: World, method: str, number: int, runs: int, left: int, error: FerryError
) -> None:
    with failing(method, number, error):
        answer = made.ask(*WINDOW, *BUDGET)
    assert answer.code == 1, "2 and 3 say that nothing was copied"
    assert (len(answer.body["runs"]), answer.body["records"]) == (runs, 3 * runs)
    assert (answer.body["state"], answer.body["left"]) == ("partial", left), "as last read"
    assert str(error) in answer.err
    again = made.ask(*WINDOW, *BUDGET)
    assert (again.code, again.body["records"], again.body["left"]) == (0, 9 - 3 * runs, 0)


@pytest.mark.parametrize("error", [GONE, OTHER, DENIED], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("method", ["open_new", "window"])
def test_an_error_before_any_record_is_the_answer(made: World, method: str, error: FerryError) -> None:
    with failing(method, 1, error):
        answer = made.ask(*WINDOW, *BUDGET)
    assert answer.code == error.exit_code
    assert "error" in answer.body


def test_a_table_says_at_most_how_much_is_left_where_it_was_not_read_again(made: World) -> None:
    with failing("window", 3, GONE):
        answer = made.ask(*WINDOW, *BUDGET, output="table")
    assert answer.code == 1
    assert "at most 6 offsets left" in answer.out
