"""What the page shows of an active run: what it has committed and, apart from that, what it has sent."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.ledger.progress import LogEnd, RunProgress
from ferry.ledger.report import Report
from ferry.model import OpenedRun
from ferry.reader.documents import RunDigest
from ferry.reader.snapshot import digest_of
from ferry.reader.typed import dump, load
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.details import slowest
from tests.airflow.page.conftest import HERE, Desk, Still
from tests.airflow.page.test_reasons import read
from tests.airflow.page.test_watcher import Asked, poll_of
from tests.airflow.page.values import AT_WORK, SENT, SLICES, answered, progress
from tests.pure.decide.values import run_of

NOTHING = "Nothing sent yet"


def past(now: RunProgress | None, state: PastState = PastState.OPEN) -> PastRun:
    begun_ms = int(datetime.now(UTC).timestamp() * 1000)
    report = Report(plan=AT_WORK, started_ms=begun_ms, receipts=(), refusals=(), unfinished=SLICES, left=(), done=0)
    opened = OpenedRun(record=replace(run_of("r1"), started_ms=begun_ms), generation=3)
    return PastRun(opened=opened, state=state, report=report, progress=now)


def at_work(desk: Desk, story: PastRun, polled: PastRun | None = None) -> None:
    """Have the ledger show this run as the newest one, which Airflow runs; `polled`: what the last poll saw of it."""
    begun = datetime.now(UTC)
    running = DagRunRow(run="r1", state="running", queued=begun, started=begun, ended=None, who="")
    desk.dag = DagState(known=True, runs=(running,))
    answered(desk, ("run", "r1", ""), story)
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest_of(polled or story)])


def test_an_active_run_shows_what_it_has_sent_though_it_has_committed_nothing(desk: Desk) -> None:
    at_work(desk, past(progress(SENT)))
    tile = read(desk.page(f"{HERE}/").partition('id="under-way">')[2].partition("</small>")[0])
    assert "0 records so far" in tile
    assert "about 1 200 records, 1.2 MB, sent and not committed" in tile
    assert "120 kB/s, about 15 s left" in tile
    for path in ("/", f"{HERE}/", f"{HERE}/runs"):
        listed = desk.page(path).partition("<tbody>" if path == "/" else 'id="run:r1"')[2]
        line = read(listed.partition("<small>0 records so far")[2].partition("</small>")[0])
        assert "about 1 200 records, 1.2 MB, sent and not committed; 120 kB/s, about 15 s left" in line, path
    page = desk.page(f"{HERE}/run/r1")
    copied = page.partition("<dt>Copied</dt>")[2].partition("</dd>")[0]
    assert copied.startswith("<dd>0<"), "what is sent is not copied"
    rows = cells(page)
    assert rows == [
        ["all", "0 of 3", "0", "0 B", "about 1\u202f200", "about 1.2 MB", "40 %", "120 kB/s", "about 15 s"],
        ["0", "0 of 1", "0", "0 B", "about 750", "about 750 kB", "75 %", "75 kB/s", "about 3.3 s"],
        ["1", "0 of 1", "0", "0 B", "about 450", "about 450 kB", "45 %", "45 kB/s", "about 12 s"],
        ["2", "0 of 1", "0", "0 B", "0", "0 B", "0 %", "not known", "not known"],
    ]


def test_before_the_first_record_is_sent_there_is_no_figure_and_no_rate(desk: Desk) -> None:
    at_work(desk, past(progress({one.target: LogEnd(0, 0) for one in SLICES})))
    tile = read(desk.page(f"{HERE}/").partition('id="under-way">')[2].partition("</small>")[0])
    assert re.fullmatch(rf"Running for (under )?[\d.]+ s\. {NOTHING}\.", tile), "why is not known"
    for path in ("/", f"{HERE}/", f"{HERE}/runs"):
        page = desk.page(path)
        assert f"<small>{NOTHING}.</small>" in page, path
        assert not re.search(r"records so far|B/s", page), path
    page = desk.page(f"{HERE}/run/r1")
    assert f"{NOTHING}." in page.partition('id="progress-title"')[2]
    assert {row[7] for row in cells(page)} == {"not known"}


def test_what_the_figures_are_called_is_explained_next_to_them(desk: Desk) -> None:
    at_work(desk, past(progress(SENT)))
    card = desk.page(f"{HERE}/run/r1").partition('id="progress-title"')[2].partition("</section>")[0]
    terms = dict(re.findall(r'href="[^"]*/words#term-(\w+)" data-means="[^"]+">(\w+)<', card))
    assert terms == {"slot": "Slot", "slice": "Slices"}
    overview = desk.page(f"{HERE}/")
    assert set(re.findall(r'/words#term-(\w+)"', overview)) >= {"rpo", "switch", "drill"}


def cells(page: str) -> list[list[str]]:
    card = page.partition('id="progress-title"')[2].partition("</section>")[0]
    rows = card.partition("<tbody>")[2].partition("</tbody>")[0].split("</tr>")[:-1]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_what_the_target_does_not_show_is_not_known(desk: Desk) -> None:
    at_work(desk, past(progress({})))
    tile = desk.page(f"{HERE}/").partition('id="under-way">')[2].partition("</small>")[0]
    assert "what is sent and not committed is not known" in tile
    assert "/s" not in tile.partition("so far")[2].replace("</", "")
    whole, *_ = cells(desk.page(f"{HERE}/run/r1"))
    assert whole[4:] == ["not known", "not known", "0 %", "not known", "not known"]
    at_work(desk, past(progress({SLICES[0].target: LogEnd(0, 750)})))
    assert "at least 750 records" in read(desk.page(f"{HERE}/"))


def test_the_last_poll_is_newer_than_the_answer_about_the_run(desk: Desk) -> None:
    now = progress({**SENT, SLICES[2].target: LogEnd(0, 300)})
    at_work(desk, past(progress(SENT)), past(now))
    assert cells(desk.page(f"{HERE}/run/r1"))[0][4] == "about 1\u202f500"


def test_a_run_that_is_not_active_has_no_progress(desk: Desk) -> None:
    at_work(desk, past(progress(SENT)))
    desk.dag = DagState(known=True, runs=(replace(desk.dag.runs[0], state="failed"),))
    for path in ("/", "/runs", "/run/r1"):
        page = desk.page(f"{HERE}{path}")
        assert ("sent and not committed" in read(page), "progress-title" in page) == (False, False), path
    at_work(desk, past(None, PastState.PARTIAL))
    assert not cells(desk.page(f"{HERE}/run/r1"))


def test_of_many_slots_those_are_shown_that_have_come_least_far() -> None:
    whole = progress(SENT)
    assert [slot for slot, _ in slowest(whole, 2)] == [1, 2]
    assert slowest(whole) == whole.slots


def test_progress_comes_unchanged_from_the_reader() -> None:
    digest = digest_of(past(progress(SENT)))
    assert load(RunDigest, dump(RunDigest, digest)) == digest


class Measured(Asked):
    """Connections to a flow whose newest run is open, and how often it was measured."""

    def __init__(self) -> None:
        super().__init__()
        self.measured = 0

    def past(self, opened: OpenedRun) -> PastRun:
        return replace(super().past(opened), state=PastState.OPEN, progress=progress({}))

    def progress(self, opened: OpenedRun) -> RunProgress:
        self.measured += 1
        return progress(SENT)


def test_an_open_run_is_measured_at_each_poll_and_read_only_when_the_ledger_has_moved() -> None:
    watcher, asked = Still(), Measured()
    first = watcher.look(asked, poll_of(1, 10))
    assert [one.progress for one in first] == [progress({})]
    then = watcher.look(asked, poll_of(1, 10))
    assert [one.progress for one in then] == [progress(SENT)]
    assert (asked.names, asked.measured) == (["run-0"], 1)
    watcher.look(asked, poll_of(1, 11))
    assert (asked.names, asked.measured) == (["run-0", "run-0"], 1)
