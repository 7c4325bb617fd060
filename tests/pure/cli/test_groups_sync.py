"""What `ferry groups sync --dry-run` says would be read again, where the ledger does not know all of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ferry.features.groups.cli.sync import show_wish
from ferry.features.groups.rules.checkpoints import Write
from ferry.model import Checkpoint, Found, TopicPartition


def write(partition: int, again: int | None) -> Write:
    place = TopicPartition("orders", partition)
    one = Checkpoint("billing", place, 12, place, 40, Found.AGAIN, read=(5, 7), again=again)
    return Write(checkpoint=one, before=None, prior=None)


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ((0, 0), None),
        ((3, 4), "7 records at most would be read again, of topics that get other partitions"),
        (
            (3, None),
            "3 records at most would be read again, of topics that get other partitions, and not known for 1 offset",
        ),
        ((None, None), "how many records would be read again is not known for 2 offsets"),
    ],
)
def test_what_nobody_can_count_is_not_said_to_be_nothing(
    again: tuple[int | None, ...], said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    writes = {"billing": [write(partition, count) for partition, count in enumerate(again)]}
    looked: Any = SimpleNamespace(decided=SimpleNamespace(writes=writes, unchanged=0), left=())
    show_wish(looked)
    lines = [line for line in capsys.readouterr().out.splitlines() if "read again" in line]
    assert lines == ([] if said is None else [said])
