"""Airflow's own pages in the words of who uses them, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from ferry_airflow.home import USER, LocalHome
from tests.chromium import chromium

MENU = "//*[normalize-space()='Admin']"
FIELD = "ancestor::*[@data-scope='field' and @data-part='root'][1]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """One window; everything waits until it is there, as a reader would."""

    page: Page

    def open(self, home: LocalHome, path: str) -> None:
        """Open a page of Airflow; signs in where it is asked to."""
        self.page.goto(f"{home.url}{path}")
        found = self.one(f"//input[@name='username'] | {MENU}")
        if found.evaluate("element => element.tagName") == "INPUT":
            found.fill(USER)
            self.page.locator("input[name=password]").fill(home.password)
            self.page.locator("input[name=password]").press("Enter")
            self.one(MENU)

    def press(self, name: str, within: str = "") -> None:
        """Press the button of that name or label, in the part of the page that an XPath names."""
        self.one(f"{within}//button[normalize-space()='{name}' or @aria-label='{name}']").click()

    def write(self, label: str, text: str) -> None:
        """Type into the field with that label, behind what stands there."""
        written = self._input(label)
        written.press("End")
        written.press_sequentially(text)

    def choose(self, label: str, option: str) -> None:
        """Choose in a list as with the keyboard: by typing what stands in it."""
        self._input(label).press_sequentially(option)
        self._input(label).press("Enter")
        self.one(f"{self.field(label)}//*[normalize-space()='{option}']")

    def labels(self) -> list[str]:
        """The labels of the fields to be seen, without the mark of those that must be filled."""
        found = self.page.locator("label[data-scope=field]").filter(visible=True)
        return [text.strip().rstrip("*").strip() for text in found.all_inner_texts()]

    def kind(self, label: str) -> str | None:
        """What kind of input a field is: `text`, `password`."""
        return self.page.locator(f"xpath={self.field(label)}//input").first.get_attribute("type")

    def one(self, what: str) -> Locator:
        """The first visible element of an XPath, once there is one."""
        found = self.page.locator(f"xpath={what}").filter(visible=True).first
        expect(found).to_be_visible()
        return found

    def gone(self, what: str) -> None:
        """Wait until no such element is left."""
        expect(self.page.locator(f"xpath={what}")).to_have_count(0)

    def field(self, label: str) -> str:
        """The XPath of the field with that label."""
        return f"//label[@data-scope='field' and starts-with(normalize-space(), '{label}')]/{FIELD}"

    def _input(self, label: str) -> Locator:
        return self.one(f"{self.field(label)}//input")


@contextmanager
def browser() -> Iterator[Browser]:
    """A window of a browser that ends with the block."""
    with chromium(viewport={"width": 1400, "height": 1800}, locale="en-US") as page:
        yield Browser(page=page)
