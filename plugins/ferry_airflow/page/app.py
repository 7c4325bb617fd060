"""The application: every route is behind Airflow's sign-in, and no answer is kept by anybody in between."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from ferry_airflow.page import actions, beside, deep, files, lanes, pages, reports, series, words
from ferry_airflow.page.flows import Flows
from ferry_airflow.page.office import Office
from ferry_airflow.page.paper import error_page, unforeseen_page
from ferry_airflow.page.watcher import Watchers

# Plotly writes its own rules into the document; Airflow shows the page inside its own.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)


def page_app() -> FastAPI:
    """A new application, to be mounted by Airflow."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # the page itself says what cannot be reached
    app = FastAPI(title="Ferry", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])
    app.state.office = Office(flows=Flows(), watchers=Watchers())
    for part in (pages, words, deep, lanes, reports, beside, series, actions, files):
        app.include_router(part.router)
    app.add_exception_handler(StarletteHTTPException, error_page)
    app.add_exception_handler(RequestValidationError, error_page)
    app.middleware("http")(_guarded)
    return app


async def _guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    try:
        response = await call_next(request)
    except Exception as error:
        response = unforeseen_page(request, error)
    headers = response.headers
    headers.setdefault("Content-Security-Policy", POLICY)
    headers.setdefault("Cache-Control", "no-store")
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "same-origin"
    return response
