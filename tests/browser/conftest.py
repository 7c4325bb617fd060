"""One browser for the tests of each file: its start costs as much as most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chromium import kept_open


@pytest.fixture(scope="module", autouse=True)
def browser_kept_open() -> Iterator[None]:
    """Until the file's tests are done."""
    with kept_open():
        yield
