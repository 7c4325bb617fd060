"""docs/ledger.md is a contract: its examples are read, and written again with the same keys and fields."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.features.groups.rules.codec import (
    group_record,
    parse_group,
    saved_groups,
    saved_record,
    snapshot_record,
    snapshots,
)
from ferry.features.switch.rules.approvals import approval_of_run, approval_record
from ferry.ledger.acl_codec import ACL, keyed_acl, own_acl_record, synced_record
from ferry.ledger.adoption_codec import adoption_records, parse_adoption
from ferry.ledger.block_index import Block
from ferry.ledger.checkpoint_codec import checkpoint_record, group_outcome
from ferry.ledger.codec import (
    DELETED,
    accounted_records,
    claim_record,
    deleted_record,
    encode,
    gap_record,
    parse_gap,
    parse_pause,
    pause_record,
    share_record,
)
from ferry.ledger.kinds import KINDS, OfLost
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.map_block import ReceiptChain, unpack
from ferry.ledger.mirror_state import mirror_record, mirror_state
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.producer_codec import Continued, continued_record, marking_record, producer_record
from ferry.ledger.pruning import parse_pruned, pruned_record
from ferry.ledger.rebuilt import Rebuild, newest_rebuild, rebuild_record
from ferry.ledger.receipt_codec import parse_dealt_receipt, parse_receipt, receipt_json, receipt_records
from ferry.ledger.run_codec import (
    OUTCOME,
    attempt_record,
    fenced_record,
    outcome_record,
    parse_attempt,
    parse_run,
    run_record,
)
from ferry.ledger.runs import sealed_plan
from ferry.ledger.summary import block_records, parse_summary, seal_record, seals, summary_parts
from ferry.ledger.switch_codec import begun_record, done_records, end_record, switch_record, switch_states
from ferry.ledger.unit_codec import era_record, parse_era
from ferry.ledger.verified_codec import run_verified, run_verified_record
from ferry.ledger.window_codec import dropped_lanes, dropped_record, parse_window, window_record
from ferry.model import AclChange, Flow, Record, TopicPartition
from ferry.model.switch import Step
from ferry.plan.rules.facts import Seen
from ferry.plan.rules.starts import start_records
from ferry.plan.rules.tombstones import seen_records
from tests.pure.decide.values import FACTS, PLAN, RECEIPT, RULES, facts_with, lying, part, place, topic

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "ledger.md").read_text()


def block_below(heading: str) -> str:
    """The first code block of a section."""
    found = re.search(rf"^## {heading}$.*?^```\w*\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def objects(text: str) -> Iterator[Any]:
    """JSON values one behind the other."""
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = json.JSONDecoder().raw_decode(text, at)
        yield value


def documented() -> list[Record]:
    """The example of every record, compact as Ferry writes it; a plan's part has several lines."""
    receipt = json.loads(block_below("A receipt"))
    records = list(receipt_records(parse_receipt(receipt)))
    for entry in re.findall(r"^\[.*\n(?:  .*\n)+", block_below("Every other record"), re.MULTILINE):
        key, *values = objects(entry)
        records.append(Record(key=encode(key), value=b"\n".join(encode(value) for value in values)))
    return records


def kind(record: Record) -> str:
    """The first word of a record's key."""
    return str(json.loads(record.key)[0])


def _plan(key: list[Any], _: Any) -> list[Record]:
    """All records of the plan that the documented parts and their seal make."""
    found = sealed_plan(fold(lying(*documented()), 99), key[1], key[2], key[3])
    assert found is not None
    return plan_records(found[0])


def _attempt(key: list[Any], body: Any) -> list[Record]:
    begun = parse_attempt(key[2], 4712, body)
    return [attempt_record(key[1], begun.run, begun.generation, begun.started_ms, begun.origin)]


def _accounted(key: list[Any], body: Any) -> list[Record]:
    offsets = {place(key[2], number): offset for number, offset in body["offsets"]}
    return accounted_records(key[1], offsets, {key[2]: body["topic_id"]})


def _seen(key: list[Any], body: Any) -> list[Record]:
    ((number, whole_ms, asked_ms, end),) = body["read"]
    long_ago = {place(key[2], number): Seen(whole_ms=0, asked_ms=whole_ms, asked_end=end)}
    compacted = {"cleanup.policy": "compact", "delete.retention.ms": "1"}
    there = topic(key[2], part(end=end + 1), topic_id=body["topic_id"], configs=compacted)
    last = replace(RECEIPT, source=place(key[2]), target=place(f"a.{key[2]}"), end=end)
    receipts = {last.target: last}
    facts = facts_with(
        FACTS, now_ms=asked_ms, source={"topics": {key[2]: there}}, lane={"seen": long_ago, "receipts": receipts}
    )
    (record,) = seen_records(replace(RULES, lane=key[1]), facts, PLAN)
    return [replace(record, value=encode(json.loads(record.value or b"") | {"read": body["read"]}))]


def _start(key: list[Any], body: Any) -> list[Record]:
    pending = {place(key[2], number): timestamp for number, timestamp in body["pending"]}
    away = tuple(at.partition for at in pending)
    parts = (part(start=offset) for _, offset in body["offsets"])
    begun_at = topic(key[2], *parts, leaderless=away, topic_id=body["topic_id"])
    return start_records(key[1], facts_with(FACTS, source={"topics": {key[2]: begun_at}}, lane={"pending": pending}))


def _acl(key: list[Any], body: Any) -> list[Record]:
    change = AclChange(kind="create", binding=keyed_acl(key), source=ACL.load(body["source"]))
    cluster_id, run, at_ms = body["source_cluster_id"], body["run"], body["at_ms"]
    return [own_acl_record(key[1], change, source_cluster_id=cluster_id, run=run, at_ms=at_ms)]


def _synced(key: list[Any], body: Any) -> list[Record]:
    return [synced_record(key[1], run=body["run"], settings=body["settings"], at_ms=body["at_ms"])]


def rebuilt_upto(upto: int) -> Rebuild:
    found = newest_rebuild(fold(lying(*documented()), 99))
    assert found is not None
    assert (found.upto, found.offset >= 0) == (upto, True)
    return found


def _mirror(key: list[Any], _: Any) -> list[Record]:
    return [mirror_record(key[1], mirror_state(fold(lying(*documented()), 99), key[1]))]


def _view(key: list[Any], body: Any) -> LedgerView:
    return fold(lying(Record(key=encode(key), value=encode(body))), 99)


def _offsets(key: list[Any], body: Any) -> list[Record]:
    (saved,) = saved_groups(_view(key, body), key[1], key[2]).values()
    return [saved_record(key[1], key[2], key[3], saved)]


def _snapshot(key: list[Any], body: Any) -> list[Record]:
    return [snapshot_record(key[1], one) for one in snapshots(_view(key, body), key[1]).values()]


def _checkpoint(key: list[Any], body: Any) -> list[Record]:
    found = group_outcome(_view(key, body), key[1], key[2])
    assert found is not None
    return [checkpoint_record(key[1], key[2], found)]


def _verified(key: list[Any], body: Any) -> list[Record]:
    found = run_verified(_view(key, body), key[1], key[2])
    assert found is not None
    return [run_verified_record(key[1], key[2], found)]


def _block(key: list[Any], body: Any) -> list[Record]:
    receipt = replace(
        RECEIPT, lane=key[1], source=place(body["topic"], body["partition"]), target=place(key[2], key[3])
    )
    data = b64decode(body["data"])
    rows = unpack(data, ReceiptChain.of(receipt))
    block = Block.of(rows)
    assert (block.start, block.end, len(rows)) == (body["start"], body["end"], body["rows"])
    return block_records([(ReceiptChain.of(receipt), block)], key[4])


def _summary(key: list[Any], _: Any) -> list[Record]:
    """All records of the summary that the documented parts and their seal make."""
    records = lying(*documented())
    (seal,) = seals(records)
    view = parse_summary(seal, records)
    assert view is not None
    parts = summary_parts(view, key[1])
    return [*parts, seal_record(parts, view, key[1], seal.first, seal.at_ms)]


def _dropped(key: list[Any], body: Any) -> list[Record]:
    return [dropped_record(one) for one in dropped_lanes(_view(key, body))]


def _approval(key: list[Any], body: Any) -> list[Record]:
    """The documented approval, and its use."""
    found = approval_of_run(fold(lying(*documented()), 99), key[1])
    assert found is not None
    return [approval_record(replace(found, used_by="", used_ms=0)), approval_record(found)]


def _switch(key: list[Any], body: Any) -> list[Record]:
    """The records of a switch, of which the documented ones make a state."""
    (state,) = switch_states(fold(lying(*documented()), 99)).values()
    if len(key) == 2:
        return [switch_record(state.switch)]
    if key[2] == "end":
        assert state.end is not None
        return [end_record(key[1], state.end)]
    if key[3:] == ["begun"]:
        return [begun_record(key[1], state.begun[Step(key[2])])]
    return done_records(key[1], state.done[Step(key[2])])


WRITERS: Mapping[str, Callable[[list[Any], Any], Sequence[Record]]] = {
    "run": lambda _, body: [run_record(parse_run(body))],
    "fenced": lambda key, body: [
        fenced_record(key[1], body["run"], body["generation"], body["slots"], list(map(Flow.parse, body["flows"])))
    ],
    "plan": _plan,
    "attempt": _attempt,
    "receipt": lambda _, body: receipt_records(parse_receipt(body)),
    "last": lambda _, body: receipt_records(parse_receipt(body)),
    "unit": lambda _, body: receipt_records(parse_dealt_receipt(body)),
    "era": lambda key, body: [era_record(key[1], parse_era(body))],
    "outcome": lambda key, body: [outcome_record(key[1], key[2], OUTCOME.load(body))],
    "began": lambda key, body: start_records(key[1], replace(FACTS, now_ms=body["at_ms"])),
    "start": _start,
    "producer": lambda key, body: [
        producer_record(key[1], producer_id=body["producer_id"], run=body["run"], at_ms=body["at_ms"])
    ],
    "marking": lambda key, body: [
        marking_record(
            key[1],
            TopicPartition(topic=key[2], partition=key[3]),
            until_ms=body["until_ms"],
            run=body["run"],
            at_ms=body["at_ms"],
        )
    ],
    "continued": lambda key, body: [
        continued_record(
            key[1],
            TopicPartition(topic=key[2], partition=key[3]),
            Continued(
                at=body["at"],
                producer_id=body["producer_id"],
                run=body["run"],
                at_ms=body["at_ms"],
                source_topic_id=body["source_topic_id"],
                source_cluster_id=body["source_cluster_id"],
            ),
        )
    ],
    "claim": lambda key, body: [claim_record(key[1], Flow.parse(body["flow"]), key[2])],
    "share": lambda key, body: [share_record(key[1], Flow.parse(body["flow"]))],
    "accounted": _accounted,
    "deleted": lambda key, body: [deleted_record(key[1], DELETED.load(body))],
    "seen": _seen,
    "gap": lambda key, body: [gap_record(key[1], parse_gap(body))],
    "adopted": lambda _, body: adoption_records(parse_adoption(body)),
    "acl": _acl,
    "acls": _synced,
    "mirror": _mirror,
    "group": lambda key, body: [group_record(key[1], key[2], parse_group(body), run=body["run"], at_ms=body["at_ms"])],
    "offsets": _offsets,
    "snapshot": _snapshot,
    "checkpoint": _checkpoint,
    "verified": _verified,
    "map": _block,
    "pruned": lambda key, body: [pruned_record(parse_pruned(key[1], place(key[2], key[3]), body))],
    "summary": _summary,
    "window": lambda key, body: [window_record(parse_window(key, body))],
    "dropped": _dropped,
    "rebuilt": lambda key, _: [rebuild_record(rebuilt_upto(key[1]))],
    "approval": _approval,
    "switch": _switch,
    "pause": lambda _, body: [pause_record(parse_pause(body))],
}
"""What Ferry writes when it means what it reads in a record of that kind, from key and value; of a plan all records."""


@pytest.mark.parametrize("record", documented(), ids=lambda record: record.key.decode())
def test_a_documented_record_is_what_ferry_reads_and_writes(record: Record) -> None:
    in_lines = kind(record) in ("plan", "summary")
    body = None if in_lines else json.loads(record.value or b"")
    assert record in WRITERS[kind(record)](json.loads(record.key), body)


def test_every_kind_of_record_has_a_line_and_an_example() -> None:
    keys = DOCUMENT[DOCUMENT.index("| key | value |") : DOCUMENT.index("## Every other record")]
    assert set(re.findall(r'`\["(\w+)"', keys)) == {kind(record) for record in documented()}


def test_the_table_of_kinds_has_every_kind_with_the_parts_of_its_key() -> None:
    assert set(KINDS) == {kind(record) for record in documented()}
    for record in documented():
        _, *parts = json.loads(record.key)
        of = KINDS[kind(record)]
        assert len(of.key) - len(parts) in (0, *of.optional)
        assert all(isinstance(part, each) for part, each in zip(parts, of.key.values(), strict=False))


@pytest.mark.parametrize("name", KINDS)
def test_what_a_rebuild_would_lose_has_words(name: str) -> None:
    assert bool(KINDS[name].plural) == (KINDS[name].of_lost is OfLost.EVIDENCE)


def test_the_documented_receipt_has_all_fields() -> None:
    receipt = json.loads(block_below("A receipt"))
    assert receipt_json(parse_receipt(receipt)) == receipt
