"""A report as PDF on A4: the same document as its page, with the fonts inside. The same report gives the same bytes."""

from __future__ import annotations

import io
import struct
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
from fpdf import FPDF, FontFace, ViewerPreferences, XPos, YPos
from fpdf.enums import MethodReturnValue
from fpdf.fonts import TTFFont

from ferry.features.evidence.acts.charts import as_png, drawn
from ferry.features.evidence.rules.chain import report_name
from ferry.features.evidence.rules.codec import SealedReport
from ferry.features.evidence.rules.document import (
    Block,
    Chart,
    Document,
    Line,
    Part,
    Row,
    Sentences,
    Table,
    document_of,
    text_of,
)

_MARGIN = 16.0
_FOOT = 18.0
_TEXT, _SMALL, _TINY = 9.5, 8.0, 6.0
_LINE, _SMALL_LINE = 4.8, 4.0
_INK, _FAINT, _RULE = (27, 39, 51), (90, 102, 114), (201, 208, 214)
_TONES = {
    "faint": _FAINT,
    **dict.fromkeys(("met", "success", "done"), (28, 107, 52)),
    "deviations": (138, 83, 0),
    **dict.fromkeys(("missed", "failed", "refused"), (179, 38, 30)),
}
_SANS, _MONO = "sans", "mono"
_FACES = ((_SANS, "", "DejaVuSans.ttf"), (_SANS, "B", "DejaVuSans-Bold.ttf"), (_MONO, "", "DejaVuSansMono.ttf"))
"""Of the fonts that matplotlib brings: the DejaVu fonts, whose licence allows them in documents."""
_JOINERS = frozenset("\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}")
_HIGHEST = 30
"""The most lines of a row: one that is higher continues in the next row, because no row is higher than a sheet."""
_PADDING = (0.7, 1.2)
"""Millimetres above and below, and left and right, of a table's cells."""
_HEADING, _LEAST = 7.0, 24.0
"""Millimetres: the height of a section's heading, and the least that is left on a sheet where one begins."""
_WIDEST = 3.0
"""Millimetres: characters of a table are not wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdf:
    """A PDF, and the characters of the report that it shows as their code points (`U+5F20`), because no font has them.

    They are named in the PDF, too.
    """

    content: bytes
    unshown: tuple[str, ...]


def pdf_of(report: SealedReport, sha256: str) -> Pdf:
    """Return the PDF of a report; `sha256` is the digest of its JSON."""
    document = document_of(report, sha256, is_pdf=True)
    sheets = _Sheets(f"{report_name(report.number)}, SHA-256 {sha256}")
    # Not the clock: the same report gives the same bytes.
    sheets.set_creation_date(datetime.fromtimestamp(report.evidence.ended_ms / 1000, UTC))
    sheets.set_title(document.title)
    sheets.set_author(report.evidence.who)
    sheets.set_subject(document.summary)
    sheets.set_creator(f"Ferry {report.evidence.version}")
    sheets.write_document(document)
    return Pdf(content=bytes(sheets.output()), unshown=sheets.unshown)


class _Sheets(FPDF):
    """Sheets of A4 with a line at the foot of each: the report, and the number of the sheet."""

    def __init__(self, foot: str) -> None:
        super().__init__(format="A4", unit="mm")
        self._foot = foot
        self._unshown: set[str] = set()
        self._images: dict[Chart, bytes] = {}
        fonts = Path(mpl.get_data_path(), "fonts", "ttf")
        for family, style, name in _FACES:
            self.add_font(family, style, fonts / name)
        self.set_fallback_fonts([_SANS], exact_match=False)
        # Without ligatures, so that words are found and copied as they were written.
        self.set_text_shaping(use_shaping_engine=True, features={"liga": False, "clig": False})
        sans = self.fonts[_SANS]
        assert isinstance(sans, TTFFont)
        self._drawable = frozenset(sans.cmap)
        self.set_margins(_MARGIN, _MARGIN, _MARGIN)
        self.set_auto_page_break(auto=True, margin=_FOOT)
        self.set_lang("en")
        self.viewer_preferences = ViewerPreferences(display_doc_title=True)
        self.set_draw_color(*_RULE)
        self.set_line_width(0.2)

    @property
    def unshown(self) -> tuple[str, ...]:
        """The code points of characters that no font has."""
        return tuple(f"U+{ord(character):04X}" for character in sorted(self._unshown))

    def footer(self) -> None:
        """Write the line at the foot of a sheet, which FPDF asks for when a sheet is full."""
        self.set_y(-12)
        self._style(_MONO, _TINY, tone="faint")
        self.cell(self.epw - 20, 4, self._foot)
        self._style(_SANS, _SMALL, tone="faint")
        self.cell(20, 4, f"{self.page_no()} / {{nb}}", align="R")

    def write_document(self, document: Document) -> None:
        """Write all of the document, and then the characters that could not be shown."""
        self.add_page()
        self._style(_SANS, _SMALL, tone="faint")
        self.cell(self.epw / 2, _LINE, self._known(f"Ferry {document.what}"))
        self.cell(self.epw / 2, _LINE, f"Report {document.number}", align="R", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        self._style(_SANS, 17, bold=True)
        self._text(document.heading, 8)
        self.ln(1)
        self._style(_SANS, _TEXT + 1, bold=True, tone=document.outcome.tone)
        self._text(document.outcome.text, 5.4)
        self._style(_SANS, _TEXT + 1)
        self._text(document.summary, 5.4)
        self.ln(1)
        self._pairs((fact.label, text_of(fact.line), "") for fact in document.facts)
        self.ln(2)
        self._pairs(((figure.label, figure.value, figure.note) for figure in document.figures), bold=True)
        for section in document.sections:
            self._heading(section.title, self._beginning(section.blocks[0]))
            for block in section.blocks:
                self._block(block)
        self._end(document)

    def _end(self, document: Document) -> None:
        closing: list[Line] = [document.origin, document.check]
        for line in closing:
            self._known(text_of(line))  # before the list of what is not shown
        if self._unshown:
            self._heading("Characters that are not shown")
            self._style(_SANS, _TEXT)
            self._text(
                f"No font of this PDF has these characters, so they are written as their code points: "
                f"{', '.join(self.unshown)}. The JSON has the characters.",
                _LINE,
            )
        self.ln(5)
        self._style(_SANS, _SMALL)
        self.line(self.l_margin, self.y, self.l_margin + self.epw, self.y)
        self.ln(2)
        for line in closing:
            self._text(text_of(line), _SMALL_LINE)
            self.ln(1)

    def _heading(self, title: str, beginning: float = 0) -> None:
        """Write a heading; `beginning` is how high (mm) that is what must be on the same sheet, below it."""
        self.ln(4)
        if self.will_page_break(max(_LEAST, _HEADING + beginning)):
            self.add_page()
        self._style(_SANS, 12, bold=True)
        self.start_section(title)
        self._text(title, 6)
        self.ln(1)

    def _beginning(self, block: Block) -> float:
        """Return the height (mm) of a chart, or of a table's titles with its first row; 0: of text, which may break."""
        match block:
            case Chart():
                width, height = struct.unpack(">II", self._image(block)[16:24])  # of the PNG's first chunk
                return self.epw * float(height) / float(width)
            case Table():
                self._style(_SANS, _SMALL, bold=True)
                shares = [column.share for column in block.columns]
                high = self._height([Part(column.title) for column in block.columns], shares)
                for row in block.rows[:1]:
                    wide = [sum(shares[: row.span]), *shares[row.span :]]
                    high += self._height(next(self._divided(row, shares)), wide)
                return high
            case _:
                return 0

    def _height(self, cells: Sequence[Part], shares: Sequence[int]) -> float:
        """Return the height (mm) of a table's row."""
        across, along = _PADDING[1], _PADDING[0]
        widths = [self.epw * share / sum(shares) - 2 * across for share in shares]
        lines = 0
        for cell, width in zip(cells, widths, strict=True):
            found = self.multi_cell(
                width, _SMALL_LINE, self._known(cell.text), dry_run=True, output=MethodReturnValue.LINES
            )
            assert isinstance(found, list)
            lines = max(lines, len(found))
        return lines * _SMALL_LINE + 2 * along

    def _image(self, chart: Chart) -> bytes:
        """Return a chart as PNG; it is drawn once."""
        if chart not in self._images:
            steps = tuple(replace(step, title=self._known(step.title)) for step in chart.steps)
            self._images[chart] = drawn(replace(chart, steps=steps), as_png)
        return self._images[chart]

    def _block(self, block: Block) -> None:
        self._style(_SANS, _TEXT)
        match block:
            case Sentences():
                for number, sentence in enumerate(block.sentences, 1):
                    mark = f"{number}." if block.is_ordered else "\N{BULLET}"
                    self.cell(7, _LINE, mark)
                    self._text(sentence, _LINE, indent=7)
                    self.ln(0.6)
            case Table():
                self._table(block)
            case Chart():
                self._chart(block)
            case _:
                self._style(_SANS, _TEXT, tone=block.line[0].tone if block.line else "")
                self._text(text_of(block.line), _LINE)
                self.ln(1)

    def _chart(self, chart: Chart) -> None:
        """Draw a chart, and write below what it shows."""
        words = self._known(chart.description)
        self.image(io.BytesIO(self._image(chart)), w=self.epw, alt_text=words)
        self._style(_SANS, _SMALL, tone="faint")
        self._text(chart.description, _SMALL_LINE)
        self.ln(2)

    def _pairs(self, pairs: Iterator[tuple[str, str, str]], *, bold: bool = False) -> None:
        """Write labels with what they have, and a note to the right."""
        self._style(_SANS, _TEXT)
        widths = (58.0, 38.0, self.epw - 96) if bold else (30.0, self.epw - 30)
        with self.table(
            col_widths=widths,
            first_row_as_headings=False,
            borders_layout="HORIZONTAL_LINES" if bold else "NONE",
            text_align="LEFT",
            v_align="TOP",
            line_height=_LINE,
            padding=0.5,
        ) as table:
            faint, strong = FontFace(color=_FAINT), FontFace(emphasis="BOLD" if bold else None)
            for label, value, note in pairs:
                row = table.row()
                row.cell(self._known(label), style=faint)
                row.cell(self._known(value), style=strong)
                if bold:
                    row.cell(self._known(note), style=faint)

    def _table(self, given: Table) -> None:
        """Write a table; each sheet that it reaches repeats the titles of its columns."""
        self._style(_SANS, _SMALL)
        shares = [column.share for column in given.columns]
        with self.table(
            col_widths=shares,
            borders_layout="HORIZONTAL_LINES",
            text_align=tuple("RIGHT" if column.is_number else "LEFT" for column in given.columns),
            v_align="TOP",
            line_height=_SMALL_LINE,
            padding=_PADDING,
            headings_style=FontFace(emphasis="BOLD", color=_INK),
        ) as table:
            titles = table.row()
            for column in given.columns:
                titles.cell(self._known(column.title))
            for row in (*given.rows, *given.foot):
                for cells in self._divided(row, shares):
                    shown = table.row()
                    for place, cell in enumerate(cells):
                        style = FontFace(
                            emphasis="BOLD" if row in given.foot else None, color=_TONES.get(cell.tone, _INK)
                        )
                        shown.cell(cell.text, style=style, colspan=1 if place else row.span)
        self.ln(2)

    def _divided(self, row: Row, shares: list[int]) -> Iterator[list[Part]]:
        """Return a row as several ones of which none is higher than a sheet, with text as it is shown."""
        texts = [self._known(cell.text) for cell in row.cells]
        wide = [sum(shares[: row.span]), *shares[row.span :]]
        most = [max(1, int(self.epw * share / sum(shares) / _WIDEST)) * _HIGHEST for share in wide]
        while True:
            yield [replace(cell, text=text[:many]) for cell, text, many in zip(row.cells, texts, most, strict=True)]
            texts = [text[many:] for text, many in zip(texts, most, strict=True)]
            if not any(texts):
                return

    def _text(self, text: str, height: float, *, indent: float = 0) -> None:
        """Write text over as many lines as it needs."""
        self.multi_cell(self.epw - indent, height, self._known(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def _known(self, text: str) -> str:
        """Return text in which characters that have no glyph, or control the text around them, are code points."""
        return "".join(map(self._shown, text))

    def _shown(self, character: str) -> str:
        if character in _JOINERS or (ord(character) in self._drawable and unicodedata.category(character)[0] != "C"):
            return character
        self._unshown.add(character)
        return f"[U+{ord(character):04X}]"

    def _style(self, family: str, size: float, *, bold: bool = False, tone: str = "") -> None:
        self.set_font(family, "B" if bold else "", size)
        self.set_text_color(*_TONES.get(tone, _INK))
