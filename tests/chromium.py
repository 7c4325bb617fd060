"""A real browser: Debian's Chromium without a window, driven by Playwright, which brings none of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.commands import installed
from tests.tiers import PATIENCE

PATIENCE_MS = 60_000 * PATIENCE

_kept: list[Browser] = []
"""The browser of the block of `kept_open`."""


@contextmanager
def _launched() -> Iterator[Browser]:
    program = installed("chromium", "chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's does not start as root
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def kept_open() -> Iterator[None]:
    """Windows of the block are of one browser, each with cookies and a cache of its own."""
    with _launched() as browser:
        _kept.append(browser)
        try:
            yield
        finally:
            _kept.remove(browser)


@contextmanager
def chromium(**context: Any) -> Iterator[Page]:
    """A window; `context` is for Playwright's `new_context`: color_scheme, viewport."""
    with nullcontext(_kept[-1]) if _kept else _launched() as browser:
        window = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **context})
        page = window.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        try:
            yield page
        finally:
            window.close()
