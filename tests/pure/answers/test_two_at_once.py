"""Two operators who write to one ledger at once: what each of them reads is true."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ferry.features.groups.acts import snapshots
from ferry.features.groups.rules.codec import Snapshot, snapshot_record
from ferry.features.groups.rules.rollback import decide_rollback
from ferry.features.migrate.acts import adopting
from ferry.features.migrate.acts.hand_back import HANDED_BACK
from ferry.features.migrate.rules.adoption import adoptions_of
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.codec import encode, pause_record
from ferry.model import Pause, Record
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import IDENTITY, begun
from tests.pure.answers.world import World, world


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as found:
        yield found


def other(made: World, *records: Record) -> None:
    """Another process writes to the ledger of a->b."""
    made.b.append(ledger_topic("a"), build_batch(list(records), made.now_ms, ProducerIdentity()), 0)


def test_of_two_snapshots_of_one_name_the_later_is_refused(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    made.ask("run", "a->b", "--id", "r1")
    real, found = LedgerTopic.append, [Snapshot(name="kept", at_ms=1, who="eve@desk-9", groups=1)]

    async def append(self: LedgerTopic, records: Sequence[Record]) -> int:
        if found:
            other(made, snapshot_record("live", found.pop()))
        return await real(self, records)

    monkeypatch.setattr(LedgerTopic, "append", append)
    refused = made.ask("groups", "snapshot", "a->b", "--name", "kept")
    assert (refused.code, "error" in refused.body) == (2, True)
    assert made.ask("groups", "snapshot", "a->b", "--drop", "kept").code == 0
    assert made.ask("groups", "snapshot", "a->b", "--name", "kept").code == 0


def test_a_rollback_leaves_a_group_that_another_process_writes(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    made.ask("run", "a->b", "--id", "r1")
    made.ask("groups", "snapshot", "a->b", "--name", "kept")
    made.commit(made.a, "billing", orders_0=8)
    made.ask("groups", "sync", "a->b")
    there = dict(made.b.groups["billing"])
    key = encode(["group", "live", "billing"])

    def last(file: str) -> dict[str, Any]:
        made.ask("ledger", "export", "a->b", "--output", file)
        lines = [json.loads(line) for line in (made.folder / file).read_text().splitlines()]
        found: dict[str, Any] = [line for line in lines if line.get("key") == json.loads(key)][-1]["value"]
        return found

    held = last("before.jsonl")

    def slowly(*words: Any, **more: Any) -> Any:
        other(made, Record(key=key, value=encode({**held, "run": "r2"})))
        return decide_rollback(*words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "decide_rollback", slowly)
        answer = made.ask("groups", "rollback", "a->b", "--snapshot", "kept")
    assert made.b.groups["billing"] == there
    assert "run r2" in json.dumps(answer.body)
    assert last("after.jsonl")["run"] == "r2", "what Ferry remembers of the group is that process's"


def test_a_pause_that_is_set_while_a_flow_is_taken_over_stays(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made, IDENTITY)
    made.b.topic("orders", 2)
    for partition in range(2):
        made.produce(made.b, "orders", partition, 8)
    made.commit(made.a, "mirror", orders_0=8, orders_1=7)
    made.ask("pause", "a->b", "--reason", f"{HANDED_BACK} by r0")

    def slowly(*words: Any) -> Any:
        other(made, pause_record(Pause(topic="", who="eve@desk-9", why="the source is corrupt", since_ms=1)))
        return adoptions_of(*words)

    adopt = "migrate", "mm1", "a->b", "--group", "mirror", "--topic", "orders"
    with monkeypatch.context() as patch:
        patch.setattr(adopting, "adoptions_of", slowly)
        assert made.ask(*adopt).code == 0
    (pause,) = made.ask("ledger", "a->b", "--pauses").body["pauses"]
    assert pause["who"] == "eve@desk-9"
