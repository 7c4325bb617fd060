"""The page's own threads: what waits for the page's reader takes no thread that Airflow's other requests need.

FastAPI calls functions that are not coroutines in threads that all routes of the API server share (anyio's default
limiter, 40). The page's functions are called in threads of another limiter.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter
from fastapi.routing import APIRoute

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
"""How many requests of the page run at the same time in one process of the API server; more wait without a thread."""
_limiter = CapacityLimiter(THREADS)


def in_page_threads(call: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Return a coroutine function that calls a function in a thread of the page."""

    @functools.wraps(call)
    async def called(*args: P.args, **kwargs: P.kwargs) -> T:
        return await to_thread.run_sync(functools.partial(call, *args, **kwargs), limiter=_limiter)

    return called


class PageRoute(APIRoute):
    """A route whose function is called in a thread of the page, unless it is a coroutine function."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else in_page_threads(endpoint), **options)


def page_router(**options: Any) -> APIRouter:
    """Return a router of such routes; its options are those of APIRouter."""
    return APIRouter(route_class=PageRoute, **options)
