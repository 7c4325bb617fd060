"""An export gives every record back as it was, and says when it is not whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput
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
from ferry.features.archive.rules.sentences import from_file, in_file, replaced
from ferry.ledger.codec import encode, pause_record
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import Pause, Record
from tests.golden import Golden
from tests.pure.decide.values import PLAN, RECEIPT

HEAD = ExportHead(flow="a->b", topic="ferry-ledger.a.internal", cluster_id="cluster-b", at_ms=1)
KNOWN = [
    *receipt_records(RECEIPT),
    *plan_records(PLAN),
    pause_record(Pause(topic="", who="ann", why="ü", since_ms=1)),
    Record(key=encode(["pause", ""]), value=None),
    Record(key=b"somebody's", value=b'{"is": "not compact"}'),
    Record(key=b'["pause",""]', value=b'{"why":"\\udce4"}'),
]
payloads = st.binary(max_size=20)
records = st.sampled_from(KNOWN) | st.builds(Record, key=payloads, value=st.none() | payloads)


def lines_of(ones: list[Exported], upto: int) -> list[bytes]:
    digest = Digest()
    lines = [digest.add(head_line(HEAD)), *(digest.add(record_line(one)) for one in ones)]
    return [*lines, digest.end_line(upto)]


def exported(found: list[Record], step: int = 2) -> list[Exported]:
    return [Exported(offset=at * step, record=record) for at, record in enumerate(found)]


@given(st.lists(records, max_size=8))
def test_every_record_comes_back_as_it_was(found: list[Record]) -> None:
    ones = exported(found)
    lines = lines_of(ones, 99)
    assert parse_head(lines[0], "x") == HEAD
    *records, end = parse_records(lines, "x")
    assert records == ones
    assert isinstance(end, ExportEnd)
    assert (end.upto, len(end.digest)) == (99, 64)


@pytest.mark.parametrize("at", range(5))
def test_an_export_that_lacks_a_line_or_has_another_is_refused(at: int, golden: Golden) -> None:
    lines = lines_of(exported(KNOWN[:3]), 99)
    with pytest.raises(BadInput) as wrong:
        list(parse_records([*lines[:at], *lines[at + 1 :]], "x"))
    golden(wrong.value, "without the line")
    with pytest.raises(BadInput) as wrong:
        list(parse_records([*lines[:at], lines[at].replace(b"1", b"2", 1) + b" ", *lines[at + 1 :]], "x"))
    golden(wrong.value, "with another line")


def test_another_file_is_no_export(golden: Golden) -> None:
    for line in (b"", b"[]", b"PAR1", b'{"kind":"plan","v":1}'):
        with pytest.raises(BadInput) as caught:
            parse_head(line, "x")
        golden(caught.value, "no export")
    with pytest.raises(BadInput) as wrong:
        parse_head(head_line(HEAD).replace(b'"v":1', b'"v":9'), "x")
    golden(wrong.value, "a newer format")


def test_numbers_agree_with_their_words(golden: Golden) -> None:
    for dry_run in (True, False):
        for count in (0, 1, 2):
            case = f"{count}, a dry run" if dry_run else f"{count}"
            golden(in_file(count, 9, "x.jsonl", dry_run=dry_run), f"export: {case}")
            golden(from_file(count, 9, "x.jsonl", dry_run=dry_run), f"rebuild: {case}")
            golden(replaced(count, count, dry_run=dry_run), f"replaced: {case}")
