"""A hook's address that cannot be called is refused before a switch or a drill begins, and is not printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock
from urllib.request import OpenerDirector

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world
from tests.tiers import share

APPROVED = "--approve-by", "bob"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "option", "url"),
    share(
        [
            ("failover", "--redirect-url", "gateway.example/hook?token=sekret"),
            ("failover", "--redirect-url", "http://[::1/sekret"),
            ("failover", "--redirect-url", "http://h:99999/sekret"),
            ("failover", "--redirect-url", "http://h/sekret\u00e9"),
            ("failover", "--redirect-url", "ftp://h/sekret"),
            ("failover", "--redirect-url", ""),
            ("switchover", "--redirect-url", "ftp://h/sekret"),
            ("switchover", "--stop-url", "ftp://h/sekret"),
            ("drills full", "--redirect-url", "ftp://h/sekret"),
        ],
        2,
        3,
    ),
)
def test_a_switch_to_an_address_that_cannot_be_called_does_not_begin(
    made: World, verb: str, option: str, url: str
) -> None:
    answer = made.ask(*verb.split(), "a->b", *APPROVED, option, url)
    assert (answer.code, option in answer.err, "sekret" in answer.err + answer.out) == (2, True, False), answer.err
    assert made.ask("switches", "list", "a->b").body["switches"] == []
    assert made.ask("reports", "list").body["reports"] == []


@pytest.mark.slow
def test_a_switch_is_not_continued_with_such_an_address(made: World) -> None:
    over = "failover", "a->b", "--id", "f-1"
    with mock.patch.object(OpenerDirector, "open", side_effect=OSError("no route")):
        stopped = made.ask(*over, *APPROVED, "--redirect-url", "http://gateway.example/")
    again = made.ask(*over, "--redirect-url", "gateway.example/sekret")
    assert (stopped.code, again.code, "sekret" in again.err) == (4, 2, False)
