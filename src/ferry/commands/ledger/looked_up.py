"""The answers of `ferry ledger`: receipts, runs, pauses, and where an offset was copied to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.cli.output import Figure, Form, echo, in_bytes, print_answer, print_table
from ferry.clock import wall_ms
from ferry.commands.forms import holders_json, past_runs_json, pause_json, receipts_json
from ferry.commands.views import show_report
from ferry.errors import BadInput
from ferry.ledger.adoption_codec import adoptions
from ferry.ledger.deployments import SHOWN_DIGITS
from ferry.ledger.history import Forgotten, Holder, PastRun, PastState, holders, named_run, past_runs, skipped_at
from ferry.ledger.ledger import LedgerView, gaps, pauses
from ferry.ledger.pruning import Pruned, pruned_at
from ferry.ledger.receipts import receipts
from ferry.ledger.repartitioned_at import Dealt, DealtAt, dealt_at
from ferry.ledger.report import Report, as_known, uncounted_sentence
from ferry.ledger.unit_codec import eras, narrowed_units
from ferry.model import Adoption, Gap, Pause, Receipt, TopicPartition
from ferry.run.ledger.access import LedgerAccess
from ferry.words import to_the_second

NOT_FOUND = 1
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for, and where; each method prints one kind of answer, and returns the exit code."""

    access: LedgerAccess
    lane: str
    form: Form
    run: str | None
    topic: str | None
    partition: int | None
    last: int | None

    def runs(self, newest: int) -> int:
        past = past_runs(self.access.view_with_newest(self.lane, newest), self.lane, newest)
        print_answer(lambda: past_runs_json(past), lambda: print_runs(past), form=self.form)
        return 0

    def pauses(self) -> int:
        found = list(pauses(self.access.view(), wall_ms()).values())
        print_answer(
            lambda: {"pauses": [pause_json(pause) for pause in found]},
            lambda: _print_pauses(found),
            form=self.form,
            table=lambda: print_table(
                ["topic", "by", "since", "until", "why"],
                (
                    (one.topic or None, one.who, to_the_second(one.since_ms), until, one.why)
                    for one in found
                    for until in (to_the_second(one.until_ms) if one.until_ms else None,)
                ),
            ),
        )
        return 0

    def holders(self, offset: int) -> int:
        view, topic = self.access.view(), self.topic or ""
        known = gaps(view, self.lane)
        held = holders(self._narrowed(self.access.receipts_near(view, self.lane, topic, offset)), offset, known)
        skipped = skipped_at(known, topic, self.partition, offset, held)
        adopted = [
            one
            for one in adoptions(view, self.lane)
            if one.source.topic == topic
            and self.partition in (None, one.source.partition)
            and one.start <= offset < one.end
        ]
        gone = [] if held else pruned_at(view, self.lane, topic, self.partition, offset)
        units = [] if held else self._dealt(view, topic, offset)
        print_answer(
            lambda: holders_json(held, skipped, adopted, gone, units),
            lambda: (
                _print_dealt(units, skipped, f"{topic}-{self.partition}", offset)
                if units
                else _print_holders(held, skipped, adopted, gone, offset)
            ),
            form=self.form,
        )
        if units:
            return 0 if all(one.state is Dealt.PASSED for one in units) else NOT_FOUND
        return 0 if adopted or any(holder.void is None for holder in held) else NOT_FOUND

    def _dealt(self, view: LedgerView, topic: str, offset: int) -> list[DealtAt]:
        """Return what is known of the offset if the topic is repartitioned; empty if it is not."""
        known = [era for era in eras(view, self.lane).values() if era.source_topic == topic]
        if not known:
            return []
        if self.partition is None:
            raise BadInput(
                f"topic {topic} is repartitioned, so each target partition has offsets of all source partitions: name "
                f"the source partition of --offset {offset} with --partition"
            )
        receipts = self.access.units_of(view, self.lane, topic)
        return dealt_at(known, receipts, TopicPartition(topic, self.partition), offset)

    def receipts(self) -> int:
        view = self.access.whole() if self.run is None else self.access.view_named(self.lane, self.run)
        rows = self._narrowed(receipts(view, lane=self.lane, run=self.run, topic=self.topic))
        # All of them hold records of each source partition.
        units = narrowed_units(view, self.lane, self.run, self.topic) if self.partition is None else []
        found = None if self.run is None else named_run(view, self.lane, self.run)
        left = found if found is None or isinstance(found, Forgotten) else found.earlier
        if left is not None and self.partition is None:
            units = [*units, *(unit for unit in left.dealt if self.topic in (None, unit.source.topic))]
        units = units[-self.last :] if self.last else units
        if self.run is not None and found is None:
            raise BadInput(
                f"the ledger has neither a record nor a receipt of run {self.run} of lane {self.lane}: `ferry ledger "
                "--runs` lists its newest runs"
            )
        is_narrow = self.topic is not None or self.partition is not None
        whole = None if is_narrow else found
        rows = rows[-self.last :] if self.last else rows

        def show() -> None:
            if rows or (whole is None and not units):
                _print_receipts(rows)
            if units:
                _print_units(units)
            if whole is not None:
                print_run(whole)
            if isinstance(whole, PastRun) and whole.state is PastState.UNPLANNED:
                _print_unplanned(whole)

        print_answer(
            lambda: receipts_json(rows, units, whole), show, form=self.form, table=lambda: _print_receipts(rows)
        )
        return 0

    def _narrowed(self, rows: Iterable[Receipt]) -> list[Receipt]:
        return [row for row in rows if self.partition in (None, row.source.partition) and self.run in (None, row.run)]


def print_run(past: PastRun | Forgotten) -> None:
    """Print the outcome of a run, or the state of an open one; for one that was pruned what is left of it."""
    if isinstance(past, Forgotten):
        echo(past.sentence)
        return
    run = past.opened.record.run
    if past.report is not None:
        show_report(past.report, past.state.value)
        if (uncounted := uncounted_sentence(past.report)) is not None:
            echo(uncounted)
    if past.state is PastState.OPEN:
        echo(f"run {run} is active, or was killed: ferry run --resume {run}, or the next run, continues it")


def _print_unplanned(past: PastRun) -> None:
    """Print the state of a run without a sealed plan: that it ended is known if a newer run has begun."""
    run = past.opened.record.run
    if past.followed:
        echo(f"run {run} ended before its plan was sealed{'' if past.earlier else ': nothing was copied'}")
    else:
        so_far = "" if past.earlier else ": it has copied nothing so far"
        echo(f"run {run} has no sealed plan{so_far}, and whether it still runs is not known")
    if past.earlier is not None:
        echo(f"it was opened before under its name: {past.earlier.sentence}")


def _print_receipts(rows: list[Receipt]) -> None:
    print_table(
        [
            "at",
            "run",
            "topic",
            "partition",
            "start",
            "end",
            "records",
            "markers",
            "aborted",
            "missing",
            "transcoded",
            "bytes",
            "target",
        ],
        (
            [
                to_the_second(row.at_ms),
                row.run,
                row.source.topic,
                row.source.partition,
                row.start,
                row.end,
                row.records,
                row.control_batches,
                row.aborted_batches,
                row.missing,
                row.transcoded,
                in_bytes(row.bytes),
                row.target,
            ]
            for row in rows
        ),
        right=["partition", "start", "end", "records", "markers", "aborted", "missing", "transcoded", "bytes"],
    )


def _print_units(rows: list[Receipt]) -> None:
    """Print the receipts of repartitioned topics: `offsets` counts the source offsets that were read for each."""
    right = ["offsets", "records", "letters", "bytes", "from", "to"]
    print_table(
        ["at", "run", "topic", "target", "offsets", "records", "letters", "bytes", "from", "to"],
        (
            [
                to_the_second(row.at_ms),
                row.run,
                row.source.topic,
                row.target,
                row.end - row.start,
                row.records,
                row.dead_letters,
                in_bytes(row.bytes),
                row.target_start if row.records else None,
                row.target_next if row.records else None,
            ]
            for row in rows
        ),
        right=right,
    )


def _print_dealt(found: list[DealtAt], skipped: list[Gap], source: str, offset: int) -> None:
    """Print the chunks with an offset, one for each target partition; the record's key decides which one has it."""
    passed = sum(one.state is Dealt.PASSED for one in found)
    echo(
        f"offset {offset} of {source} went to the target partition of its record's key, if the transform keeps it; "
        f"{passed} of {len(found)} target partitions have a chunk with it:"
    )
    print_table(
        ["target", "offset", "at", "run", "records", "letters", "from", "to", "without key"],
        (
            [
                one.target,
                one.state.value,
                to_the_second(chunk.at_ms) if chunk else None,
                chunk.run if chunk else None,
                chunk.records if chunk else None,
                chunk.dead_letters if chunk else None,
                chunk.target_start if chunk and chunk.records else None,
                chunk.target_next if chunk and chunk.records else None,
                "here" if one.keyless else None,
            ]
            for one in found
            for chunk in (one.chunk,)
        ),
        right=["records", "letters", "from", "to"],
    )
    _print_skipped(skipped, offset)


def _print_skipped(skipped: list[Gap], offset: int) -> None:
    for gap in skipped:
        by = f", by {gap.who}" if gap.who else ""
        echo(
            f"offset {offset} of {gap.source} was skipped by run {gap.run} at {to_the_second(gap.at_ms)} with "
            f"[{gap.start}, {gap.end}){by}: {gap.reason or gap.why} [{gap.why}]"
        )


def _print_holders(
    found: list[Holder], skipped: list[Gap], adopted: list[Adoption], gone: list[Pruned], offset: int
) -> None:
    for one in adopted:
        echo(
            f"offset {offset} of {one.source} was copied to {one.target} by MirrorMaker {one.by.value[-1]}, up to "
            f"{one.end} ({one.where}): adopted by {one.who} at {to_the_second(one.at_ms)}, run {one.run}"
        )
    for holder in found:
        receipt, segment = holder.receipt, holder.segment
        held = f"the receipt [{receipt.start}, {receipt.end}) of run {receipt.run}"
        where = f"offset {offset} of {receipt.source} is in {held}"
        if segment is None:
            left = f"left out by transform {receipt.transform}, " if receipt.transform else ""
            left += "one of its dead letters, " if receipt.dead_letters else ""
            echo(f"{where}, in a gap: {left}a marker, an aborted record, or missing at the source; not copied")
        else:
            echo(
                f"{where}, in the segment of {segment.count} records from {segment.source_start}: "
                f"it is offset {holder.target_offset} of {receipt.target}"
            )
        if holder.void is not None:
            gap = holder.void
            echo(
                f"that is no longer valid since run {gap.run} at {to_the_second(gap.at_ms)}: {gap.reason} [{gap.why}, "
                f"{gap.how}]"
            )
    _print_skipped(skipped, offset)
    for mark in gone:
        echo(
            f"the receipt of offset {offset} of {mark.source} was pruned with all before {mark.end}, by run {mark.run} "
            f"at {to_the_second(mark.at_ms)}: the source's log began at {mark.source_log_start} and that of "
            f"{mark.copy.target} at {mark.target_log_start}, so neither side had the record any more"
        )
    if not found and not skipped and not adopted and not gone:
        echo(
            f"no receipt holds offset {offset}: it is not copied, is before the lane's start, or was forgotten with a "
            "deleted copy"
        )


def print_runs(past: list[PastRun]) -> None:
    print_table(
        ["started", "run", "state", "slices", "records", "bytes", "seconds", "by", "configuration", "deployment"],
        (
            [
                to_the_second(run.opened.record.started_ms),
                run.opened.record.run,
                run.state.value,
                len(run.report.plan.kept) if run.report else None,
                *figures,
                run.opened.record.origin.dag_id or run.opened.record.origin.host,
                run.opened.record.config_digest[:SHOWN_DIGITS],
                run.opened.record.deployment or None,
                how,
            ]
            for run in past
            for figures, how in [_copied(run.report)]
        ),
        right=["slices", "records", "bytes", "seconds"],
        only_csv="figures are",
    )


def _copied(report: Report | None) -> tuple[list[Figure | None], str | None]:
    """Return how many records, bytes and seconds a run copied, and how far that is known; None without a plan."""
    if report is None:
        return [None, None, None], None
    seconds = round(report.seconds, 1)
    found = [Figure(report.records, str(report.records)), in_bytes(report.bytes), Figure(seconds, str(seconds))]
    if not report.uncounted:
        return [*found], "exact"
    if not report.records:
        return [Figure(None, NOT_KNOWN)] * 3, NOT_KNOWN
    return [Figure(one.number, as_known(one.text, report)) for one in found], "at least"


def _print_pauses(found: list[Pause]) -> None:
    for pause in found:
        what = f"topic {pause.topic}" if pause.topic else "the whole flow"
        until = f"until {to_the_second(pause.until_ms)}" if pause.until_ms else "until resumed"
        echo(f"{what} is paused since {to_the_second(pause.since_ms)} {until}, by {pause.who}: {pause.why}")
    if not found:
        echo("nothing is paused")
