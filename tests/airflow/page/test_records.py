"""A record and its copy on the page: who gets them, what is shown of them, and what is not known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

from ferry.features.records.acts.page import PAGE
from ferry.features.records.rules.one_record import BothSides, Lack, OneRecord, Side, StampedBy
from ferry.features.records.rules.page import OfRecord
from ferry.features.records.settings import PAGE_RECORDS
from ferry.ledger.ledger import UNREAD
from ferry.reader.watch import FlowPoll
from ferry.wire.headers import Header
from ferry_airflow.page import access
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.everything import filled
from tests.airflow.page.values import COPY, ORDERS

BODY = {"topic": "orders", "partition": 0, "offset": 7, "style": "json"}
SECRET = "4929-1111"
BUTTON = 'data-ask="record"'
NOT_UTF8: tuple[Header, ...] = ((b"trace", b"\xff\xfe"), (b"null", None))


def record(value: bytes | None, headers: tuple[Header, ...] = NOT_UTF8) -> OneRecord:
    return OneRecord.of(1_790_000_000_000, StampedBy.CREATE, b"<k>", value, headers)


def knows(desk: Desk, source: Side, target: Side, *, transformed: bool = False) -> None:
    """As if the flow's thread had read both sides."""
    asked = OfRecord(place=ORDERS, offset=7)
    key = OfRecord.__name__, PAGE[0].same(asked)
    desk.watcher.has(key, BothSides(source=source, target=target, transformed=transformed))


def both(desk: Desk, one: OneRecord, other: OneRecord, *, transformed: bool = False) -> str:
    """The page's part for two records."""
    source, target = Side(place=ORDERS, offset=7, record=one), Side(place=COPY, offset=8, record=other)
    knows(desk, source, target, transformed=transformed)
    return shown(desk)


def shown(desk: Desk) -> str:
    status, answer = desk.act("record", BODY)
    assert (status, answer["done"], answer["error"]) == (200, True, "")
    return str(answer["html"])


def test_a_record_and_its_copy_are_shown_with_what_differs(desk: Desk) -> None:
    html = both(desk, record(b'{"card":"<b>"}'), record(b'{"card":"x"}'))
    assert "&#34;card&#34;: &#34;&lt;b&gt;&#34;" in html
    assert "&lt;k&gt;" in html
    assert html.count("differs<") == 2, "the value's, on both sides"
    assert html.count("ff fe") == 2
    assert '<li class="differs">' not in html
    assert "differs<" not in both(desk, record(b"1"), record(b"1"))
    assert both(desk, record(b"1"), record(b"1", ((b"trace", b"1"),))).count('<li class="differs">') == 3


PLACES = [
    ({}, None),
    ({"topic": "__consumer_offsets"}, "topic"),
    ({"topic": "a b"}, "topic"),
    ({"partition": 4}, "partition"),
    ({"partition": -1}, "partition"),
    ({"offset": 2**63}, "offset"),
    ({"topic": "of-an-earlier-file", "partition": 4, "back": True}, None),
]


@pytest.mark.parametrize("verb", ["record?check=true", "offsets"])
@pytest.mark.parametrize(("changed", "field"), PLACES)
def test_a_place_is_checked_while_it_is_typed(
    desk: Desk, verb: str, changed: dict[str, object], field: str | None
) -> None:
    filled(desk)
    body = {"topic": "orders", "partition": 3, "offset": 7, **changed}
    status, answer = desk.act(verb, body)
    if field is None:
        assert (status, answer) == (200, {})
        return
    assert status == 422
    assert list(answer["fields"]) == [field]  # type: ignore[call-overload]
    assert desk.audited == []


def test_a_tombstone_is_null_and_an_empty_value_is_empty(desk: Desk) -> None:
    nulls = [both(desk, record(value, ()), record(b"1", ())).count('<p class="dim">null</p>') for value in (None, b"")]
    assert nulls == [1, 0]


def test_what_a_transform_changes_is_no_fault(desk: Desk) -> None:
    bad, masked = (both(desk, record(b"1"), record(b"2"), transformed=one) for one in (False, True))
    assert ("badge bad" in bad, "badge bad" in masked, "badge held" in masked) == (True, False, True)


@pytest.mark.parametrize("lack", Lack)
def test_each_reason_is_said(desk: Desk, lack: Lack) -> None:
    source = Side(place=ORDERS, offset=7, record=record(b"1"), bounds=(3, 12))
    knows(desk, source, Side(place=None, offset=None, lack=lack, detail="by <ada>"))
    html = shown(desk)
    assert f">{lack.value}<" in html
    assert "by &lt;ada&gt;" in html
    assert "partition not known" in html
    assert "from 3 to 12" in html


def test_the_audit_log_has_where_one_looked_and_nothing_of_the_record(desk: Desk) -> None:
    both(desk, record(SECRET.encode()), record(SECRET.encode()))
    ((who, event, dag, run, extra),) = desk.audited
    assert (who, event, dag, run) == ("ada", "ferry_record", "ferry__primary__backup", None)
    assert extra == {
        "flow": "primary->backup",
        "cluster": "primary",
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "lane": "",
    }


def test_without_the_permission_nothing_is_shown_read_or_offered(desk: Desk) -> None:
    both(desk, record(SECRET.encode()), record(b"x"))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1),), troubles={}))
    assert BUTTON in desk.page(f"{HERE}/topic/orders")
    desk.audited.clear()
    desk.refused.add((access.RECORDS, "GET", None))
    status, answer = desk.act("record", BODY)
    assert (status, SECRET in str(answer), desk.audited) == (403, False, [])
    assert BUTTON not in desk.page(f"{HERE}/topic/orders")


@pytest.mark.parametrize("line", [f"{PAGE_RECORDS.name} = false", ""])
def test_records_are_off_unless_the_file_switches_them_on(desk: Desk, line: str) -> None:
    both(desk, record(SECRET.encode()), record(b"x"))
    config = Path(os.environ["FERRY_CONFIG"])
    config.write_text(config.read_text().replace(f"{PAGE_RECORDS.name} = true", line))
    desk.audited.clear()
    status, answer = desk.act("record", BODY)
    assert (status, SECRET in str(answer), desk.audited) == (403, False, [])
    assert f"{PAGE_RECORDS.name} = true" in str(answer["detail"])
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1),), troubles={}))
    assert BUTTON not in desk.page(f"{HERE}/topic/orders")


def test_an_answer_that_does_not_come_is_not_called_none(desk: Desk) -> None:
    status, answer = desk.act("record", BODY)
    assert (status, answer["done"], answer["html"]) == (200, False, "")
    assert answer["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"topic": "__consumer_offsets"}, "topic"),
        ({"topic": "a b"}, "topic"),
        ({"offset": -1}, "offset"),
        ({"partition": 2**31}, "partition"),
        ({"style": "xml"}, "style"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_read(desk: Desk, body: dict[str, object], field: str) -> None:
    status, answer = desk.act("record", {**BODY, **body})
    assert (status, list(answer["fields"]), desk.audited) == (422, [field], [])  # type: ignore[call-overload]


def test_simple_auth_manager_lets_those_see_records_who_may_read_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "get_auth_manager", SimpleAuthManager)
    for role, allowed in (("VIEWER", False), ("USER", False), ("OP", True), ("ADMIN", True), (None, False)):
        assert access.may_see_records(SimpleAuthManagerUser(username="vera", role=role)) is allowed
