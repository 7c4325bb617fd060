"""Both ways of a full drill: each figure is of one way, in the JSON, on the page and in the log."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator
from pypdf import PdfReader

from ferry.features.evidence.acts.html import rendered
from ferry.features.evidence.acts.pdf import pdf_of
from ferry.features.evidence.rules.chain import Kept, index_json
from ferry.features.evidence.rules.codec import SealedReport, decode_report, encode_report, evidence_json
from ferry.features.evidence.rules.document import Chart, Document, document_of
from ferry.features.evidence.rules.lines import report_lines_of
from ferry.features.evidence.rules.page import report_line
from ferry.features.evidence.rules.ways import goals_of_ways, joined, longest, ways_of
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind, EvidenceReport, Goal, PassedOver, Way
from ferry.plan.rules.passed_over import passed_clause
from tests.golden import Golden
from tests.program import SCHEMAS, closed
from tests.pure.reports.values import AT, EVIDENCE, loss

THERE = EVIDENCE.flow
BACK = Flow(source=THERE.target, target=THERE.source)
(GROUP,) = EVIDENCE.groups
DIGEST = "c0ffee00" * 8
GAP = PassedOver(source=loss(0, 0, 0.0).source, start=3, end=5, why="stuck")

OUT = replace(EVIDENCE, kind=EvidenceKind.SWITCHOVER, passed_over=(GAP,))
HOME = replace(
    EVIDENCE,
    kind=EvidenceKind.FAILBACK,
    flow=BACK,
    losses=(loss(0, 7, 3.5),),
    losses_at_ms=AT + 50_000,
    passed_over=(GAP, replace(GAP, start=7, end=8)),
    groups=(replace(GROUP, exact=7, reread=4),),
    samples=tuple(replace(one, at_ms=one.at_ms + 50_000, lag_records=3) for one in EVIDENCE.samples),
    goals=(Goal(name="RTO", unit="s", wanted=1, measured=9, of="some groups"),),
)
DRAIN = replace(EVIDENCE.steps[0], name="failback-drain", title="Failback: drain")
WHOLE = replace(EVIDENCE, kind=EvidenceKind.FULL, id="spring", steps=(*EVIDENCE.steps, DRAIN))
FULL = joined(WHOLE, [OUT, HOME])

EARLIER = replace(
    WHOLE,
    losses=(*OUT.losses, *HOME.losses),
    groups=(*OUT.groups, *HOME.groups),
    samples=(*OUT.samples, *HOME.samples),
)
"""What an earlier version of Ferry wrote of the same drill."""


def sealed(evidence: EvidenceReport) -> SealedReport:
    return SealedReport(number=3, evidence=evidence, previous=None, signer=None)


def page(evidence: EvidenceReport) -> Document:
    return document_of(sealed(evidence), DIGEST)


def values(evidence: EvidenceReport, label: str) -> list[str]:
    return [one.value for one in page(evidence).figures if one.label.startswith(label)]


def test_each_way_has_what_was_measured_of_it_and_no_more() -> None:
    there, back = ways_of(FULL)
    for found, way in ((there, OUT), (back, HOME)):
        assert (found.kind, found.flow, found.losses_at_ms) == (way.kind, way.flow, way.losses_at_ms)
        assert (found.losses, found.groups, found.samples, found.passed_over) == (
            way.losses,
            way.groups,
            way.samples,
            way.passed_over,
        )
    assert [(one.lost_records, one.lost_seconds, one.reread) for one in (there, back)] == [(94, 12.345, 0), (7, 3.5, 4)]
    assert ways_of(EVIDENCE) == (EVIDENCE,)


def test_no_number_is_that_of_both_ways() -> None:
    assert (FULL.lost_records, FULL.lost_seconds, FULL.reread) == (None, None, None)
    rpo = evidence_json(FULL)["rpo"]
    assert [rpo[name] for name in ("at_ms", "records", "seconds")] == [None] * 3
    assert (FULL.dead_letters, rpo["dead_letters"], rpo["before_adoption"]) == (None, None, None)
    none = {"dead_letters": 0, "before_adoption": 0}
    assert rpo["ways"] == [
        {"via": str(THERE), "at_ms": OUT.losses_at_ms, "records": 94, "seconds": 12.345, **none},
        {"via": str(BACK), "at_ms": HOME.losses_at_ms, "records": 7, "seconds": 3.5, **none},
    ]
    assert [one.get("via") for one in rpo["partitions"]] == [None] * 3 + [str(BACK)]
    assert [one.get("via") for one in rpo["passed_over"]] == [None, str(BACK), str(BACK)]
    assert [one.get("via") for one in evidence_json(FULL)["groups"]] == [None, str(BACK)]
    assert [one.get("via") for one in evidence_json(FULL)["samples"]] == [None] * 10 + [str(BACK)] * 10
    # Topics of both clusters may have one name, and offsets of the one mean nothing in the other.
    assert FULL.passed_over is not None
    assert f"{GAP.source}, {GAP.source} of {BACK}" in passed_clause(FULL.passed_over)


def test_what_one_way_passed_over_is_not_known_so_it_is_of_neither() -> None:
    assert joined(WHOLE, [OUT, replace(HOME, passed_over=None)]).passed_over is None
    assert joined(WHOLE, [OUT, replace(HOME, passed_over=None, losses_at_ms=0)]).passed_over == (GAP,)
    assert joined(WHOLE, []).passed_over is None


def test_a_way_that_was_not_measured_has_no_figure() -> None:
    begun = joined(WHOLE, [OUT, replace(HOME, losses=(), losses_at_ms=0, groups=(), samples=(), goals=())])
    assert [(one["at_ms"], one["records"]) for one in evidence_json(begun)["rpo"]["ways"]] == [
        (OUT.losses_at_ms, 94),
        (None, None),
    ]
    assert values(begun, "RPO, records") == ["94"]


@pytest.mark.parametrize("evidence", [FULL, EARLIER, joined(WHOLE, [OUT]), joined(WHOLE, [])])
def test_it_comes_back_as_it_was_and_is_what_the_schema_says(evidence: EvidenceReport) -> None:
    content = encode_report(sealed(evidence))
    assert decode_report(content, "report-000003.json") == sealed(evidence)
    Draft202012Validator(closed(json.loads((SCHEMAS / "report.json").read_text()))).validate(json.loads(content))


def test_an_earlier_ferry_refuses_what_it_would_mix_and_reads_all_else() -> None:
    """It reads version 1 alone, and would sum up the rows of both ways."""
    versions = [json.loads(encode_report(sealed(one)))["report"] for one in (FULL, EVIDENCE, EARLIER)]
    assert versions == [2, 1, 1]
    assert "ways" not in evidence_json(EVIDENCE)["rpo"]


def test_of_a_report_that_mixed_both_ways_no_figure_is_known() -> None:
    body = json.loads(encode_report(sealed(EARLIER)))
    body["rpo"] |= {"records": 101, "seconds": 12.345}  # what that version counted
    found = decode_report(json.dumps(body).encode(), "report-000003.json").evidence
    assert (found.is_mixed, found.lost_records, found.lost_seconds, found.reread) == (True, None, None, None)
    for label in ("RPO, records", "RPO, age", "Records read twice"):
        assert values(found, label) == ["not known"]
    assert not [
        one for section in page(found).sections for one in section.blocks if isinstance(one, Chart) and one.samples
    ]
    assert len(found.losses) == 4, "each partition's row is true of its way"
    one_way = replace(found, steps=EVIDENCE.steps, losses=OUT.losses)
    assert (one_way.is_mixed, one_way.lost_records) == (False, 94), "it ended on the way there"


def test_the_page_has_each_figure_for_each_way() -> None:
    assert values(FULL, "RPO, records") == ["94", "7"]
    assert values(FULL, "Records read twice") == ["0", "4"]
    titles = [section.title for section in page(FULL).sections]
    assert len(set(titles)) == len(titles)
    for title in ("Lag and throughput", "What was lost", "Consumer groups"):
        assert len([one for one in titles if one.startswith(title)]) == 2
    charts = [one for section in page(FULL).sections for one in section.blocks if isinstance(one, Chart)]
    assert len({one.name for one in charts}) == len(charts), "ids of a page's charts begin with their names"
    assert [one.samples[0].lag_records for one in charts if one.samples] == [1000, 3]


@pytest.mark.slow
def test_its_page_and_its_pdf_have_both_ways() -> None:
    html = rendered(sealed(FULL), DIGEST)
    pdf = "".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(pdf_of(sealed(FULL), DIGEST).content)).pages)
    for text in (html, pdf):
        for way in (THERE, BACK):
            assert f"Consumer groups, {way.source} \N{RIGHTWARDS ARROW} {way.target}" in text
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(set(ids)) == len(ids)


def test_goals_are_those_of_a_way() -> None:
    assert [goal.of for goal in goals_of_ways([OUT, HOME])] == [str(THERE), str(THERE), f"{BACK}, some groups"]


def test_the_longer_way_is_known_if_both_are() -> None:
    assert [longest(times) for times in ([1.0, 3.0], [1.0, None], [])] == [3.0, None, None]


def test_a_list_of_reports_has_no_number_of_a_full_drill() -> None:
    kept = Kept(number=3, name="report-000003.json", sha256="ab", report=sealed(FULL), page_sha256=None)
    (listed,) = index_json([kept])["reports"]
    assert (listed["rpo_records"], listed["rpo_seconds"]) == (None, None)
    told = report_line(kept, "", draws_pdf=False).report
    assert told is not None
    assert (told.lost_records, told.per_way) == (None, True)


def test_the_log_has_each_way(golden: Golden) -> None:
    golden("\n".join(report_lines_of(FULL)), "both ways")
    golden("\n".join(report_lines_of(EARLIER)), "mixed")
    golden(
        "\n".join(one for figure in page(FULL).figures for one in (figure.label, figure.value, figure.note)), "figures"
    )


def test_ways_are_in_the_order_in_which_they_were_begun() -> None:
    assert FULL.ways == (
        Way(flow=THERE, losses_at_ms=OUT.losses_at_ms),
        Way(flow=BACK, losses_at_ms=HOME.losses_at_ms),
    )
