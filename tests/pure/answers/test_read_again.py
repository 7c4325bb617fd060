"""How many records a group reads again after a failover: those that were copied, and none of a run that was lost."""

from __future__ import annotations

import pytest

from ferry.model import Record
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import IDENTITY, begun
from tests.pure.answers.world import World
from tests.pure.protocol.broker import Entry
from tests.pure.scripted.batches import Part

pytestmark = pytest.mark.slow
FAIL = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-reverse", "--no-smoke"
BACK = ("b->a.enabled = true", "b->a.topics = users")
LOST = 99
"""The producer of a run that was killed with its source."""


@pytest.mark.parametrize(
    ("lines", "topic", "markers", "again"),
    [
        ((), "a.users", None, 6),  # of ten records it had read four
        ((), "a.users", [], None),  # the transaction is open, and may still be committed
        ((), "a.users", [False], 6),
        (BACK, "a.users", [False], 6),
        ((IDENTITY,), "users", [False], 6),
        ((IDENTITY, *BACK), "users", [False], 13),  # on the old cluster it may have read copies of what is there
    ],
)
def test_records_that_a_lost_run_did_not_commit_are_not_counted(
    made: World, lines: tuple[str, ...], topic: str, markers: list[bool] | None, again: int | None
) -> None:
    begun(made, *lines, topics={"users": 1})
    if IDENTITY in lines and BACK[0] in lines:
        assert made.ask("pause", "b->a", "--reason", "standby").code == 0
    made.commit(made.a, "billing", users_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    log = made.b.log(topic, 0)
    if markers is not None:
        batch = build_batch([Record(key=b"k", value=b"lost")] * 5, made.now_ms, ProducerIdentity())
        log.entries += [Entry(payload=Part(batch, at), producer=LOST) for at in range(5)]
        log.entries += [Entry(producer=LOST, committed=committed) for committed in markers]
    made.lost = made.a
    answer = made.ask(*FAIL)
    assert answer.code == 0, answer.out + answer.err
    (groups,) = [step for step in answer.body["steps"] if step["step"] == "groups"]
    (row,) = groups["rows"]
    assert (row["outcome"], row["again"]) == ("moved", again)
