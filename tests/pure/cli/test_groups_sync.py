"""What `ferry groups sync --dry-run` says would be read again, where the ledger does not know all of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ferry.features.groups.cli.sync import show_wish
from ferry.features.groups.rules.checkpoints import Write
from ferry.model import Checkpoint, Found, TopicPartition
from tests.golden import Golden


def write(partition: int, again: int | None) -> Write:
    place = TopicPartition("orders", partition)
    one = Checkpoint("billing", place, 12, place, 40, Found.AGAIN, read=(5, 7), again=again)
    return Write(checkpoint=one, before=None, prior=None)


@pytest.mark.parametrize(
    ("again", "lines"),
    [((0, 0), 0), ((3, 4), 1), ((3, None), 1), ((None, None), 1)],
    ids=["nothing", "all is known", "a part is known", "nothing is known"],
)
def test_what_nobody_can_count_is_not_said_to_be_nothing(
    again: tuple[int | None, ...], lines: int, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    writes = {"billing": [write(partition, count) for partition, count in enumerate(again)]}
    looked: Any = SimpleNamespace(decided=SimpleNamespace(writes=writes, unchanged=0), left=())
    show_wish(looked)
    said = [line for line in capsys.readouterr().out.splitlines() if "read again" in line]
    assert len(said) == lines
    for line in said:
        golden(line)
