"""What the plugin gives to Airflow: an application that is built at its first request.

Every process of Airflow imports the plugin, and only the API server shows pages.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf

PREFIX = "/ferry"
"""Where the application is mounted."""

Asgi = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class Page:
    """The application of the page, as an ASGI application."""

    def __init__(self) -> None:
        self._app: Asgi | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request; the first one builds the application."""
        app = self._app
        if app is None:
            app = await asyncio.to_thread(self._built)
        await app(scope, receive, send)

    def _built(self) -> Asgi:
        with self._lock:
            if self._app is None:
                from ferry_airflow.page.app import page_app  # noqa: PLC0415 - only where pages are shown

                self._app = page_app()
            return self._app


def root() -> str:
    """Return the path under which a browser finds the application."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/") + PREFIX


def views() -> list[dict[str, Any]]:
    """Return the page's places in the interface: an entry of the navigation, and a tab of each DAG and of each run."""
    here = root()
    icons = {"icon": f"{here}/icon/light.svg", "icon_dark_mode": f"{here}/icon/dark.svg"}
    return [
        {
            "name": "Ferry",
            "href": f"{here}/",
            "destination": "nav",
            "url_route": "ferry",
            "nav_top_level": True,
            **icons,
        },
        {"name": "Ferry", "href": f"{here}/dag/{{DAG_ID}}", "destination": "dag", "url_route": "ferry_flow", **icons},
        {
            "name": "Ferry",
            "href": f"{here}/dag/{{DAG_ID}}/run/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "ferry_run",
            **icons,
        },
    ]
