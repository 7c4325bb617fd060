"""A report as PDF: it has every fact of the page's document, and the same report gives the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pypdf import PdfReader

from ferry.features.evidence.acts.pdf import Pdf, pdf_of
from ferry.features.evidence.rules.codec import SealedReport, decode_report, encode_report
from ferry.features.evidence.rules.document import Chart, Document, Paragraph, Sentences, Table, document_of, text_of
from ferry.features.evidence.rules.lines import report_lines_of
from ferry.model import TopicPartition
from ferry.model.evidence import ADOPTED, DEAD_LETTERS, START, EvidenceKind, EvidenceReport, PassedOver
from tests.pure.reports.values import EVIDENCE, loss

DIGEST = "c0ffee00" * 8
A4 = (595, 842)
PLACE = TopicPartition("orders", 1)
SKIP = (PassedOver(source=PLACE, start=10, end=13, why="stuck"),)
UNCOUNTED = (PassedOver(source=PLACE, start=None, end=13, why=START),)
MANY = replace(EVIDENCE, losses=tuple(loss(partition, partition, 1.0) for partition in range(150)))


@pytest.mark.parametrize(("kind", "title"), [("tabletop", "would be committed"), ("partial", "committed")])
def test_a_tabletop_drill_has_committed_nothing(kind: str, title: str) -> None:
    document = document_of(sealed(replace(EVIDENCE, kind=EvidenceKind(kind))), DIGEST)
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    assert [title in [column.title for column in table.columns] for table in tables].count(True) == 1


def sealed(evidence: EvidenceReport = EVIDENCE) -> SealedReport:
    return SealedReport(number=3, evidence=evidence, previous=None, signer=None)


def read(pdf: Pdf) -> PdfReader:
    return PdfReader(io.BytesIO(pdf.content))


def plain(text: str) -> str:
    """Return text without white space: lines are broken at other places than in the document."""
    return re.sub(r"\s+", "", text)


def facts(document: Document) -> Iterator[str]:
    yield from (document.what, document.heading, document.outcome.text, document.summary)
    for fact in document.facts:
        yield from (fact.label, text_of(fact.line))
    for figure in document.figures:
        yield from (figure.label, figure.value, figure.note)
    for section in document.sections:
        yield section.title
        for block in section.blocks:
            match block:
                case Sentences():
                    yield from block.sentences
                case Table():
                    yield from (column.title for column in block.columns)
                    yield from (cell.text for row in (*block.rows, *block.foot) for cell in row.cells)
                case Chart():
                    yield block.description
                case _:
                    yield text_of(block.line)
    yield from (text_of(document.origin), text_of(document.check))


@pytest.mark.slow
def test_a_pdf_has_every_fact_of_the_document() -> None:
    pdf = pdf_of(sealed(), DIGEST)
    text = plain("".join(page.extract_text() for page in read(pdf).pages))
    said = list(facts(document_of(sealed(), DIGEST, is_pdf=True)))
    assert len(said) > 100
    assert [fact for fact in said if plain(fact) not in text] == []
    assert DIGEST in text
    assert pdf.unshown == ()


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        pytest.param(
            (PassedOver(source=PLACE, start=10, end=13, why="stuck"),), ("3 offsets", str(PLACE)), id="a skip"
        ),
        pytest.param(
            (PassedOver(source=PLACE, start=None, end=13, why=START),), ("not known", str(PLACE)), id="a start"
        ),
        pytest.param(
            (PassedOver(source=PLACE, start=10, end=13, why=DEAD_LETTERS, records=2),),
            ("2 records", str(PLACE)),
            id="dead letters",
        ),
        pytest.param(
            (PassedOver(source=PLACE, start=0, end=13, why=ADOPTED),), ("not known", str(PLACE)), id="an adoption"
        ),
        pytest.param(None, ("not known",), id="an earlier version"),
    ],
)
def test_what_was_passed_over_on_purpose_stands_beside_the_loss(
    passed: tuple[PassedOver, ...] | None, said: tuple[str, ...]
) -> None:
    """The page says that there are no more records lost than these: it counts what is not among them, too."""

    def sentence(evidence: EvidenceReport) -> str:
        document = document_of(sealed(evidence), DIGEST)
        (section,) = [one for one in document.sections if "lose" in one.title]
        return next(text_of(block.line) for block in section.blocks if isinstance(block, Paragraph))

    nothing, some = sentence(replace(EVIDENCE, passed_over=())), sentence(replace(EVIDENCE, passed_over=passed))
    assert some.startswith(nothing)
    assert [word for word in said if word not in some.removeprefix(nothing)] == []
    assert not set(said) & set(nothing.split())
    for word in said:
        assert any(
            word in line for line in report_lines_of(replace(EVIDENCE, passed_over=passed)) if line.startswith("RPO")
        )


def test_the_page_and_the_pdf_differ_only_in_their_last_lines() -> None:
    page, pdf = document_of(sealed(), DIGEST), document_of(sealed(), DIGEST, is_pdf=True)
    assert replace(pdf, origin=page.origin, check=page.check) == page


@pytest.mark.slow
def test_the_same_report_gives_the_same_bytes() -> None:
    once = pdf_of(sealed(), DIGEST).content
    assert once == pdf_of(sealed(), DIGEST).content
    assert once != pdf_of(sealed(replace(EVIDENCE, who="another")), DIGEST).content


@pytest.mark.slow
def test_no_heading_is_left_alone_at_the_end_of_a_sheet() -> None:
    """A chart and a row of a table move to the next sheet whole; their heading goes with them."""
    left = []
    for many in range(12, 20, 2):  # they move the timeline over the end of the sheet
        evidence = replace(EVIDENCE, deviations=tuple(f"deviation {number}" for number in range(many)), samples=())
        titles = {section.title for section in document_of(sealed(evidence), DIGEST, is_pdf=True).sections}
        for number, page in enumerate(read(pdf_of(sealed(evidence), DIGEST)).pages, 1):
            lines = [line.strip() for line in page.extract_text().splitlines() if line.strip()]
            shown = [line for line in lines if not re.search(rf"{DIGEST}|^{number} / ", line)]
            left += [(many, number, shown[-1])] if shown[-1] in titles and not page.images else []
    assert left == []


def test_who_started_it_and_why_is_on_the_page_and_in_the_pdf() -> None:
    plain_facts = {fact.label: text_of(fact.line) for fact in document_of(sealed(), DIGEST).facts}
    assert (plain_facts["Who"], plain_facts["Reason"]) == ("ops@bastion", "not recorded")
    asked = replace(EVIDENCE, asked_by="ada", reason="the yearly <audit>")
    known = {fact.label: text_of(fact.line) for fact in document_of(sealed(asked), DIGEST).facts}
    assert (known["Who"], known["Reason"]) == ("ada, by ops@bastion", "the yearly <audit>")
    assert decode_report(encode_report(sealed(asked)), "report-3").evidence.reason == asked.reason
    assert b"asked_by" not in encode_report(sealed()), "reports of earlier versions have neither"


@pytest.mark.slow
def test_sheets_are_a4_with_numbers_and_titles_of_tables_on_each() -> None:
    reader = read(pdf_of(sealed(MANY), DIGEST))
    pages = [page.extract_text() for page in reader.pages]
    assert {(round(page.mediabox.width), round(page.mediabox.height)) for page in reader.pages} == {A4}
    assert all(f"{number} / {len(pages)}" in text for number, text in enumerate(pages, 1))
    rows = [text for text in pages if re.search(r"^orders-\d", text, re.MULTILINE)]
    assert len(rows) > 2
    assert all("copied to" in text for text in rows)


@pytest.mark.slow
def test_title_and_language_are_in_the_metadata() -> None:
    reader = read(pdf_of(sealed(), DIGEST))
    assert reader.metadata is not None
    assert reader.metadata.title == document_of(sealed(), DIGEST).title
    assert str(reader.root_object["/Lang"]) == "en"


@pytest.mark.slow
def test_characters_that_no_font_has_are_named() -> None:
    pdf = pdf_of(sealed(replace(EVIDENCE, notes=("Привет, \u5f20",))), DIGEST)
    text = "".join(page.extract_text() for page in read(pdf).pages)
    assert pdf.unshown == ("U+5F20",)
    assert "Привет, [U+5F20]" in text
    assert text.count("U+5F20") == 2
