"""Ledgers that earlier versions wrote (museum/README.md) say today what those versions said of them."""

from __future__ import annotations

import ast
import functools
import json
import pkgutil
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jsonschema import Draft202012Validator

from ferry.codec.form import Form
from ferry.commands.forms import holders_json, past_runs_json, pause_json, plan_json, receipts_json
from ferry.errors import BadInput
from ferry.features.archive.acts.export import json_lines
from ferry.features.archive.acts.exported import portions, read_export
from ferry.features.archive.rules.export import (
    Digest,
    Exported,
    ExportEnd,
    ExportHead,
    head_line,
    parse_head,
    parse_records,
    record_line,
)
from ferry.features.groups.acts.offset_maps import PartitionMap, load_maps
from ferry.features.groups.rules.codec import group_record, held_groups, parse_group
from ferry.features.switch.cli.switches import switch_state_json
from ferry.lane import summaries
from ferry.lane.summaries import open_ledger, write_summary
from ferry.ledger.acl_codec import MADE, SYNCED
from ferry.ledger.adoption_codec import adoption_records, adoptions, parse_adoption
from ferry.ledger.codec import ACCOUNTED, DELETED, decode_key, encode, gap_record, parse_gap, parse_pause, pause_record
from ferry.ledger.history import PastRun, holders, named_run, past_runs, skipped_at
from ferry.ledger.kinds import KINDS
from ferry.ledger.ledger import LedgerView, accounted, claims, fold, gaps, pauses, shared_topics, skips
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.pruning import parse_pruned, pruned_at, pruned_record
from ferry.ledger.receipt_codec import parse_dealt_receipt, parse_receipt, receipt_records
from ferry.ledger.receipts import last_receipts, receipts
from ferry.ledger.repartitioned_at import dealt_at
from ferry.ledger.run_codec import FENCED, OUTCOME, parse_run, run_record
from ferry.ledger.runs import sealed_plan
from ferry.ledger.switch_codec import parse_switch, switch_record, switch_states
from ferry.ledger.unit_codec import (
    era_record,
    eras,
    last_units,
    narrowed_units,
    parse_era,
)
from ferry.ledger.units import least_dealt
from ferry.ledger.window_codec import DROPPED, dropped_lanes, dropped_record, parse_window, window_record
from ferry.model import Fate, Flow, LedgerRecord, Receipt, Record, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.rules.starts import first_run, recorded_starts
from ferry.plan.rules.tombstones import seen_to_end
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from tests.program import SCHEMAS, closed
from tests.pure.decide.values import FACTS, LANE, RULES, facts_with, part, target, topic

T = TypeVar("T")
Json = dict[str, Any]
MUSEUM = Path(__file__).with_name("museum")
TOOL = Path(__file__).parents[3] / "tools" / "museum.py"
EXHIBITS = sorted(MUSEUM.glob("*/*.jsonl"))
ROLLED = 4
"""A window of so few offsets makes a reader begin at the newest summary."""

LOG_STARTS_SINCE = "2026-11-22"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command of that age was asked, and its exit code and JSON."""

    asked: Sequence[str]
    code: int
    said: Any

    def option(self, name: str) -> str:
        """The word after an option."""
        return self.asked[self.asked.index(name) + 1]


@dataclass(slots=True)
class KeptLog:
    """An export as a ledger's log in memory; what is appended lies after it."""

    records: dict[int, LedgerRecord]
    end: int

    async def start(self) -> int:
        return 0

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        upto = self.end if end is None else end
        return [one for at, one in sorted(self.records.items()) if (start or 0) <= at < upto], upto

    async def read_gapless(self, start: int, end: int) -> tuple[list[LedgerRecord], int, bool]:
        return *(await self.read(start, end)), True

    async def read_untransacted(self, start: int, end: int) -> list[LedgerRecord]:
        return (await self.read(start, end))[0]

    async def read_at(self, offsets: Collection[int]) -> dict[int, LedgerRecord]:
        return {at: self.records[at] for at in offsets if at in self.records}

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = 0) -> list[int]:
        first = self.end
        for record in records:
            self.records[self.end] = _lying(self.end, record)
            self.end += 1
        return list(range(first, self.end))

    async def tombstones_kept_ms(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A ledger of an earlier age, and what that age said of it."""

    path: Path
    head: ExportHead
    end: int
    ones: Sequence[Exported]
    answers: Sequence[Answer]
    logs: Mapping[str, Sequence[int]]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def records(self) -> list[LedgerRecord]:
        return [_lying(one.offset, one.record) for one in self.ones]

    @property
    def log(self) -> KeptLog:
        return KeptLog(records={one.offset: one for one in self.records}, end=self.end)

    @property
    def whole(self) -> LedgerView:
        """Every record folded, whatever summaries say."""
        return fold(self.records, self.end)

    def said(self, *words: str) -> Iterator[Answer]:
        """Answers to questions that have all of these words."""
        return (one for one in self.answers if set(words) <= set(one.asked))


def _lying(offset: int, record: Record) -> LedgerRecord:
    return LedgerRecord(offset=offset, key=record.key, value=record.value, fate=Fate.COMMITTED, producer_id=-1)


@functools.cache
def exhibit(path: Path) -> Exhibit:
    lines = path.read_bytes().splitlines()
    *ones, end = parse_records(lines, path.name)
    assert isinstance(end, ExportEnd)
    body = json.loads(path.with_suffix(".json").read_text())
    return Exhibit(
        path=path,
        head=parse_head(lines[0], path.name),
        end=end.upto,
        ones=[one for one in ones if isinstance(one, Exported)],
        answers=[Answer(one["asked"], one["code"], one["answer"]) for one in body["answers"]],
        logs=body["logs"],
        settings=body["config"],
    )


@pytest.fixture(params=EXHIBITS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def kept(request: pytest.FixtureRequest) -> Exhibit:
    return exhibit(request.param)


def now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("it waits")


def from_summary(log: KeptLog) -> LedgerView:
    """The ledger as a run opens it: from the newest summary on, where there is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "FIRST_WINDOW", ROLLED)
        return now(open_ledger(log, log.end))


def summarised_today(kept: Exhibit) -> tuple[KeptLog, LedgerView]:
    """The ledger after today's code has written a summary of it, and opened from there."""
    log = kept.log
    view = now(write_summary(log, from_summary(log), kept.end, kept.head.at_ms))
    opened = from_summary(log)
    assert opened.rolled.upto == view.rolled.upto == kept.end
    return log, opened


SENTENCES = {"message", "sentence", "notes", "reason"}
"""What people read; its words change."""


def satisfies(schema: str, answer: Json) -> Json:
    """The answer, after it was held against the documented schema: it has no field beside."""
    document = json.loads((SCHEMAS / f"{schema}.json").read_text())
    Draft202012Validator(closed(document)).validate(json.loads(json.dumps(answer)))
    return answer


def agrees(then: Any, today: Any, where: str = "") -> None:
    """Today's answer has every field of the one of that age, with the same value; it may have more fields."""
    if isinstance(then, dict):
        assert isinstance(today, dict), where
        for name in then.keys() - SENTENCES:
            assert name in today, f"{where}.{name} is gone"
            agrees(then[name], today[name], f"{where}.{name}")
    elif isinstance(then, list):
        assert isinstance(today, list), where
        assert len(today) == len(then), f"{where}: {today} for {then}"
        for number, (one, other) in enumerate(zip(then, today, strict=True)):
            agrees(one, other, f"{where}[{number}]")
    else:
        assert today == then, where


def test_there_are_ledgers_of_seven_days() -> None:
    assert len({path.parent for path in EXHIBITS}) >= 7
    assert {path.stem for path in EXHIBITS} == {"copied", "switched", "adopted", "guarded", "dealt"} | {
        *("pruned", "followed", "begun", "identical", "returned")
    }


def test_each_kind_of_record_is_in_some_ledger() -> None:
    found = {decode_key(one.record.key)[0] for path in EXHIBITS for one in exhibit(path).ones if one.record.value}
    missing = KINDS.keys() - found
    assert not missing, (
        f"no ledger of {MUSEUM.name}/ has a record of kind {', '.join(sorted(missing))}: let a scenario of "
        "tools/museum.py write one, and record a new day with the command of museum/README.md"
    )


def test_an_export_is_written_again_byte_by_byte(kept: Exhibit) -> None:
    digest = Digest()
    lines = [digest.add(head_line(kept.head)), *(digest.add(record_line(one)) for one in kept.ones)]
    assert [*lines, digest.end_line(kept.end)] == kept.path.read_bytes().splitlines()


def test_a_rebuild_would_write_each_record_at_its_offset(kept: Exhibit) -> None:
    at: dict[int, Record] = {}
    for first, records in portions(kept.path, json_lines):
        assert first == len(at)
        at |= dict(enumerate(records, first))
    assert len(at) == kept.end
    assert all(at[one.offset] == one.record for one in kept.ones)
    if last_units(kept.whole, LANE):
        with pytest.raises(BadInput):
            read_export(kept.path, json_lines)
        return
    contents = read_export(kept.path, json_lines)
    assert {one.target: one for one in contents.lasts} == last_receipts(kept.whole, LANE)
    lanes = frozenset({LANE, *(one.lane for one in dropped_lanes(kept.whole))})
    assert (contents.records, contents.lanes, contents.slots[LANE]) == (len(kept.ones), lanes, 2)
    assert contents.slots.keys() == lanes


def _receipt(key: list[Any], body: Json) -> Record:
    if body["kind"] == "unit":
        return receipt_records(parse_dealt_receipt(body))[key[0] == "last"]
    return receipt_records(parse_receipt(body))[key[0] == "last"]


def _by_form(form: Form[Any], key: list[Any], body: Json) -> Record:
    return Record(key=encode(key), value=encode(form.dump(form.load(body))))


AGAIN: Mapping[str, Callable[[list[Any], Json], Record]] = {
    "receipt": _receipt,
    "last": _receipt,
    "unit": _receipt,
    "run": lambda _, body: run_record(parse_run(body)),
    "pause": lambda _, body: pause_record(parse_pause(body)),
    "gap": lambda key, body: gap_record(key[1], parse_gap(body)),
    "group": lambda key, body: group_record(key[1], key[2], parse_group(body), run=body["run"], at_ms=body["at_ms"]),
    "era": lambda key, body: era_record(key[1], parse_era(body)),
    "adopted": lambda _, body: adoption_records(parse_adoption(body))[0],
    "pruned": lambda key, body: pruned_record(parse_pruned(key[1], TopicPartition(key[2], key[3]), body)),
    "switch": lambda _, body: switch_record(parse_switch(body)),
    "window": lambda key, body: window_record(parse_window(key, body)),
    "dropped": lambda key, body: dropped_record(DROPPED.load(body, lane=key[1])),
    "fenced": functools.partial(_by_form, FENCED),
    "outcome": functools.partial(_by_form, OUTCOME),
    "accounted": functools.partial(_by_form, ACCOUNTED),
    "deleted": functools.partial(_by_form, DELETED),
    "acl": functools.partial(_by_form, MADE),
    "acls": functools.partial(_by_form, SYNCED),
}


def test_records_that_are_read_and_written_again_lose_no_field(kept: Exhibit) -> None:
    seen = set()
    for one in kept.ones:
        key = decode_key(one.record.key)
        is_part = key[:1] == ["switch"] and len(key) > 2
        if key[:1] and key[0] in AGAIN and one.record.value is not None and not is_part:
            body = json.loads(one.record.value)
            again = AGAIN[key[0]](key, body)
            assert again.key == one.record.key
            agrees(body, json.loads(again.value or b""), f"{one.offset}")
            seen.add(key[0])
    assert seen >= {"last", "run"}


def test_plans_that_are_read_and_written_again_lose_no_field(kept: Exhibit) -> None:
    view, count = kept.whole, 0
    for run in view.remembered(LANE):
        found = sealed_plan(view, LANE, run.record.run, run.generation)
        if found is None:
            continue
        count += 1
        for record in plan_records(found[0]):
            before = view.by_key[record.key.decode()].value or b""
            if decode_key(record.key)[-1] == "seal":
                agrees(json.loads(before)["head"], json.loads(record.value or b"")["head"])
            else:
                lines = [json.loads(line or b"null") for line in before.split(b"\n")]
                agrees(lines, [json.loads(line or b"null") for line in (record.value or b"").split(b"\n")])
    assert count


def test_all_ways_to_read_a_ledger_say_the_same_of_its_partitions(kept: Exhibit) -> None:
    whole = kept.whole
    for view in (from_summary(kept.log), summarised_today(kept)[1]):
        assert last_receipts(view, LANE) == last_receipts(whole, LANE)
        assert last_units(view, LANE) == last_units(whole, LANE)
        assert [one.generation for one in view.remembered(LANE)] == [one.generation for one in whole.remembered(LANE)]
        assert claims(view) == claims(whole)
        assert gaps(view, LANE) == gaps(whole, LANE)
        assert recorded_starts(view, LANE) == recorded_starts(whole, LANE)
        assert list(adoptions(view, LANE)) == list(adoptions(whole, LANE))
        assert switch_states(view) == switch_states(whole)
    if kept.path.stem == "copied":
        assert from_summary(kept.log).rolled.upto > 0, "that age's summary is read"


def test_last_receipts_are_those_of_then(kept: Exhibit) -> None:
    then = [row for one in kept.said("ledger", "--topic", "--last") for row in one.said["receipts"]]
    last = {one.target: one for one in last_receipts(kept.whole, LANE).values()}
    for row in then:
        one = last[TopicPartition(row["target_topic"], row["target_partition"])]
        if one.run == row["run"]:
            assert (one.end, one.target_next, one.digest) == (row["end"], row["target_next"], row["digest"])
    ends = {(row["topic"], row["partition"]): row["end"] for one in kept.said("ledger", "--run") for row in _rows(one)}
    assert all(
        one.end >= ends.get((one.source.topic, one.source.partition), 0)
        for one in last_receipts(kept.whole, LANE).values()
    )


def _rows(one: Answer) -> list[Json]:
    return list(one.said["receipts"]) if one.code == 0 else []


def test_runs_have_the_states_that_they_had(kept: Exhibit) -> None:
    view = kept.whole
    (runs,) = kept.said("ledger", "--runs")
    remembered = {one.generation for one in view.remembered(LANE)}
    then = [row for row in runs.said["runs"] if row["generation"] in remembered]
    agrees(then, satisfies("ledger-runs", past_runs_json(past_runs(view, LANE, 20)))["runs"])
    # Before 2026-11-24 a run that the ledger had let go of was listed, without what it had done.
    assert {row["state"] for row in runs.said["runs"] if row["generation"] not in remembered} <= {"unplanned"}


def test_a_run_is_reported_as_it_was(kept: Exhibit) -> None:
    view = kept.whole
    for one in kept.said("ledger", "--run"):
        run = one.option("--run")
        found = named_run(view, LANE, run)
        said = one.said
        if not isinstance(found, PastRun):  # let go: before 2026-11-24 it was called unplanned
            assert (said.get("run") or {"report": None})["report"] is None
            said = {"receipts": said["receipts"]}
        today = receipts_json(list(receipts(view, lane=LANE, run=run)), narrowed_units(view, LANE, run, None), found)
        agrees(said, satisfies("ledger", today), run)


def test_pauses_in_force_are_those_that_were(kept: Exhibit) -> None:
    for one in kept.said("ledger", "--pauses"):
        found = pauses(from_summary(kept.log), kept.head.at_ms)
        agrees(one.said, satisfies("ledger-pauses", {"pauses": [pause_json(pause) for pause in found.values()]}))


def test_groups_are_held_where_ferry_had_put_them(kept: Exhibit) -> None:
    for one in kept.said("groups", "--group"):
        (group,) = one.said["groups"]
        held = held_groups(kept.whole, LANE, lambda _: True)[group["group"]]
        written = [row for row in group["partitions"] if row["translated"] is not None]
        assert written
        for row in written:
            place = TopicPartition(row["target_topic"], row["target_partition"])
            assert held.offsets[place].wrote.target == row["target"]["offset"]
            assert held.source_of(place) == TopicPartition(row["topic"], row["partition"])
        assert len(held.offsets) == len(written)


def test_switches_and_their_steps_are_shown_as_they_were(kept: Exhibit) -> None:
    states = switch_states(kept.whole)
    # Nouns are plural since 2026-11-27.
    shown = [*kept.said("switch", "show"), *kept.said("switches", "show")]
    assert states.keys() == {one.asked[-1] for one in shown}
    for one in shown:
        agrees(one.said, satisfies("switch", switch_state_json(states[one.asked[-1]])))
        if kept.path.stem == "begun":
            assert one.said["end"] is None
        else:
            assert one.said["end"]["outcome"] == "finished"


def test_offsets_are_held_as_they_were(kept: Exhibit) -> None:
    view = kept.whole
    for one in kept.said("ledger", "--offset"):
        if one.code == 2:  # that age did not say it
            continue
        name, number, offset = one.option("--topic"), int(one.option("--partition")), int(one.option("--offset"))
        place = TopicPartition(name, number)
        chosen = [row for row in receipts(view, lane=LANE, topic=name) if row.source == place]
        held = holders(chosen, offset, gaps(view, LANE))
        skipped = skipped_at(gaps(view, LANE), name, number, offset, held)
        gone = [] if held else pruned_at(view, LANE, name, number, offset)
        taken = [row for row in adoptions(view, LANE) if row.source == place and row.start <= offset < row.end]
        known = [era for era in eras(view, LANE).values() if era.source_topic == name]
        units: dict[TopicPartition, list[Receipt]] = {}
        for unit in narrowed_units(view, LANE, None, name):
            units.setdefault(unit.target, []).append(unit)
        dealt = dealt_at(known, units, place, offset) if known else []
        today = holders_json(held, skipped, taken, gone, dealt)
        agrees(one.said, satisfies("ledger-offset", today), str(one.asked))


@pytest.mark.parametrize("today", [False, True], ids=["its-summary", "todays-summary"])
def test_offsets_translate_to_what_they_did(kept: Exhibit, today: bool) -> None:
    log, view = summarised_today(kept) if today else (kept.log, from_summary(kept.log))
    asked = list(kept.said("translate"))
    assert asked or kept.path.stem == "dealt"
    for one in asked:
        name, number, offset = one.asked[2], int(one.asked[3]), int(one.asked[4])
        backward = "--reverse" in one.asked
        assert one.code != 2, one.asked
        made = _map(kept, log, view, TopicPartition(name, number), offset, backward)
        found = made.translate(offset)
        side = "source" if backward else "target"
        assert (found.word, found.offset) == (one.said["outcome"], one.said[f"{side}_offset"]), one.asked
        assert getattr(found, "pruned", None) == one.said.get("pruned_before"), one.asked


def _map(
    kept: Exhibit, log: KeptLog, view: LedgerView, place: TopicPartition, offset: int, backward: bool
) -> PartitionMap:
    stable = {one.target: _edges(kept, one.source, "target ")[1] for one in last_receipts(view, LANE).values()}
    made = now(load_maps(log, view, LANE, {place: [offset]}, stable, backward=backward))[place]
    begin, _ = _edges(kept, made.source, "" if backward else "target ")
    # The first age led to records that the other side had deleted.
    return made if kept.path.parent.name < LOG_STARTS_SINCE else replace(made, log_start=begin)


def _edges(kept: Exhibit, source: TopicPartition, prefix: str = "") -> tuple[int, int]:
    low, high = kept.logs[f"{prefix}{source.topic}/{source.partition}"]
    return low, high


def facts_of(kept: Exhibit, view: LedgerView) -> Facts:
    """What a plan was decided from then: the ledger, and the logs as they lay."""
    lasts: list[Any] = [*last_receipts(view, LANE).values(), *last_units(view, LANE).values()]
    names = {_source_topic(one): one for one in lasts}
    sources, targets = {}, {}
    for name, one in names.items():
        edges = _all_edges(kept, f"{name}/")
        parts = [part(log_start=low, end=high, start=low) for low, high in edges]
        sources[name] = topic(name, *parts, topic_id=one.source_topic_id, replication_factor=1)
        ends = [high for _, high in _all_edges(kept, f"target {name}/")]
        targets[one.target.topic] = target(one.target.topic, *ends, topic_id=one.target_topic_id)
    ids = {name: found.topic_id for name, found in sources.items()}
    begun = recorded_starts(view, LANE, ids)
    return facts_with(
        FACTS,
        now_ms=kept.head.at_ms,
        source={"cluster_id": lasts[0].source_cluster_id, "topics": sources},
        target={"cluster_id": kept.head.cluster_id, "brokers": 1, "topics": targets},
        lane={
            "receipts": last_receipts(view, LANE),
            "starts": begun.offsets,
            "pending": begun.pending,
            "first_run": first_run(view, LANE),
            "claims": claims(view),
            "pauses": pauses(view, kept.head.at_ms),
            "skips": skips(view, LANE),
            "seen": seen_to_end(view, LANE, ids),
            "shared": shared_topics(view),
            "units": last_units(view, LANE),
            "eras": eras(view, LANE),
            "dealt": least_dealt(eras(view, LANE).values(), last_units(view, LANE).values()),
        },
        others={"accounted": accounted(view, LANE), "back_paused": True},
    )


def _source_topic(last: Receipt) -> str:
    return last.source.topic


def _all_edges(kept: Exhibit, begins: str) -> list[tuple[int, int]]:
    found = {int(name.removeprefix(begins)): edge for name, edge in kept.logs.items() if name.startswith(begins)}
    return [(found[number][0], found[number][1]) for number in range(len(found))]


def rules_of(kept: Exhibit, view: LedgerView) -> Rules:
    """The rules of the recorder's file."""
    identity = "replication.policy.class" in kept.settings
    known = {era.source_topic: era for era in eras(view, LANE).values()}

    def transform_of(name: str) -> Transform | None:
        era = known.get(name)
        if era is None:
            return None
        return Transform(name="small", digest=era.digest, partitions=era.partitions, text=era.spec)

    return replace(
        RULES,
        flow=Flow.parse(kept.head.flow),
        policy=IdentityReplicationPolicy(source_alias=kept.head.flow.split("->")[0])
        if identity
        else DefaultReplicationPolicy(),
        transform_of=transform_of,
        replication_factor=1,
        sync_configs=False,
    )


PLANNED = (
    *("topic", "partition", "target_topic", "target_partition", "start", "end", "first", "target_next"),
    *("source_topic_id", "target_topic_id", "log_start", "target_end", "since", "read_epoch", "read_end"),
)
DEALT = ("topic", "target_topic", "target_partition", "partitions", "offsets")


def test_the_next_plan_begins_where_it_would_have(kept: Exhibit) -> None:
    (asked,) = kept.said("plan")
    for view in (kept.whole, from_summary(kept.log), summarised_today(kept)[1]):
        plan = satisfies("plan", plan_json(decide_plan(rules_of(kept, view), facts_of(kept, view), "next", kept.end)))
        for listed, names in (("slices", PLANNED), ("units", DEALT)):
            then, today = asked.said.get(listed, []), plan.get(listed, [])
            assert [[row.get(name) for name in names] for row in today] == [
                [row.get(name) for name in names] for row in then
            ]
        assert plan["paused"] == asked.said["paused"]
        assert [row["kind"] for row in plan["refusals"]] == [row["kind"] for row in asked.said["refusals"]]
    assert asked.said["slices"] or asked.said.get("units") or kept.path.stem in ("switched", "pruned", "begun")


def test_the_names_that_the_tool_replaces_are_there() -> None:
    """The tool replaces limits by smaller ones; no other test notices when one of them has a new name."""
    tool = ast.parse(TOOL.read_text())
    texts = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tool.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("SMALL", "LATE_OVER", "SUMMARISED")
    }
    for name in (*texts["SMALL"], *texts["LATE_OVER"], texts["SUMMARISED"]):
        pkgutil.resolve_name(name)
