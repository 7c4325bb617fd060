"""Files that the page needs: its own, and the chart library from its installed package."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from fastapi import HTTPException, Request, status
from fastapi.responses import Response

from ferry_airflow.page.rendering import FOLDER
from ferry_airflow.page.threads import page_router

router = page_router()

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOR_A_DAY = {"Cache-Control": "private, max-age=86400"}
CHARTS = "package_data/plotly.min.js"


@cache
def _own() -> dict[str, Path]:
    """Return the existing files, by name: no other file can be requested."""
    return {path.name: path for path in (FOLDER / "static").iterdir() if path.suffix in TYPES}


@router.get("/static/{name}")
def own_file(name: str) -> Response:
    """Return a file of the page."""
    path = _own().get(name)
    if path is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no file {name}")
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers={"Cache-Control": "no-cache"})


@router.get("/icon/{name}")
def icon(name: str) -> Response:
    """Return the icon for Airflow's navigation."""
    return own_file(f"icon-{name}")


def charts_version() -> str:
    """Return the version of the chart library; empty when it is not installed."""
    try:
        return distribution("plotly").version
    except PackageNotFoundError:
        return ""


@cache
def _charts() -> tuple[bytes, bytes]:
    """Return the library as it is, and compressed once for all requests."""
    content = Path(str(distribution("plotly").locate_file(f"plotly/{CHARTS}"))).read_bytes()
    return content, gzip.compress(content, 6)


@router.get("/charts/{version}.js")
def charts(version: str, request: Request) -> Response:
    """Return the chart library; its version in the address lets browsers keep it."""
    if version != charts_version():
        raise HTTPException(status.HTTP_404_NOT_FOUND, "The chart library is not installed: pip install plotly")
    plain, packed = _charts()
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=TYPES[".js"], headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, media_type=TYPES[".js"], headers=headers)
