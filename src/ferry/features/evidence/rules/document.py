"""What a report says to people, in no form yet: its page in HTML and its PDF are both made of this document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ferry.features.evidence.rules.chain import SIGNATURE, pdf_name, report_name
from ferry.features.evidence.rules.codec import SealedReport
from ferry.features.evidence.rules.figures import beside_the_loss, nothing_sampled
from ferry.features.evidence.rules.ways import MIXED, ways_of
from ferry.model.evidence import (
    Compared,
    EvidenceKind,
    EvidenceOutcome,
    EvidenceReport,
    Goal,
    GroupMoved,
    Loss,
    Sample,
    TimelineStep,
)
from ferry.words import on_page, readable, size, thousands, time_of_day

SHOWN = 200
"""Rows of partitions and groups that a document shows; the JSON next to it has all."""

MARKS = {EvidenceOutcome.SUCCESS: "\N{CHECK MARK}", EvidenceOutcome.DEVIATIONS: "!"}
"""The mark before an outcome; all others have a cross."""

_CROSS = "\N{MULTIPLICATION SIGN}"
_ARROW = "\N{RIGHTWARDS ARROW}"


@dataclass(frozen=True, slots=True)
class Part:
    """Text in one style: `tone` is what it means (`faint`, `met`, `missed`, or an outcome), `is_code` a name or id."""

    text: str
    tone: str = ""
    is_code: bool = False


Line = tuple[Part, ...]
"""A line of text in one or several styles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A label, and what it has."""

    label: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A headline figure with its unit, and a note that may be empty."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The column of a table. `is_number`: to the right, and not broken; `is_whole`: not broken."""

    title: str
    is_number: bool = False
    is_whole: bool = False
    share: int = 1
    """Its part of a sheet's width, in relation to those of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row of a table: a cell for each column; `span` says how many columns the first cell takes."""

    cells: tuple[Part, ...]
    span: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, with rows at its foot that sum the others up."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    foot: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """A list of sentences. `is_ordered`: their order counts, and they have numbers."""

    sentences: tuple[str, ...]
    is_ordered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Text of its own."""

    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart of samples or of steps, and what it shows in words."""

    name: str
    description: str
    samples: tuple[Sample, ...] = ()
    steps: tuple[TimelineStep, ...] = ()


Block = Table | Sentences | Paragraph | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the document under a heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report for people, from its title to the lines at its end."""

    title: str
    what: str
    number: int
    heading: str
    outcome: Part
    summary: str
    facts: tuple[Fact, ...]
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    origin: Line
    """Which JSON it shows, with its digest, the key that signed it, and the report before it."""
    check: Line
    """How the report can be checked: the command that verifies the chain and the signature."""


def document_of(report: SealedReport, sha256: str, *, is_pdf: bool = False) -> Document:
    """Return the document of a report; `sha256` is the digest of its JSON. Only its last lines depend on the form."""
    one = report.evidence
    kind, what = str(one.kind), "drill" if one.kind.is_drill else "report"
    of = "drill of" if one.kind.is_drill else "of"
    return Document(
        title=f"{kind.capitalize()} {what} {one.flow}, {on_page(one.began_ms)}",
        what=f"{kind} {what}",
        number=report.number,
        heading=f"{kind.capitalize()} {of} {one.flow.source} {_ARROW} {one.flow.target}",
        outcome=Part(f"{MARKS.get(one.outcome, _CROSS)} {one.outcome}", tone=str(one.outcome)),
        summary=readable(one.summary),
        facts=tuple(_facts(one)),
        figures=tuple(_figures(one)),
        sections=tuple(_sections(one)),
        origin=tuple(_origin(report, sha256, is_pdf=is_pdf)),
        check=tuple(_check(report, one.version, is_pdf=is_pdf)),
    )


def _facts(one: EvidenceReport) -> Iterator[Fact]:
    yield Fact(label="When", line=_line(f"{on_page(one.began_ms)}, {seconds_of(one.seconds)}"))
    yield Fact(label="Who", line=_line(f"{one.asked_by}, by {one.who}" if one.asked_by else one.who))
    yield Fact(label="Reason", line=_line(readable(one.reason)) if one.reason else (Part("not recorded", "faint"),))
    yield Fact(label="Lane, policy", line=_line(f"{one.lane}, {one.policy}"))
    for number, cluster in enumerate(one.clusters):
        brokers = f", {_many(cluster.brokers, 'broker')}" if cluster.brokers else ""
        where = (Part(f"{cluster.alias}: cluster "), Part(cluster.cluster_id or "not known", is_code=True))
        yield Fact(label="Target" if number else "Source", line=(*where, *_line(brokers)))
    yield Fact(label="Id", line=(Part(one.id, is_code=True),))


def _each_way(one: EvidenceReport) -> list[tuple[str, EvidenceReport]]:
    """Return each way of a full drill after what its titles have of it; any other report as it is."""
    return [(f", {_flow(way)}" if one.ways else "", way) for way in ways_of(one)]


def _flow(one: EvidenceReport) -> str:
    return f"{one.flow.source} {_ARROW} {one.flow.target}"


def _figures(one: EvidenceReport) -> Iterator[Figure]:
    for of, way in _each_way(one):
        if way.losses_at_ms:
            beside = MIXED if one.is_mixed else beside_the_loss(way.passed_over)
            among = f"in {_many(len(way.losses), 'partition')}" + (f"; {beside}" if beside else "")
            yield Figure(label=f"RPO, records at most{of}", value=count_of(way.lost_records), note=among)
            yield Figure(label=f"RPO, age of the oldest{of}", value=seconds_of(way.lost_seconds))
    if one.rto_means:
        yield Figure(label="RTO", value=seconds_of(one.rto_s), note=one.rto_means)
    if one.from_start_s is not None:
        note = "the longer of both ways, until then" if one.kind is EvidenceKind.FULL else "until then"
        yield Figure(label="From the start of the command", value=seconds_of(one.from_start_s), note=note)
    if one.first_record_means:
        yield Figure(
            label="Until a consumer had its first record",
            value=seconds_of(one.first_record_s),
            note=one.first_record_means,
        )
    for of, way in _each_way(one):
        if way.groups:
            by = MIXED if one.is_mixed else f"by {_many(len(way.groups), 'group')}"
            yield Figure(label=f"Records read twice{of}", value=count_of(way.reread), note=by)
    if one.verification is not None:
        checked = one.verification
        both = ", of both flows together" if one.kind is EvidenceKind.FULL else ""
        different = "different" if checked.differences else "not all compared"
        yield Figure(
            label="Content",
            value="equal" if checked.equal else different,
            note=f"{count_of(checked.records)} records compared{both}",
        )


def _sections(one: EvidenceReport) -> Iterator[Section]:
    yield from _listed("Refused", one.refusals)
    yield from _listed("Deviations", one.deviations)
    if one.goals:
        yield Section(title="Goals", blocks=(_goals(one.goals),))
    yield from _listed("What would be done", one.would, is_ordered=True)
    if one.steps:
        yield Section(title="Timeline", blocks=(*_timeline_chart(one.steps), _timeline(one.steps)))
    ways = _each_way(one)
    for number, (of, way) in enumerate(ways, 1):
        name = f"copying-{number}" if one.ways else "copying"
        yield Section(title=f"Lag and throughput{of}", blocks=(_copying(way, name),))
    for of, way in ways:
        if way.losses_at_ms:
            title = "What a failover would lose" if way.kind.is_drill else "What was lost"
            yield Section(title=f"{title}{of}", blocks=tuple(_losses(way)))
    for of, way in ways:
        if way.groups:
            yield Section(title=f"Consumer groups{of}", blocks=tuple(_groups(way.kind, way.groups)))
    if one.verification is not None:
        yield Section(title="Content of both clusters", blocks=tuple(_verification(one.verification)))
    if one.checks:
        columns = (
            Column(title="what had to hold", share=4),
            Column(title="result", is_whole=True, share=2),
            Column(title="how it was seen", share=6),
        )
        rows = (
            Row(
                cells=(
                    Part(check.name),
                    Part("\N{CHECK MARK} held", "met") if check.ok else Part(f"{_CROSS} did not", "missed"),
                    Part(readable(check.message)),
                )
            )
            for check in one.checks
        )
        yield Section(title="Checks", blocks=(Table(columns=columns, rows=tuple(rows)),))
    yield from _listed("Notes", one.notes)


def _listed(title: str, sentences: Sequence[str], *, is_ordered: bool = False) -> Iterator[Section]:
    if sentences:
        said = Sentences(sentences=tuple(map(readable, sentences)), is_ordered=is_ordered)
        yield Section(title=title, blocks=(said,))


def _goals(goals: Iterable[Goal]) -> Table:
    return Table(
        columns=(
            Column(title="figure", share=5),
            Column(title="at most", is_number=True, share=2),
            Column(title="measured", is_number=True, share=2),
            Column(title="result", share=2),
        ),
        rows=tuple(
            Row(
                cells=(
                    Part(f"{goal.name}, of {goal.of}" if goal.of else goal.name),
                    Part("no goal" if goal.wanted is None else _in_unit(goal.wanted, goal.unit)),
                    Part(_in_unit(goal.measured, goal.unit)),
                    _met(goal),
                )
            )
            for goal in goals
        ),
    )


def _in_unit(value: float | None, unit: str) -> str:
    return seconds_of(value) if unit == "s" else f"{count_of(value)} {unit}"


def _met(goal: Goal) -> Part:
    if goal.is_met is None:
        return Part("not judged", "faint")
    return Part("\N{CHECK MARK} met", "met") if goal.is_met else Part(f"{_CROSS} missed", "missed")


def _timeline_chart(steps: tuple[TimelineStep, ...]) -> Iterator[Chart]:
    if len(steps) > 1:
        each = "; ".join(f"{step.title}: {step.seconds:.1f} seconds, {step.outcome}" for step in steps)
        yield Chart(name="timeline", description=f"The steps in order: {each}.", steps=steps)


def _timeline(steps: Iterable[TimelineStep]) -> Table:
    return Table(
        columns=(
            Column(title="step", share=5),
            Column(title="began, UTC", is_whole=True, share=3),
            Column(title="took", is_number=True, share=3),
            Column(title="outcome", share=3),
            Column(title="approved", share=5),
            Column(title="what came of it", share=7),
        ),
        rows=tuple(
            Row(
                cells=(
                    Part(step.title),
                    Part(time_of_day(step.began_ms)),
                    Part(seconds_of(step.seconds)),
                    Part(str(step.outcome), str(step.outcome)),
                    Part(f"{step.approved_by}, {on_page(step.approved_ms)}")
                    if step.approved_by
                    else Part("not asked", "faint"),
                    Part(readable(step.detail)),
                )
            )
            for step in steps
        ),
    )


def _copying(one: EvidenceReport, name: str) -> Block:
    if one.is_mixed:
        return Paragraph(line=(Part(f"There is nothing to draw: {MIXED}. The JSON has all samples.", "faint"),))
    if len(one.samples) < 2:
        return Paragraph(line=(Part(nothing_sampled(one.kind), "faint"),))
    first, last = one.samples[0], one.samples[-1]
    peak = max(sample.bytes_per_second for sample in one.samples)
    description = (
        f"Lag went from {thousands(first.lag_records)} to {thousands(last.lag_records)} records in "
        f"{(last.at_ms - first.at_ms) / 1000:.1f} seconds; the highest throughput was {peak / 1e6:.1f} MB a second."
    )
    return Chart(name=name, description=description, samples=one.samples)


def _losses(one: EvidenceReport) -> Iterator[Block]:
    at, target = on_page(one.losses_at_ms), one.flow.target
    lacked = f"What {target} did not have at {at}."
    if one.kind.is_drill:
        lacked = f"Had {one.flow.source} gone at {at}: what {target} did not have yet."
    if one.is_mixed:
        lacked = f"What the cluster that clients moved to did not have, of both ways: {MIXED}."
    most = ", so there are no more than these"
    if one.lost_records is None:
        most = "; where they are not known, there may be any number"
    beside = beside_the_loss(one.passed_over)
    beside = f" Not among them: {beside}." if beside else ""
    yield Paragraph(line=_line(f"{lacked} Records are counted by offsets{most}.{beside}"))
    worst = sorted(one.losses, key=_worst_first)
    whole = Row(
        cells=(
            Part(f"all {count_of(len(worst))} partitions"),
            Part(count_of(one.lost_records)),
            Part(""),
            Part(seconds_of(one.lost_seconds)),
        ),
        span=3,
    )
    yield Table(
        columns=(
            Column(title="partition", share=6),
            *(
                Column(title=title, is_number=True, share=3)
                for title in ("copied to", "source end", "records", "bytes, about", "oldest")
            ),
        ),
        rows=tuple(
            Row(
                cells=(
                    Part(str(loss.source)),
                    *(Part(count_of(count)) for count in (loss.position, loss.source_end, loss.records)),
                    Part(_size(loss.bytes)),
                    Part(seconds_of(loss.seconds)),
                )
            )
            for loss in worst[:SHOWN]
        ),
        foot=(whole,),
    )
    more = len(worst) - SHOWN
    if more > 0:
        text = f"{count_of(more)} more partitions, with no more records each, are in the JSON."
        yield Paragraph(line=(Part(text, "faint"),))


def _worst_first(loss: Loss) -> tuple[bool, int, str, int]:
    return (loss.records is not None, -(loss.records or 0), *loss.source)


def _groups(kind: EvidenceKind, groups: Sequence[GroupMoved]) -> Iterator[Block]:
    committed = "would be committed" if kind is EvidenceKind.TABLETOP else "committed"
    titles = ("partitions", committed, "same record", "read twice", "skipped", "read beyond the copy")
    columns = (Column(title="group", share=5), Column(title="taken to", share=5))
    yield Table(
        columns=(*columns, *(Column(title=title, is_number=True, share=4) for title in titles)),
        rows=tuple(row for group in groups[:SHOWN] for row in _group_rows(group, len(columns) + len(titles))),
    )
    more = len(groups) - SHOWN
    if more > 0:
        yield Paragraph(line=(Part(f"{count_of(more)} more groups are in the JSON.", "faint"),))


def _group_rows(group: GroupMoved, wide: int) -> Iterator[Row]:
    exact = "not compared" if group.exact is None else count_of(group.exact)
    before = (group.partitions, group.committed)
    after = (group.reread, group.skipped, group.beyond)
    yield Row(
        cells=(
            *(Part(group.group), Part(group.target_group)),
            *(Part(count_of(count)) for count in before),
            Part(exact),
            *(Part(count_of(count)) for count in after),
        )
    )
    lag = "" if group.lag is None else f"not read before the switch began: {count_of(group.lag)}"
    said = "; ".join(text for text in (lag, readable(group.note)) if text)
    if said:
        yield Row(cells=(Part(said, "faint"),), span=wide)


def _verification(checked: Compared) -> Iterator[Block]:
    result = "all are equal."
    if not checked.equal:
        partly = "" if checked.complete else ", and not all could be compared"
        result = f"{_many(checked.differences, 'difference')}{partly}."
    text = (
        f"{count_of(checked.records)} records in {_many(checked.partitions, 'partition')} were compared by key, value, "
        f"headers, timestamp and order ({_size(checked.bytes)} read of both in {seconds_of(checked.seconds)}): {result}"
    )
    yield Paragraph(line=_line(text))
    if checked.findings:
        yield Sentences(sentences=tuple(map(readable, checked.findings)))


def _origin(report: SealedReport, sha256: str, *, is_pdf: bool) -> Iterator[Part]:
    name, signer, previous = report_name(report.number), report.signer, report.previous
    yield Part(f"This {'PDF' if is_pdf else 'page'} shows ")
    yield from (Part(name, is_code=True), Part(", SHA-256 "), Part(sha256, is_code=True), Part(". "))
    if signer is None:
        yield Part("The JSON is not signed. " if is_pdf else "Neither is signed. ")
    else:
        yield Part(f"{'The JSON is' if is_pdf else 'Both are'} signed ({signer.algorithm}, key ")
        yield from (Part(signer.key_sha256, is_code=True), Part("). "))
    if previous is None:
        yield Part("It is the first of its folder.")
    else:
        yield from (Part("It follows "), Part(previous.name, is_code=True), Part(", SHA-256 "))
        yield from (Part(previous.sha256, is_code=True), Part("."))


def _check(report: SealedReport, version: str, *, is_pdf: bool) -> Iterator[Part]:
    name = report_name(report.number)
    yield from (Part(f"Written by Ferry {version}. "), Part("ferry reports verify", is_code=True))
    yield Part(" checks signatures and the chain of reports. ")
    yield from (Part("docs/evidence.md", is_code=True), Part(" names the controls that ask for such reports."))
    if is_pdf:
        yield from (Part(" "), Part(f"sha256sum {name}", is_code=True), Part(" must print the digest above."))
        if report.signer is not None:
            yield Part(" Where this PDF was written with the JSON, its signature is ")
            yield from (Part(f"{pdf_name(name)}{SIGNATURE}", is_code=True), Part("."))


def text_of(line: Iterable[Part]) -> str:
    """Return a line's text without its styles."""
    return "".join(part.text for part in line)


def _line(text: str) -> Line:
    return (Part(text),) if text else ()


def _many(count: int, noun: str) -> str:
    return f"{count_of(count)} {noun}{'' if count == 1 else 's'}"


def seconds_of(value: float | None) -> str:
    """Return a duration for people: `40 ms`, `9.4 s`, `3 min 20 s`, `2 h 5 min`, or `not known`."""
    if value is None:
        return "not known"
    if value < 1:
        return f"{value * 1000:.0f} ms" if value else "0 s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def count_of(value: float | None) -> str:
    """Return a number with its thousands separated by a narrow space that does not break, or `not known`."""
    return "not known" if value is None else thousands(value)


def _size(value: float | None) -> str:
    return "not known" if value is None else size(value)
