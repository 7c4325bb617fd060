"""What nobody foresaw: a page that says so and where its trace is, and nothing of what the error itself says."""

from __future__ import annotations

import re

import pytest

from ferry_airflow.page import pages, rendering, starting
from tests.airflow.page.conftest import HERE, Desk

HTML = {"Accept": "text/html"}
SECRET = "s3cr3t"


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError(SECRET)


def mark_of(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """What is shown names the place in the log where the trace is."""
    (mark,) = re.findall(r"at mark ([0-9a-f]{8})", text)
    (told,) = [
        record for record in caplog.records if record.levelname == "ERROR" and record.getMessage().endswith(mark)
    ]
    assert told.exc_info
    assert SECRET not in text


def test_a_page_that_fails_is_a_page_that_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pages, "drawn", lambda flows: None)  # the template asks it for more
    answer = desk.client.get("/", headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "The page has failed here" in answer.text
    assert "Unexpected UndefinedError" in answer.text
    assert 'href="/"' in answer.text, "there is a way on"
    mark_of(answer.text, caplog)
    assert desk.client.get(f"{HERE}/", headers=HTML).status_code == 200, "the others go on"


def test_a_request_that_fails_gets_its_sentence_as_json(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(starting, "trigger", broken)
    status, answer = desk.act("run", {})
    assert status == 500
    assert "Unexpected ZeroDivisionError" in str(answer["detail"])
    assert "Whether the request was carried out is not known" in str(answer["detail"])
    mark_of(str(answer["detail"]), caplog)


def test_a_page_of_errors_that_fails_itself_is_plain_text(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rendering, "written", broken)
    answer = desk.client.get("/flow/no/such/", headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "text/plain; charset=utf-8")
    mark_of(answer.text, caplog)
