"""A real browser: Debian's Chromium without a window, driven by Playwright, which brings none of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

PATIENCE_MS = 60_000


@contextmanager
def chromium(**context: Any) -> Iterator[Page]:
    """A window; `context` is for Playwright's `new_context`: color_scheme, viewport."""
    program = shutil.which("chromium")
    if program is None:
        pytest.fail("chromium is missing: install the Debian package chromium, or run `make prerequisites`")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's does not start as root
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        page = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **context}).new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        try:
            yield page
        finally:
            browser.close()
