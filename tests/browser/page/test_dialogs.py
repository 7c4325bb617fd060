"""Dialogs in a real browser: what was typed stays until it is taken, and what is wrong is said where it stands."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from ferry.features.switch.rules.readiness import Readiness
from ferry.model.check import Check
from ferry.page.cut import A_PAGE
from ferry.reader.watch import FlowWatch
from ferry.reader.watcher import Job
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import TOPICS, filled
from tests.airflow.page.served import served, shown
from tests.airflow.page.test_actions import tables_of, with_back
from tests.airflow.page.values import answered
from tests.chromium import chromium
from tests.pure.decide.values import PLAN, piece

LONG = "x" * 250
OVER = "2001-01-01T00:00"
PAGES = {"backfill": "/backfills", "drill": "/reports", "switchover": "/reports", "groups-sync": "/groups"}
WRONG = {
    "run": ({"topics": LONG}, "topics", "of 249 characters at most", {"topics": "orders"}),
    "dry-run": ({"topics": LONG}, "topics", "of 249 characters at most", {"topics": "orders"}),
    "verify": ({"mode": "compacted", "topics": LONG}, "topics", "of 249 characters at most", {"topics": "orders"}),
    "backfill": (
        {"lane": "backfill-jan", "start": "2026-02-01T00:00", "end": "2026-01-01T00:00", "topics": "orders clicks"},
        "end",
        "exchange them",
        {"end": "2026-03-01T00:00"},
    ),
    "groups-sync": (
        {"dry_run": "true", "groups": "g" * 256},
        "groups",
        "of 255 characters at most",
        {"groups": "billing"},
    ),
    "drill": ({"kind": "partial", "reason": "a rehearsal"}, "topics", "name one", {"groups": "billing"}),
    "switchover": (
        {"reason": "a move", "reverse": "false", "confirm": "primary"},
        "confirm",
        "Clients would go to backup",
        {"confirm": "backup"},
    ),
    "pause": ({"why": "a migration", "until": OVER}, "until", "is in the past", {"until": ""}),
}
"""By verb: what is typed, the field that it is refused for, words of the sentence, and what is then taken."""

TOLD = {"dry-run": ("#answer-body", "orders-3"), "pause": ("#notices", "It is done.")}
"""Where the others say what came of them."""
PLANNED = replace(PLAN, slices=(piece("orders", 3),))


def _field(page: Page, name: str) -> Locator:
    return page.locator(f"#f-{name}")


def _typed(page: Page, values: dict[str, str]) -> None:
    for name, value in values.items():
        field = _field(page, name)
        if field.evaluate("(field) => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def _answered(desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: object, error: str = "") -> None:
    """Let the flow's thread have done at once whatever it is asked."""

    def ask(who: str, what: str, work: Callable[[FlowWatch], Any]) -> Job:
        done = threading.Event()
        done.set()
        found = PLANNED if what == "ferry_dry_run" else answer
        return Job(id="1", who=who, what=what, work=work, done=done, answer=found, error=error)

    monkeypatch.setattr(desk.watcher, "ask", ask)


def test_what_was_typed_stays_until_it_is_taken(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(desk)
    _answered(desk, monkeypatch, "It is done.")
    with served(desk) as address, chromium() as page:
        for verb, (values, name, words, right) in WRONG.items():
            shown(page, address, f"{HERE}{PAGES.get(verb, '/')}")
            page.locator(f"[data-ask={verb}]").first.click()
            _typed(page, values)
            page.locator("#ask-go").click()
            field = _field(page, name)
            expect(field).to_have_attribute("aria-invalid", "true")
            expect(field).to_be_focused()
            # What a screen reader says of the field that the keyboard has come to.
            expect(field).to_have_accessible_description(page.locator("#ask .wrong").inner_text())
            assert words in page.locator("#ask .wrong").inner_text(), verb
            assert {key: _field(page, key).input_value() for key in values} == values, verb
            assert not desk.triggered, verb

            _typed(page, right)
            if name in right:
                expect(page.locator("#ask .wrong")).to_have_count(0)
            page.locator("#ask-go").click()
            expect(page.locator("#ask")).to_be_hidden()
            where, told = TOLD.get(verb, ("#notices", "is queued: manual__1."))
            expect(page.locator(where)).to_contain_text(told)
            desk.triggered.clear()


def test_what_no_field_is_to_blame_for_is_an_alert_in_the_dialog(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        alert = page.locator("#ask [role=alert]")
        page.get_by_role("button", name="Pause flow").click()
        _typed(page, {"why": "a migration"})

        _answered(desk, monkeypatch, None, "cluster backup does not answer")
        page.locator("#ask-go").click()
        expect(alert).to_have_text("cluster backup does not answer")

        desk.refused.add(("ferry__primary__backup", "PUT", None))
        page.locator("#ask-go").click()
        expect(alert).to_contain_text("Airflow does not let you change DAG ferry__primary__backup")

        desk.refused.clear()
        page.route("**/api/**", lambda route: route.abort())
        page.locator("#ask-go").click()
        expect(alert).to_contain_text("Whether the request was carried out is not known")
        assert _field(page, "why").input_value() == "a migration"

        # Who comes back to it finds nothing of before.
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Pause flow").click()
        expect(alert).to_have_count(0)
        assert _field(page, "why").input_value() == ""


@pytest.mark.parametrize(
    ("error", "told"), [("", "Flow primary->backup is paused."), ("cluster backup does not answer", "does not answer")]
)
def test_what_is_under_way_is_sent_once_and_told_to_who_has_left_the_dialog(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: str, told: str
) -> None:
    filled(desk)
    done, asked = threading.Event(), []

    def ask(who: str, what: str, work: Callable[[FlowWatch], Any]) -> Job:
        asked.append(what)
        answer = None if error else told
        job = Job(id="1", who=who, what=what, work=work, done=done, answer=answer, error=error)
        monkeypatch.setattr(desk.watchers, "job", lambda number: job)
        return job

    monkeypatch.setattr(desk.watcher, "ask", ask)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        page.get_by_role("button", name="Pause flow").click()
        _typed(page, {"why": "a migration"})
        _field(page, "why").press("Enter")
        expect(page.get_by_role("status").filter(has_text="The clusters are being asked.")).to_be_visible()
        _field(page, "why").press("Enter")
        page.locator("#ask-go").click(force=True)
        page.locator("#ask").get_by_role("button", name="Close").click()
        done.set()
        expect(page.locator("#notices > .bad" if error else "#notices > :not(.bad)")).to_contain_text(told)
        assert asked == ["ferry_pause"]


def test_names_are_picked_from_what_there_is(desk: Desk) -> None:
    filled(desk)
    desk.watcher.amend(troubles=())
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        page.get_by_role("button", name="Run now").click()
        topics = _field(page, "topics")
        offered = page.get_by_role("group", name="Topics that there are").get_by_role("checkbox")
        expect(offered).to_have_count(A_PAGE)
        expect(page.locator("#ask .note")).to_have_text(f"and {len(TOPICS) - A_PAGE} more: type a part of a name")
        topics.press_sequentially("PAY")
        expect(offered).to_have_count(1)
        topics.press("Tab")
        page.keyboard.press("Space")
        expect(topics).to_have_value("payments.card ")
        topics.press("End")
        topics.press_sequentially("or")
        expect(page.get_by_role("checkbox", name="orders")).to_be_visible()
        page.get_by_role("checkbox", name="orders").check()
        expect(topics).to_have_value("payments.card orders ")
        topics.press("End")
        topics.press_sequentially("ord")
        page.get_by_role("checkbox", name="orders").uncheck()
        page.locator("#ask-go").click()
        expect(_field(page, "topics")).to_have_attribute("aria-invalid", "true")
        topics.fill("payments.card")
        page.locator("#ask-go").click()
        expect(page.locator("#notices")).to_contain_text("is queued: manual__1.")
        assert desk.triggered[-1][2] == {"topics": ["payments.card"]}

        shown(page, address, f"{HERE}/reports")
        page.get_by_role("button", name="Start a drill").click()
        _field(page, "kind").select_option("partial")
        page.get_by_role("group", name="Groups that there are").get_by_role("checkbox", name="billing").check()
        expect(_field(page, "groups")).to_have_value("billing\n")


def test_a_group_whose_name_has_blanks_and_commas_is_one_group(desk: Desk) -> None:
    answered(desk, ("OfGroups", ()), (tables_of("billing", "night batch, eu"), (), False))
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/reports")
        page.get_by_role("button", name="Switchover").click()
        groups = _field(page, "leave_groups")
        page.get_by_role("group", name="Groups that there are").get_by_role("checkbox", name="night batch").check()
        expect(groups).to_have_value("night batch, eu\n")
        groups.press("Control+End")
        groups.press_sequentially("billing")
        expect(page.get_by_role("checkbox", name="billing")).to_be_checked()
        _typed(page, {"reason": "a move", "reverse": "false", "confirm": "backup"})
        page.locator("#ask-go").click()
        expect(page.locator("#notices")).to_contain_text("is queued: manual__1.")
        assert desk.triggered[-1][2]["leave_groups"] == ["night batch, eu", "billing"]  # type: ignore[index]


def test_a_drill_has_the_fields_of_its_kind_alone(desk: Desk) -> None:
    """What was typed for another kind stays, and is not sent."""
    filled(desk)
    has = {"tabletop": (False, False), "shadow": (True, False), "partial": (True, True), "full": (False, False)}
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/reports")
        page.get_by_role("button", name="Start a drill").click()
        for kind, visible in has.items():
            _field(page, "kind").select_option(kind)
            for name, is_visible in zip(("topics", "groups"), visible, strict=True):
                expect(_field(page, name)).to_be_visible(visible=is_visible)
            if visible == (True, True):
                _typed(page, {"groups": "billing", "topics": "orders"})
        _typed(page, {"kind": "shadow", "reason": "the audit"})
        page.locator("#ask-go").click()
        expect(page.locator("#notices")).to_contain_text("is queued: manual__1.")
        assert desk.triggered[-1][2] == {"kind": "shadow", "topics": ["orders"], "reason": "the audit"}


def test_a_field_is_checked_where_it_is_typed_and_nothing_is_done(desk: Desk) -> None:
    filled(desk)
    desk.watcher.amend(troubles=())
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/backfills")
        page.get_by_role("button", name="Start a backfill").click()
        _typed(page, {"lane": "live", "start": "2026-02-01T00:00", "end": "2026-01-01T00:00"})
        lane, end, topics = (_field(page, name) for name in ("lane", "end", "topics"))
        expect(lane).to_have_accessible_description(re.compile("backfill-NAME or append-NAME"))
        _typed(page, {"lane": "backfill-jan"})
        expect(end).to_have_accessible_description(re.compile("exchange them"))
        expect(lane).not_to_have_attribute("aria-invalid", "true")
        _typed(page, {"end": "2026-03-01T00:00", "topics": "no-such-topic"})
        expect(topics).to_have_accessible_description(re.compile("had no topic no-such-topic"))
        expect(topics).to_be_focused()
        expect(page.locator("#ask .wrong")).to_have_count(1)
        assert not desk.triggered
        assert not desk.audited


def test_the_form_for_an_offset_offers_topics_and_their_partitions(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/offsets")
        page.locator("#topic").fill("orders")
        expect(page.locator("#topic-offered option")).to_have_count(1)
        expect(page.locator("#partition-offered option")).to_have_count(4)
        assert page.evaluate("document.querySelector('#topic').list.options[0].value") == "orders"


def test_a_partition_that_is_not_there_is_said_at_the_field_of_the_offsets_form(desk: Desk) -> None:
    filled(desk)
    desk.watcher.amend(troubles=())
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/offsets")
        for name, value in (("topic", "orders"), ("offset", "7"), ("partition", "4")):
            page.locator(f"#{name}").fill(value)
        expect(page.locator("#partition")).to_have_accessible_description(re.compile("0 to 3"))
        page.locator("#partition").fill("3")
        expect(page.locator("#partition-wrong")).to_have_count(0)


def test_the_form_for_a_record_offers_topics_and_partitions_of_the_chosen_side(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/topic/orders")
        for _ in range(2):  # a second time nothing of the first is left
            page.get_by_role("button", name="Show a record").click()
            expect(page.locator("#f-partition-offered option")).to_have_count(4)
            _field(page, "topic").fill("pay")
            expect(page.locator("#f-topic-offered option[value='payments.card']")).to_have_count(1)
            expect(page.locator("#f-topic-offered option")).to_have_count(1)
            _field(page, "back").select_option("true")
            _field(page, "topic").fill("primary.orders")
            expect(page.locator("#f-topic-offered option[value='primary.orders']")).to_have_count(1)
            expect(page.locator("#f-partition-offered option")).to_have_count(4)
            page.get_by_role("button", name="Cancel").click()


def test_the_form_for_a_record_has_what_is_typed_next_to_its_button(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/offsets")
        given = {"topic": "primary.orders", "partition": "3", "offset": "7"}
        for name, value in given.items():
            page.locator(f"#{name}").fill(value)
        page.locator("#back").select_option("true")
        page.get_by_role("button", name="Show a record").click()
        for name, value in (given | {"back": "true"}).items():
            expect(_field(page, name)).to_have_value(value)


def test_only_a_failover_has_the_button_that_warns(desk: Desk) -> None:
    filled(desk)
    colour = "(button) => getComputedStyle(button).backgroundColor"
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/reports")
        buttons = {}
        for verb in ("switchover", "failover", "drill"):
            page.locator(f"[data-ask={verb}]").click()
            buttons[verb] = page.locator("#ask-go").evaluate(colour)
            page.get_by_role("button", name="Cancel").click()
        assert buttons["switchover"] == buttons["drill"] != buttons["failover"]
        border = "(button) => getComputedStyle(button).borderTopColor"
        assert page.locator("[data-ask=failover]").evaluate(border) != page.locator("[data-ask=drill]").evaluate(border)


def test_a_time_that_cannot_be_sent_is_said_at_its_field(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        page.get_by_role("button", name="Pause flow").click()
        _typed(page, {"why": "a migration"})
        _field(page, "until").evaluate("(field) => { field.value = '20260-01-01T00:00' }")
        page.locator("#ask-go").click()
        expect(_field(page, "until")).to_have_accessible_description(
            "20260-01-01T00:00 is not a time of the years 1 to 9999."
        )
        assert _field(page, "why").input_value() == "a migration"


def test_each_switch_shows_its_own_checks_above_the_name_that_is_typed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(desk)
    with_back("failback")
    _answered(desk, monkeypatch, Readiness(checks=(Check(name="target", ok=False, message="orders-0 is silent"),)))
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/reports")
        for verb in ("switchover", "failover", "failback"):
            with page.expect_request("**/readiness") as sent:
                page.locator(f"[data-ask={verb}]").click()
            assert sent.value.post_data_json == {"verb": verb, "reverse": True}
            checks = page.locator("#ask .checks")
            expect(checks).to_contain_text("Not ready: 1 of 1 check failed.")
            expect(checks).to_contain_text("orders-0 is silent")
            above, below = checks.bounding_box(), _field(page, "confirm").bounding_box()
            assert above is not None
            assert below is not None
            assert above["y"] + above["height"] <= below["y"]
            with page.expect_request("**/readiness") as sent:
                _field(page, "reverse").select_option("false")
            assert sent.value.post_data_json == {"verb": verb, "reverse": False}
            expect(checks).to_have_count(1)
            page.get_by_role("button", name="Cancel").click()


def test_checks_that_cannot_be_made_are_not_taken_for_passed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(desk)
    _answered(desk, monkeypatch, None, "cluster backup does not answer")
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/reports")
        page.locator("[data-ask=failover]").click()
        expect(page.locator("#ask .checks")).to_have_text("Not checked: cluster backup does not answer")


def test_the_form_for_a_verification_offers_the_partitions_of_the_one_topic_that_is_ticked(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        page.get_by_role("button", name="Verify").click()
        offered = page.locator("#f-partition-offered option")
        for ticks, count in (("audit", 4), ("clicks", 0)):
            page.locator(f".picks input[value={ticks}]").check()
            expect(offered).to_have_count(count)
        page.locator(".picks input[value=audit]").uncheck()
        expect(offered).to_have_count(4)
        assert page.evaluate("document.querySelector('#f-topics').list") is None, "the ticks offer them"
        assert "blanks" not in page.locator("label[for=f-topics]").inner_text()
