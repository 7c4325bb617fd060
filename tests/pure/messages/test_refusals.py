"""The catalogue: what each code is used for, with which facts, and that it comes back from the ledger."""

from __future__ import annotations

import ast
import copy
import functools
import json
import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest

import ferry
from ferry.commands.forms import plan_json
from ferry.errors import Refused, Retryable
from ferry.features.records.acts.cutoffs import Failure, Unread, parse_unread
from ferry.ledger.checkpoint_codec import LEFT, checkpoint_record, group_outcome, left_json
from ferry.ledger.ledger import fold
from ferry.ledger.mirror_state import MirrorState, mirror_record, mirror_state
from ferry.ledger.plan_codec import parse_plan, plan_records
from ferry.ledger.run_codec import REFUSAL
from ferry.messages.catalogue import ENTRIES, caused, sentence, what_is
from ferry.messages.entry import Entry
from ferry.messages.refusals import passed, refused, refused_as, what_of, words_of
from ferry.model import Fact, GroupOutcome, Left, Refusal, RefusalKind, Sentence, TopicPartition, Why, code_of, facts_of
from tests.golden import Golden
from tests.pure.decide.values import PLAN, lying

SOURCE = Path(ferry.__file__).parent
MAKERS = {"refused": 0, "passed": 0, "sentence": 0, "caused": 0, "drop": 0, "trouble": 0}
"""Functions that take a code, and its place among their arguments."""
CUT: dict[str, Fact] = {"cluster": "a", "end": 20, "cut": 10, "epoch": 4}
OWN = {"topic", "partition", "source"}
"""Facts that each refusal has."""


@functools.cache
def tree_of(file: Path) -> ast.Module:
    """A file of Ferry, parsed once for all tests."""
    return ast.parse(file.read_text())


def sources(words: Iterable[str]) -> Iterator[tuple[Path, ast.Module]]:
    """Ferry's files that have one of the words; to parse all of them takes seconds."""
    wanted = re.compile("|".join(map(re.escape, words)))
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text()
        if wanted.search(text):
            yield file, tree_of(file)


def calls() -> Iterator[tuple[Path, ast.Call, set[str]]]:
    """The calls in Ferry that make a sentence, with the codes that they may have."""
    for file, tree in sources(f"{name}(" for name in MAKERS):
        for node in ast.walk(tree):
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name in MAKERS and len(node.args) > MAKERS[name]:
                parts = [one.value for one in ast.walk(node.args[MAKERS[name]]) if isinstance(one, ast.Constant)]
                yield file, node, {one for one in parts if isinstance(one, str) and one in ENTRIES}


def written_codes() -> set[str]:
    """All texts in Ferry's source, outside of the catalogue, that are codes."""
    return {
        node.value
        for file, tree in sources(f'"{code}"' for code in ENTRIES)
        if file.parent != SOURCE / "messages"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ENTRIES
    }


def test_each_code_is_used() -> None:
    assert set(ENTRIES) == written_codes()


def test_each_call_gives_the_facts_that_its_sentence_has_places_for() -> None:
    checked, more = 0, {"kind", "passing", *OWN}
    made = {"passed": {"what", "key"}, "caused": {"why"}}
    for file, call, codes in calls():
        given = {one.arg for one in call.keywords}
        if None in given:  # a dictionary: what it lacks is an error where it is called
            continue
        for code in codes:
            by_maker = made.get(getattr(call.func, "id", ""), set[str]())
            assert given - more == ENTRIES[code].facts - OWN - by_maker, (file, call.lineno, code)
            checked += 1
    assert checked > 60


def sample_facts(entry: Entry) -> dict[str, Fact]:
    """A fact for each place of a sentence: a number where its format wants one."""
    numbers: dict[str, Fact] = {"usable": 5_200_000_000, "total": 100_000_000_000, "wanted": 70_000}
    by_spec: dict[str, Fact] = {"time": 1_790_000_000_000, "count": 3, "agree": 3, "size": 70_000}
    places = (place for half in (entry.what, entry.remedy) for place in Formatter().parse(half))
    return {
        name: numbers.get(name, by_spec.get((spec or "").partition(" ")[0], f"<{name}>"))
        for _, name, spec, _ in places
        if name and name not in OWN
    }


@pytest.mark.parametrize("code", sorted(ENTRIES))
def test_each_sentence_says_what_is_the_matter_and_comes_back_from_json(code: str, golden: Golden) -> None:
    entry = ENTRIES[code]
    facts = sample_facts(entry)
    kind = None if entry.kind else RefusalKind.NO_LEADER
    refusal = refused(code, "orders", 3, kind=kind, **facts)
    assert refusal.message == sentence(code, topic="orders", partition=3, source="orders-3", **facts)
    assert refusal.message.startswith(what_of(refusal))
    back = REFUSAL.load(REFUSAL.dump(refusal))
    assert (back, back.code, back.facts) == (refusal, code, refusal.facts)
    golden(refusal.message)


def test_what_an_earlier_ferry_recorded_is_read_and_written_as_it_was() -> None:
    body = {"topic": "orders", "partition": None, "kind": "topic-gone", "message": "it is gone: look for it"}
    refusal = REFUSAL.load(body)
    assert refusal == Refusal(
        topic="orders", partition=None, kind=RefusalKind.TOPIC_GONE, message=body["message"] or ""
    )
    assert (refusal.code, what_of(refusal)) == ("", "it is gone")
    assert REFUSAL.dump(refusal) == body


def test_a_code_that_is_used_for_several_kinds_asks_for_one(golden: Golden) -> None:
    with pytest.raises(ValueError, match="kinds") as caught:
        refused("said", "orders", why="no")
    golden(caught.value)
    with pytest.raises(KeyError):
        refused("source.hidden", "orders")


def test_a_refusal_has_the_code_of_the_sentence_that_was_made_elsewhere() -> None:
    why = sentence("source.truncated.read", source="orders-3", cluster="a", end=20, cut=10, epoch=4)
    for words in (why, Retryable(why)):
        refusal = refused_as(words, "orders", 3, kind=RefusalKind.SOURCE_TRUNCATED)
        assert refusal == refused("source.truncated.read", "orders", 3, cluster="a", end=20, cut=10, epoch=4)
        assert (refusal.code, refusal.facts) == (
            "source.truncated.read",
            (("cluster", "a"), ("cut", 10), ("end", 20), ("epoch", 4)),
        )
        assert what_of(refusal) == what_is(why)
    plain = refused_as(Retryable("a text"), "orders", kind=RefusalKind.CORRUPT)
    assert (plain.message, plain.code, plain.facts) == ("a text", "said", (("why", "a text"),))


def test_the_words_of_a_refusal_have_its_code_its_facts_and_its_place() -> None:
    refusal = refused("source.truncated.read", "orders", 3, kind=RefusalKind.SOURCE_TRUNCATED, **CUT)
    words = words_of(refusal)
    assert (words, code_of(words)) == (refusal.message, "source.truncated.read")
    assert dict(facts_of(words)) == {**CUT, "topic": "orders", "partition": 3, "source": "orders-3"}
    assert refused_as(Refused(words), "orders", 3, kind=refusal.kind) == refusal
    earlier = words_of(replace(refusal, code="", facts=()))
    assert (earlier, code_of(earlier)) == (refusal.message, "")


def test_a_sentence_that_another_one_caused_has_that_ones_code_and_facts() -> None:
    why = sentence("acls.unread", cluster="a", why="grant DESCRIBE")
    for words in (why, Refused(why)):
        made = caused("acls.not-synced", words)
        assert made == sentence("acls.not-synced", why=str(why))
        assert (made.code, dict(made.facts)) == ("acls.not-synced", {"why": why, "cluster": "a", "of": "acls.unread"})
    assert dict(caused("acls.not-synced", Refused("a text")).facts) == {"why": "a text"}


def test_what_a_task_of_spark_could_not_read_comes_back_with_its_code() -> None:
    why = sentence("source.truncated.read", source="orders-3", cluster="a", end=20, cut=10, epoch=4)
    place, other = TopicPartition("orders", 3), TopicPartition("orders", 4)
    failures = {
        place: Failure(kind=RefusalKind.SOURCE_TRUNCATED, message=why, offset=20),
        other: Failure(kind=RefusalKind.CORRUPT, message="a text", offset=0),
    }
    back = parse_unread(str(Unread(failures)))
    assert back == failures
    assert [(code_of(one.message), facts_of(one.message)) for one in back.values()] == [(why.code, why.facts), ("", ())]


def test_a_sentence_is_a_text_that_keeps_its_code_and_facts() -> None:
    said = sentence("topic.deleted", topic="orders", copy="a.orders")
    for copied in (said, copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert isinstance(copied, Sentence)
        assert (copied, copied.code) == (str(said), "topic.deleted")
        assert dict(copied.facts) == {"topic": "orders", "copy": "a.orders"}
    assert json.dumps([said]) == json.dumps([str(said)])


def test_a_note_in_place_of_a_refusal_says_what_would_have_been_refused() -> None:
    gone = refused("source.gone", "orders", partitions=3, cluster="a")
    note = passed("passed.left-out", gone)
    assert dict(note.facts) == {"what": what_of(gone), "of": "source.gone", "key": "ferry.guard.topic.gone"}


def test_notes_come_back_from_the_ledger_with_their_codes() -> None:
    notes = (sentence("run.lane-dropped"), sentence("position.missing", place="a.t-0", end=7), "of an earlier Ferry")
    records = plan_records(replace(PLAN, notes=notes))
    parts = {number: record.value or b"" for number, record in enumerate(records[:-1])}
    back = parse_plan(parts, records[-1].value or b"", "plan")
    state = MirrorState(run="r", notes=notes)
    kept = mirror_state(fold(lying(mirror_record("live", state)), 9), "live").notes
    for found in (back.notes, kept):
        assert found == notes
        assert [code_of(note) for note in found] == ["run.lane-dropped", "position.missing", ""]
        assert dict(facts_of(found[1])) == {"place": "a.t-0", "end": 7}
    noted = plan_json(back)["noted"]
    assert [one["code"] for one in noted] == ["run.lane-dropped", "position.missing"], "the others have none"


def test_a_group_that_is_left_comes_back_with_its_code() -> None:
    message = sentence("group.not-copied", group="app", place="t-0", source="a")
    left = Left(group="app", place=TopicPartition("t", 0), why=Why.NOT_COPIED, message=message)
    outcome = GroupOutcome(groups=0, offsets=0, unchanged=0, left=(left,), inexact={})
    back = group_outcome(fold(lying(checkpoint_record("live", "r", outcome)), 9), "live", "r")
    assert back is not None
    (found,) = back.left
    assert (found, code_of(found.message), facts_of(found.message)) == (left, message.code, message.facts)
    earlier = json.loads(json.dumps({**left_json(left), "code": None, "facts": None}))
    del earlier["code"], earlier["facts"]
    assert code_of(LEFT.load(earlier, place=None).message) == ""
