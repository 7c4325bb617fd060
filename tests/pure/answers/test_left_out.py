"""Records that are no lag and not on the target: readiness, switches and drills have their number next to the loss."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferry.ledger.codec import encode
from ferry.model import Record
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World

pytestmark = pytest.mark.slow
OVER = (*("switchover", "a->b", "--id", "s-1", "--quiet-seconds", "0"), "--approve-by", "bob")
TURN = "b->a.enabled = true"


def ledger_of(made: World, *key: object) -> dict[str, Any]:
    """The ledger's only record whose key begins with this."""
    path = made.folder / "ledger.jsonl"
    path.unlink(missing_ok=True)
    assert made.ask("ledger", "export", "a->b", "--output", path.name).code == 0
    every = [json.loads(line) for line in path.read_text().splitlines()]
    (found,) = (one for one in every if one.get("key", [])[: len(key)] == list(key))
    return dict(found)


def write(made: World, record: dict[str, Any]) -> None:
    """Write a record of the ledger again."""
    one = Record(key=encode(record["key"]), value=encode(record["value"]))
    made.b.append(ledger_topic("a"), build_batch([one], made.now_ms, ProducerIdentity()), 0)


def copied(made: World) -> None:
    """Of 10 records, 3 became dead letters: the receipt is rewritten, because no transform runs here."""
    begun(made, TURN, topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    made.ask("run", "a->b", "--id", "r1")
    receipt = ledger_of(made, "receipt")
    receipt["value"] |= {"v": 2, "transform": "mask", "transform_digest": "m", "dead_letters": 3}
    write(made, receipt)


def reports_of(made: World) -> list[dict[str, Any]]:
    """The reports of the folder."""
    return [json.loads(path.read_text()) for path in sorted((made.folder / "reports").glob("report-*.json"))]


def switch_report(made: World, switch: str) -> dict[str, Any]:
    """The report of a switch, from the ledgers."""
    body: dict[str, Any] = made.ask("reports", "switch", "a->b", switch).body
    return body


def check(made: World) -> dict[str, Any]:
    checks = made.ask("readiness", "a->b").body["checks"]
    (found,) = (one for one in checks if one["name"] == "passed-over")
    return dict(found)


def test_readiness_and_a_switchover_have_the_number_of_dead_letters_next_to_the_loss(made: World) -> None:
    copied(made)
    found = check(made)
    assert (found["ok"], found["known"]) == (True, True)
    assert "3 records" in found["message"]
    assert "users-0" in found["message"]

    assert made.ask(*OVER).code == 0
    report = switch_report(made, "s-1")
    (one,) = report["rpo"]["passed_over"]
    assert (one["why"], one["topic"], one["partition"], one["records"]) == ("dead-letters", "users", 0, 3)
    assert (report["rpo"]["records"], report["rpo"]["dead_letters"], report["rpo"]["before_adoption"]) == (0, 3, 0)
    assert "0 records were lost" not in report["summary"]
    assert "3 records" in report["summary"]
    assert any("3 records" in note and "users-0" in note for note in report["notes"])
    assert report["outcome"] == "success", "the file decided it"
    (group,) = report["groups"]
    assert (group["reread"], group["skipped"]) == (0, None), "which of them it had read is not known"


def test_a_failover_and_the_failback_have_it_too(made: World) -> None:
    copied(made)
    failover = made.ask("failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-smoke")
    assert failover.code == 0, failover.err
    there = switch_report(made, "f-1")
    assert there["rpo"]["dead_letters"] == 3
    (loss,) = [one["detail"] for one in there["steps"] if one["name"] == "failover-loss"]
    assert "3 records" in loss
    back = made.ask("failback", "a->b", "--id", "s-2", *OVER[4:], "--leave-group", "billing")
    assert back.code == 0, back.err
    assert switch_report(made, "s-2")["rpo"]["dead_letters"] == 0, "the way back made none"


def test_drills_and_the_list_of_their_reports_have_it_too(made: World) -> None:
    copied(made)
    made.ask("drills", "tabletop", "a->b", "--report", "reports")
    made.ask("drills", "partial", "a->b", "--topic", "users", "--approve-by", "bob", "--report", "reports")
    reports = reports_of(made)
    assert [one["kind"] for one in reports[:2]] == ["tabletop", "partial"]
    for report in reports:
        assert report["rpo"]["dead_letters"] == 3
        assert "3 records" in report["summary"]
        assert any("3 records" in note for note in report["notes"])
    for listed in made.ask("reports", "list", "reports").body["reports"]:
        assert (listed["rpo_records"], listed["dead_letters"], listed["before_adoption"]) == (0, 3, 0)


def test_what_a_mirror_maker_left_out_before_its_adoption_is_not_known(made: World) -> None:
    """The ledger has where it was, and not which records it had left out."""
    begun(made, TURN, topics={"users": 1})
    made.b.topic("a.users", 1)
    made.produce(made.b, "a.users", 0, 9)
    made.commit(made.a, "mirror", users_0=10)
    adopted = made.ask("migrate", "mm1", "a->b", "--group", "mirror")
    assert adopted.code == 0, adopted.out + adopted.err
    made.ask("run", "a->b", "--id", "r1")
    found = check(made)
    assert (found["ok"], found["known"]) == (True, False)
    assert "users-0" in found["message"]
    over = made.ask(*OVER)
    assert over.code == 0, over.err
    report = switch_report(made, "s-1")
    assert (report["rpo"]["records"], report["rpo"]["dead_letters"], report["rpo"]["before_adoption"]) == (0, 0, None)
    assert "0 records were lost" not in report["summary"]
    assert "not known" in report["summary"]
