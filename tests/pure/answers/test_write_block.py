"""A switch that is continued deletes ACLs only if the operator who continues it asks for that."""

from __future__ import annotations

import json
from pathlib import Path

from tests.pure.answers.stories import begun
from tests.pure.answers.world import world


def test_the_ledger_alone_removes_no_write_block(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        made.produce(made.a, "users", 0, 3)
        over = "switchover", "a->b", "--id", "s-1"
        waits = "--approve-by", "bob", "--quiet-seconds", "5", "--quiet-timeout", "0"
        stopped = made.ask(*over, *waits, "--remove-write-block")
        refused = made.ask(*over)
        again = made.ask(*over, "--remove-write-block")
    assert "was begun with --remove-write-block" in json.dumps(refused.body)
    assert (again.code, "was begun with" in json.dumps(again.body)) == (stopped.code, False)
