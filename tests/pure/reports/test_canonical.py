"""The bytes that are signed: one value, one text; and a report comes back from them as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ferry.errors import Corrupt
from ferry.features.evidence.rules.canonical import canonical
from ferry.features.evidence.rules.codec import SealedReport, decode_report, encode_report
from ferry.model.evidence import ADOPTED, DEAD_LETTERS, EvidenceReport, Link, PassedOver, Signer
from tests.golden import Golden
from tests.program import SCHEMAS, closed
from tests.pure.reports.values import EVIDENCE, loss

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(VALUES)
def test_a_value_has_one_text_whatever_the_order_of_its_keys(value: object) -> None:
    again = json.loads(canonical(value))
    assert again == value
    turned = dict(reversed(again.items())) if isinstance(again, dict) else again
    assert canonical(turned) == canonical(value)


def test_the_text_is_that_of_rfc_8785() -> None:
    # Its section 3.2.3: keys in the order of UTF-16 code units, where an emoji is before U+FB33.
    keys = ("\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\xf6")
    told = json.loads(canonical(dict.fromkeys(keys, 0)), object_pairs_hook=list)
    assert [key for key, _ in told] == ["\r", "1", "\x80", "\xf6", "\u20ac", "\U0001f600", "\ufb33"]
    assert canonical({"b": 1.0, "a": [0.1, 12.3456, 1e6, True, None, "é\n"]}) == (
        '{"a":[0.1,12.346,1000000,true,null,"é\\n"],"b":1}'.encode()
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, b"bytes", {1, 2}])
def test_what_is_no_value_of_json_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON"):
        canonical({"x": value})


@pytest.mark.parametrize(
    "evidence",
    [EVIDENCE, replace(EVIDENCE, losses=(loss(0, None, None),), verification=None, rto_s=None, steps=(), groups=())],
)
def test_a_report_comes_back_as_it_was_and_is_what_the_schema_says(evidence: EvidenceReport) -> None:
    report = SealedReport(
        number=7,
        evidence=evidence,
        previous=Link(name="report-000006.json", sha256="ab", page_sha256=None),
        signer=Signer(algorithm="Ed25519", key_sha256="cd"),
    )
    content = encode_report(report)
    assert decode_report(content, "report-000007.json") == report
    schema = closed(json.loads((SCHEMAS / "report.json").read_text()))
    Draft202012Validator(schema).validate(json.loads(content))


def test_what_is_no_report_is_named(golden: Golden) -> None:
    for content in (b"", b"[]", b"{}", b'{"report": 1}', b"\xff", b"[" * 100_000):
        with pytest.raises(Corrupt) as caught:
            decode_report(content, "report-000001.json")
        assert str(caught.value).startswith("report-000001.json is not a report")
    with pytest.raises(Corrupt) as caught:
        decode_report(b'{"report": 9}', "report-000001.json")
    golden(caught.value)


def test_figures_are_not_better_than_what_is_known() -> None:
    assert (EVIDENCE.lost_records, EVIDENCE.lost_seconds, EVIDENCE.reread) == (94, 12.345, 0)
    unknown = replace(EVIDENCE, losses=(*EVIDENCE.losses, loss(3, None, None)))
    assert (unknown.lost_records, unknown.lost_seconds) == (None, None)
    assert replace(EVIDENCE, losses=(loss(3, None, None),)).lost_records is None
    (group,) = EVIDENCE.groups
    assert replace(EVIDENCE, groups=(group, replace(group, reread=None))).reread is None
    assert [goal.is_met for goal in EVIDENCE.goals] == [False, None]


LETTERS = PassedOver(source=EVIDENCE.losses[0].source, start=3, end=9, why=DEAD_LETTERS, records=2)


@pytest.mark.parametrize(
    ("passed", "known"),
    [((), (0, 0)), ((LETTERS,), (2, 0)), ((LETTERS, replace(LETTERS, why=ADOPTED, records=None)), (2, None))],
)
def test_a_report_of_an_earlier_version_does_not_know_what_became_a_dead_letter(
    passed: tuple[PassedOver, ...], known: tuple[int | None, ...]
) -> None:
    content = encode_report(
        SealedReport(number=1, evidence=replace(EVIDENCE, passed_over=passed), previous=None, signer=None)
    )
    body = json.loads(content)
    assert (body["rpo"]["dead_letters"], body["rpo"]["before_adoption"]) == known
    del body["rpo"]["dead_letters"], body["rpo"]["before_adoption"]
    earlier = decode_report(json.dumps(body).encode(), "report-000001.json").evidence
    assert (earlier.passed_over, earlier.dead_letters, earlier.before_adoption) == (None, None, None)
    assert earlier.lost_records == EVIDENCE.lost_records
