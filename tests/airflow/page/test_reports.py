"""Reports on the page: a folder that flows share shows each reader only what Airflow lets them see."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from ferry.features.evidence.acts import html
from ferry.features.evidence.rules.chain import page_name, pdf_name, report_name
from ferry.features.evidence.rules.codec import SealedReport, encode_report
from ferry.features.evidence.rules.ways import joined
from ferry.ledger.ledger import UNREAD
from ferry.model import Flow
from ferry.model.evidence import DEAD_LETTERS, EvidenceKind, PassedOver
from ferry.reader.watch import FlowPoll
from ferry_airflow.rest import until
from tests.airflow.page.conftest import HERE, REPORTS, TEXT, Desk
from tests.pure.reports.values import EVIDENCE
from tests.tiers import ANSWER_S

OWN = Flow(source="primary", target="backup")
OTHER = Flow(source="primary", target="archive")


@pytest.fixture
def folder(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that all flows of the file have."""
    made = tmp_path / "reports"
    made.mkdir()
    config = tmp_path / "shared.properties"
    config.write_text(TEXT.replace(REPORTS, f"ferry.report.dir = {made}"))
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    return made


def put(folder: Path, number: int, flow: Flow, kind: EvidenceKind = EvidenceKind.SHADOW, **fields: Any) -> None:
    """A report as it lies there, with a page that says whose it is."""
    evidence = replace(EVIDENCE, flow=flow, kind=kind, **fields)
    sealed = SealedReport(number=number, evidence=evidence, previous=None, signer=None)
    name = report_name(number)
    (folder / name).write_bytes(encode_report(sealed))
    (folder / page_name(name)).write_text(f"<p>secrets of {flow}</p>")


def opened(desk: Desk, path: str) -> tuple[int, str]:
    """A page that needs the folder, once that is read: its status and its text."""
    read: list[tuple[int, str]] = []

    def is_read() -> bool:
        answer = desk.client.get(f"{HERE}{path}", headers={"Accept": "text/html"})
        read.append((answer.status_code, answer.text))
        is_asked = any(answer.is_asked for answer in desk.watcher.kept_answers.values())
        return not is_asked and "data-waiting" not in answer.text

    assert until(lambda: is_read() and read[-1][0] != 503, ANSWER_S), read[-1]
    return read[-1]


def test_the_list_has_who_started_a_drill_and_why(desk: Desk, folder: Path) -> None:
    put(folder, 1, OWN)
    put(folder, 2, OWN, asked_by="ada", reason="the <yearly> audit")
    _, text = opened(desk, "/reports")
    assert text.count("by ada: the &lt;yearly&gt; audit<") == 1
    assert text.count("by ops@bastion: the reason is not recorded<") == 1


def test_the_list_has_what_is_not_on_the_target_next_to_the_loss(desk: Desk, folder: Path) -> None:
    letters = PassedOver(source=EVIDENCE.losses[0].source, start=0, end=9, why=DEAD_LETTERS, records=7)
    for number, passed in enumerate(((letters,), None, ()), 1):
        put(folder, number, OWN, passed_over=passed)
    _, text = opened(desk, "/reports")
    assert text.count("7 records became dead letters") == 1
    assert text.count("or became a dead letter, is not known") == 1


def test_a_report_of_another_flow_in_the_same_folder_is_as_one_that_is_not_there(desk: Desk, folder: Path) -> None:
    put(folder, 1, OWN)
    put(folder, 2, OTHER)
    put(folder, 3, OWN.back)
    assert opened(desk, "/report/1") == (200, "<p>secrets of primary->backup</p>")
    for number in (2, 3, 4):
        status, text = opened(desk, f"/report/{number}")
        assert (status, "secrets" in text) == (404, False)
        assert f"Flow primary-&gt;backup has no report {number} that can be read" in text
    status, text = opened(desk, "/reports")
    assert (status, "2 of other flows there" in text) == (200, True)


def test_a_pdf_is_saved_as_it_is_in_the_folder_and_drawn_where_it_is_not(
    desk: Desk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, flow in ((1, OWN), (2, OTHER), (3, OWN)):
        put(folder, number, flow)
    (folder / pdf_name(report_name(1))).write_text("%PDF of 1")
    assert opened(desk, "/report/1?form=pdf") == (200, "%PDF of 1")
    assert opened(desk, "/report/3?form=pdf")[0] == 200
    saved = {number: desk.client.get(f"{HERE}/report/{number}?form=pdf") for number in (1, 3)}
    for number, answer in saved.items():
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/pdf")
        assert pdf_name(report_name(number)) in answer.headers["content-disposition"]
    text = "".join(one.extract_text() for one in PdfReader(BytesIO(saved[3].content)).pages)
    assert EVIDENCE.summary.split()[0] in text
    assert not (folder / pdf_name(report_name(3))).exists(), "reports are never changed"
    status, said = opened(desk, "/report/2?form=pdf")
    assert (status, "%PDF" in said) == (404, False), "it is of another flow"
    _, listed = opened(desk, "/reports")
    assert [f"/report/{number}?form=pdf" in listed for number in (1, 2, 3)] == [True, False, True]

    # Without the libraries there is only what the folder has.
    monkeypatch.setattr(html, "NEEDED_FOR_PDF", ("no_such_module",))
    desk.watcher.forget()
    assert opened(desk, "/report/1?form=pdf") == (200, "%PDF of 1")
    assert opened(desk, "/report/3?form=pdf")[0] == 404
    _, listed = opened(desk, "/reports")
    assert [f"/report/{number}?form=pdf" in listed for number in (1, 3)] == [True, False]


@pytest.mark.parametrize("damage", ["no JSON", "no flow", "a flow that is none", "gone", "a later version"])
def test_a_report_of_which_nobody_knows_whose_it_is_is_not_shown(desk: Desk, folder: Path, damage: str) -> None:
    put(folder, 1, OWN)
    file = folder / report_name(1)
    body = json.loads(file.read_text())
    match damage:
        case "gone":
            file.unlink()
        case "no JSON":
            file.write_text("{")
        case "no flow":
            file.write_text(json.dumps({key: value for key, value in body.items() if key != "flow"}))
        case "a flow that is none":
            file.write_text(json.dumps({**body, "flow": "everything"}))
        case "a later version":
            file.write_text(json.dumps({**body, "report": 99}))
    status, text = opened(desk, "/report/1")
    assert (status, "secrets" in text) == (404, False)
    status, text = opened(desk, "/reports")
    assert status == 200
    assert "/report/1" not in text
    assert (f"{report_name(1)} is" in text) == (damage != "gone"), "that the chain is broken is said"


@pytest.mark.parametrize("signed", [True, False])
def test_a_chain_that_holds_says_that_nobody_checked_signatures(desk: Desk, folder: Path, signed: bool) -> None:
    """Whoever may write to the folder can write the whole chain anew; only a key tells."""
    put(folder, 1, OWN)
    body = json.loads((folder / report_name(1)).read_text())
    body["signer"] = {"algorithm": "Ed25519", "key_sha256": "0" * 64} if signed else None
    (folder / report_name(1)).write_text(json.dumps(body))
    page = opened(desk, "/reports")[1]
    assert ("its signature is not checked here" in page, "it is not signed" in page) == (signed, not signed)


def test_a_failback_is_shown_to_who_sees_the_flow_that_was_failed_back(desk: Desk, folder: Path) -> None:
    put(folder, 1, OWN.back, EvidenceKind.FAILBACK)
    put(folder, 2, OTHER.back, EvidenceKind.FAILBACK)
    assert opened(desk, "/report/1")[0] == 200
    assert opened(desk, "/report/2")[0] == 404
    assert f"{HERE}/report/1" in opened(desk, "/reports")[1]


def test_reports_are_in_pages_the_newest_first(desk: Desk, folder: Path) -> None:
    for number in range(1, 61):
        put(folder, number, OWN)
    status, first = opened(desk, "/reports")
    assert (status, "1\u201350 of 60 reports" in first) == (200, True)
    assert ("Open report 60" in first, "Open report 11" in first, "Open report 10" in first) == (True, True, False)
    assert 'Open report 1"' in opened(desk, "/reports?page=2")[1]


def test_the_list_has_no_number_of_lost_records_for_both_ways_of_a_full_drill(desk: Desk, folder: Path) -> None:
    put(folder, 1, OWN)
    whole = replace(EVIDENCE, flow=OWN, kind=EvidenceKind.FULL)
    back = replace(EVIDENCE, flow=OWN.back, kind=EvidenceKind.FAILBACK)
    sealed = SealedReport(number=2, evidence=joined(whole, [EVIDENCE, back]), previous=None, signer=None)
    (folder / report_name(2)).write_bytes(encode_report(sealed))
    _, text = opened(desk, "/reports")
    cells = re.findall(r'<td class="num">([^<]*)</td>', text)
    assert cells[::2] == ["per way", str(EVIDENCE.lost_records)], "newest first"
