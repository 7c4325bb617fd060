"""The last line of `ferry verify`: what was compared, and what that proves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from ferry.features.verify.cli.views import print_verified
from ferry.ledger.verified_codec import verified_json
from ferry.model import Begin, Flow, NotCompared, TopicPartition, Verified
from ferry.model.difference import NotComparedKind
from tests.golden import Golden
from tests.program import SCHEMAS, closed

SAME = Verified(
    flow=Flow(source="a", target="b"), lane="live", partitions=1, records=3, bytes=9, seconds=0.1, differences=()
)
GONE = NotCompared(
    source=TopicPartition(topic="t", partition=0),
    start=0,
    end=9,
    why=NotComparedKind.TARGET_GONE,
    message="gone",
    asked=True,
)


PLACE = TopicPartition(topic="t", partition=0)
WHOLE = Begin(source=PLACE, offset=0, log_start=0)
LATER = Begin(source=PLACE, offset=5, log_start=2, unaccounted=((2, 5),))


@pytest.mark.parametrize(
    ("begins", "whole"),
    [((), None), ((WHOLE,), True), ((WHOLE, LATER), False)],
    ids=["not known", "whole", "not whole"],
)
def test_equal_is_not_said_of_what_no_receipt_names(
    begins: tuple[Begin, ...], whole: bool | None, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    result = replace(SAME, begins=begins)
    print_verified(result)
    *lines, last = capsys.readouterr().out.splitlines()
    if lines:
        golden("\n".join(lines))
    assert bool(lines) == bool(begins)
    assert "was compared from" not in "".join(lines), "a sample, one run or a range may be all that was compared"
    assert (" equal; " in last) == (whole is not False)
    body = verified_json(result)
    Draft202012Validator(closed(json.loads((SCHEMAS / "verify.json").read_text()))).validate(body)
    assert (body["whole"], len(body["begins"]), body["equal"]) == (whole, len(begins), True)


@pytest.mark.parametrize(
    ("result", "equal"),
    [
        (SAME, True),
        (replace(SAME, records=0), True),
        (replace(SAME, not_compared=(GONE,)), False),
        (replace(SAME, records=0, not_compared=(GONE,)), False),
    ],
    ids=["all", "nothing", "not all", "nothing of it"],
)
def test_what_was_not_compared_is_not_called_equal(
    result: Verified, equal: bool, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    print_verified(result)
    golden(capsys.readouterr().out.splitlines()[-1])
    body = verified_json(result)
    Draft202012Validator(closed(json.loads((SCHEMAS / "verify.json").read_text()))).validate(body)
    assert (body["equal"], result.is_nothing) == (equal, equal and not result.records)
