"""A real browser, Debian's Chromium without a window, and Airflow's pages in the words of who uses them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from ferry_airflow.home import PASSWORD, USER, LocalHome

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}
PATIENCE_SECONDS = 30.0
MENU = "//*[normalize-space()='Admin']"
FIELD = "ancestor::*[@data-scope='field' and @data-part='root'][1]"

T = TypeVar("T")


def command(name: str) -> str:
    """The path of a command. Its absence fails the test, and says how to get it."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is missing: install the Debian package {PACKAGES[name]}, or run `make prerequisites`")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """One window; everything waits until it is there, as a reader would."""

    driver: webdriver.Chrome

    def open(self, home: LocalHome, path: str) -> None:
        """Open a page of Airflow; signs in where it is asked to."""
        self.driver.get(f"{home.url}{path}")
        found = self.one(By.XPATH, f"//input[@name='username'] | {MENU}")
        if found.tag_name == "input":
            found.send_keys(USER)
            self.one(By.NAME, "password").send_keys(PASSWORD, Keys.ENTER)
            self.one(By.XPATH, MENU)

    def press(self, name: str, within: str = "") -> None:
        """Press the button of that name or label, in the part of the page that an XPath names."""
        button = self.one(By.XPATH, f"{within}//button[normalize-space()='{name}' or @aria-label='{name}']")
        self._until(button.is_enabled, f"button {name} can be pressed")
        button.click()

    def write(self, label: str, text: str) -> None:
        """Type into the field with that label."""
        self._input(label).send_keys(text)

    def choose(self, label: str, option: str) -> None:
        """Choose in a list as with the keyboard: by typing what stands in it."""
        self._input(label).send_keys(option, Keys.ENTER)
        self.one(By.XPATH, f"{self.field(label)}//*[normalize-space()='{option}']")

    def labels(self) -> list[str]:
        """The labels of the fields to be seen, without the mark of those that must be filled."""
        found = self.driver.find_elements(By.XPATH, "//label[@data-scope='field']")
        return [label.text.rstrip("*").strip() for label in found if label.is_displayed()]

    def kind(self, label: str) -> str | None:
        """What kind of input a field is: `text`, `password`."""
        return self.driver.find_element(By.XPATH, f"{self.field(label)}//input").get_attribute("type")

    def one(self, by: str, what: str) -> WebElement:
        """The first visible element, once there is one."""

        def visible() -> WebElement | None:
            return next((each for each in self.driver.find_elements(by, what) if each.is_displayed()), None)

        return self._until(visible, what)

    def gone(self, by: str, what: str) -> None:
        """Wait until no such element is left."""
        self._until(lambda: not self.driver.find_elements(by, what), f"end of {what}")

    def field(self, label: str) -> str:
        """The XPath of the field with that label."""
        return f"//label[@data-scope='field' and starts-with(normalize-space(), '{label}')]/{FIELD}"

    def _input(self, label: str) -> WebElement:
        return self.one(By.XPATH, f"{self.field(label)}//input")

    def _until(self, condition: Callable[[], T | None], what: str) -> T:
        waiting = WebDriverWait(self.driver, PATIENCE_SECONDS, 0.1, [StaleElementReferenceException])
        try:
            found = waiting.until(lambda _: condition())
        except TimeoutException:
            where, text = self.driver.current_url, self.driver.find_element(By.TAG_NAME, "body").text
            pytest.fail(f"{what}: not within {PATIENCE_SECONDS:.0f} s at {where}:\n{text}")
        assert found is not None
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with its profile and its log in `folder`, which ends with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = command("chromium")
    profile = f"--user-data-dir={folder / 'profile'}"
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--window-size=1400,1800", "--lang=en", profile):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's does not start as root
    service = Service(command("chromedriver"), log_output=str(folder / "driver.log"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(driver=driver)
    finally:
        driver.quit()
