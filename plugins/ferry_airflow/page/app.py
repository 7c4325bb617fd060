"""The application: every route needs Airflow's sign-in, and no proxy or browser may store an answer."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import AIRFLOW_HOME
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from ferry.reader.client import Reader
from ferry.reader.flows import CONFIG_VARIABLE
from ferry.reader.process import ReaderProcess
from ferry_airflow.cluster_settings import settings_of
from ferry_airflow.deployment import airflow_deployment
from ferry_airflow.page import actions, details, files, other_dags, pages, series, words
from ferry_airflow.page.features import feature_pages
from ferry_airflow.page.flows import page_flows
from ferry_airflow.page.page_state import PageState
from ferry_airflow.page.rendering import error_page, unforeseen_page
from ferry_airflow.page.tabs import tabs_of

# Plotly writes its own rules into the document; Airflow shows the page inside its own.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)


def page_app() -> FastAPI:
    """Return a new application, to be mounted by Airflow."""
    app = FastAPI(title="Ferry", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])
    parts = (pages, words, details, *feature_pages(), other_dags, series, actions, files)
    app.state.office = PageState(flows=page_flows(), reader=_reader(), tabs=tabs_of(parts))
    for part in parts:
        app.include_router(part.router)
    app.add_exception_handler(StarletteHTTPException, error_page)
    app.add_exception_handler(RequestValidationError, error_page)
    app.middleware("http")(_guarded)
    return app


def _reader() -> Reader:
    """Return the client of this host's reader, which the first question starts."""
    process = ReaderProcess.of(Path(AIRFLOW_HOME) / "ferry", os.environ)
    config = Path(os.environ.get(CONFIG_VARIABLE, "")).absolute()
    return Reader(process.exchange, config=str(config), deployment=airflow_deployment(), lookup=settings_of)


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
