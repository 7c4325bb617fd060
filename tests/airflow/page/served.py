"""The page over HTTP, for a browser."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import Page, expect

from ferry.ports import LOOPBACK
from tests.airflow.page.conftest import Desk
from tests.airflow.page.everything import status_of
from tests.tiers import ANSWER_S


@contextmanager
def served(desk: Desk) -> Iterator[str]:
    """Its address for as long as the block lasts. The socket listens before the server runs: no request is refused."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(desk.app, log_level="warning"))
        thread = threading.Thread(target=server.run, args=([listening],), name="page", daemon=True)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(ANSWER_S)


def shown(page: Page, address: str, path: str) -> None:
    """Open a page, and wait until its scripts have done and its charts are there. An error page is none."""
    answer = page.goto(f"{address}{path}")
    assert answer is not None
    assert answer.status == status_of(path), f"{path}: {page.locator('main').inner_text()}"
    for figure in page.locator("figure[data-chart]").all():
        expect(figure.locator(".xtick text, .plot .empty").first).to_be_visible()
