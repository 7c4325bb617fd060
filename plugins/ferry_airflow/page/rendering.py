"""Templates, and the page for errors."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Undefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException as StarletteHTTPException

import ferry
from ferry.clock import wall_ms
from ferry.words import readable
from ferry_airflow.drill_fields import FIELDS
from ferry_airflow.page import filters
from ferry_airflow.page.glossary import anchor_of, meaning_of
from ferry_airflow.page.time_range import RANGES

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
API = "/api/"
_NOT_SIGNED_IN = 401
_NOT_FOUND = 404
_NO_DETAIL = "Not Found"
"""What the framework says of an address without a route."""
_OF_FLOW = re.compile(r"/flow/([^/]+)/([^/]+)/(report(?=/))?")
_UNPROCESSABLE = 422
_UNFORESEEN = 500
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)")
"""A time as `filters.moment` writes it."""
_PIECE = re.compile(r"[^._:/]*[._:/]+|[^._:/]+")
_DARK = re.compile(r"""\[data-theme="dark"\] \{(.*?)\}""", re.DOTALL)
_TITLES = {
    401: "You are not signed in",
    403: "Not allowed",
    404: "Not found",
    422: "That address is not right",
    500: "The page has failed here",
    503: "One moment",
}


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "number": filters.number,
        "counted": filters.counted,
        "readable": sentence,
        "anchor": anchor_of,
        "meaning": meaning_of,
        "size": filters.size,
        "duration": filters.duration,
        "iso": filters.iso,
        "moment": filters.moment,
        "ms": filters.ms_of,
        "short_run": filters.short_run,
        "run_words": run_words,
        "breakable": breakable,
        "part": lambda text: quote(str(text), safe=""),
    }
    found.tests["none"] = _is_none
    found.globals["drill_fields"] = {kind.value: sorted(names) for kind, names in FIELDS.items()}
    return found


def sentence(text: str, run: str = "", link: str = "") -> Markup:
    """Return a sentence as HTML: counts are easy to read, and a run has its time and kind, with its id on hover.

    The browser writes times in Airflow's zone.

    `run` is the id of a run that has a `link` instead. Commands and names stay as they are, so that they can be copied.
    """
    pieces = filters.runs_in(readable(text), run)
    return Markup("").join(_timed(before) + (link if one and one == run else _named(one)) for before, one in pieces)


def _timed(text: str) -> Markup:
    """Return a text as HTML, its times as elements."""
    parts = enumerate(_MOMENT.split(text))
    return Markup("").join(_time(part) if at % 2 else escape(part) for at, part in parts)


def _time(moment: str) -> Markup:
    day, hour, _ = moment.split()
    try:
        datetime.fromisoformat(f"{day}T{hour}")
    except ValueError:  # a text may have an impossible time of that form
        return escape(moment)
    return Markup('<time datetime="{}T{}Z">{}</time>').format(day, hour, moment)


def _named(run: str) -> Markup:
    """Return a run by the time and kind of which its id was made, as in lists; an id of another form is unchanged."""
    ms = filters.made_ms(run)
    if ms is None:
        return escape(run)
    return Markup('<span title="{}">{}</span>').format(run, run_words(run, ms))


def run_words(run: str, ms: int | None) -> Markup:
    """Return a run by a time (epoch ms) and its kind as HTML; screen readers also get its id."""
    short = filters.short_run(run)
    time = Markup('<time datetime="{}" data-titled="yes">{}</time>').format(filters.iso(ms), filters.moment(ms))
    hidden = Markup('<span class="visually-hidden">, {}</span>').format(run) if short != run else ""
    return Markup("{} {}{}").format(time, short, hidden)


def breakable(name: object) -> Markup:
    """Return an identifier as HTML that a browser may break after a sign between two words, before it breaks a word.

    It breaks after a hyphen by itself.
    """
    return Markup("<wbr>").join(escape(piece) for piece in _PIECE.findall(str(name)))


def _is_none(value: object) -> bool:
    """Jinja's test `none`, which takes a name that does not exist for something: here it is an error."""
    if isinstance(value, Undefined):
        str(value)
    return value is None


def root_of(request: Request) -> str:
    """Return where the application is mounted, as the browser sees it; without a slash at its end."""
    root: str = request.scope.get("root_path", "")
    return root.rstrip("/")


def airflow_of(request: Request) -> str:
    """Return where Airflow itself is, as the browser sees it; without a slash at its end."""
    return root_of(request).removesuffix("/ferry")


@cache
def alone() -> str:
    """Return the style of a page that loads no files: in the reader's own theme, without a script to find it out."""
    style = (FOLDER / "static" / "ferry.css").read_text()
    return _DARK.sub(lambda found: f"@media (prefers-color-scheme: dark) {{ :root {{{found[1]}}} }}", style)


def fragment(request: Request, name: str, **what: Any) -> str:
    """Return a part of a page."""
    return _environment().get_template(name).render(root=root_of(request), in_range="", **what)


def written(request: Request, name: str, status: int = 200, **what: Any) -> HTMLResponse:
    """Return a page."""
    root = root_of(request)
    airflow = airflow_of(request)
    span = request.query_params.get("range", "")
    in_range = f"?range={span}" if span in RANGES else ""  # what links to other pages of the flow have

    def again(**changed: object) -> str:
        """Return the address of this page with another query."""
        query = {**request.query_params, **{key: str(value) for key, value in changed.items()}}
        return f"?{urlencode({key: value for key, value in query.items() if value})}"

    text = (
        _environment()
        .get_template(name)
        .render(
            root=root,
            airflow=airflow,
            again=again,
            in_range=in_range,
            now_ms=wall_ms(),
            version=ferry.__version__,
            **what,
        )
    )
    return HTMLResponse(text, status_code=status)


WANTED = "wanted"
"""The kind of an error whose context holds, by this name, what a value has to be."""
_WANTED = {
    "int_parsing": "a whole number",
    "bool_parsing": "true or false",
    "missing": "given",
    "datetime_from_date_parsing": "a time such as 2026-11-22T10:15:00Z",
    "string_pattern_mismatch": "a name of letters, digits, dots, underscores and hyphens",
    "string_too_short": "not empty",
    "list_type": "a list",
    "string_type": "a text",
    "json_invalid": "JSON",
    "extra_forbidden": "left out: nothing is known by that name",
}
_LIMITS = {
    "greater_than_equal": ("{ge} or more", "ge"),
    "less_than_equal": ("{le} or less", "le"),
    "string_too_long": ("of {max_length} characters at most", "max_length"),
    "too_long": ("of {max_length} entries at most", "max_length"),
    "literal_error": ("one of {expected}", "expected"),
    WANTED: ("{wanted}", "wanted"),
}


def _sentence(one: Mapping[str, Any]) -> str:
    """Return what is wrong with a part of an address or request: its name, its value, and what it has to be."""
    name = ".".join(str(part) for part in one["loc"][1:]) or "The body"
    kind = str(one["type"])
    words, limit = _LIMITS.get(kind, ("", ""))
    wanted = words.format(**{limit: one.get("ctx", {}).get(limit)}) if words else _WANTED.get(kind)
    if wanted is None:
        return f"{name}: {one['msg']}."
    given = "" if kind in ("missing", "json_invalid") or one["input"] is None else f", not {str(one['input'])[:60]!r}"
    return f"{name} has to be {wanted}{given}."


class WrongField(StarletteHTTPException):
    """422 for one field of a request, or several: their names, and a sentence of what is wrong with each."""

    def __init__(self, field: str, why: str, more: Mapping[str, str] | None = None) -> None:
        self.fields = {field: why, **(more or {})}
        super().__init__(_UNPROCESSABLE, " ".join(self.fields.values()))


def each_field(*checks: Callable[[], None]) -> None:
    """Make all checks, so that each field is judged where it is typed; WrongField with all that they raise of it."""
    wrong: dict[str, str] = {}
    for check in checks:
        try:
            check()
        except WrongField as error:
            wrong = {**error.fields, **wrong}
    for field, why in wrong.items():
        raise WrongField(field, why, wrong)


def _by_field(errors: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is wrong with a request's body by the names of its fields."""
    found: dict[str, str] = {}
    for one in errors:
        if one["loc"][0] == "body" and isinstance(name := (*one["loc"], None)[1], str):
            found[name] = f"{found[name]} {_sentence(one)}" if name in found else _sentence(one)
    return found


async def error_page(request: Request, error: Exception) -> Response:
    """Return an error for the client: a page in a browser, JSON elsewhere, with what is wrong by field."""
    headers = None
    fields: Mapping[str, str] = {}
    if isinstance(error, StarletteHTTPException):
        status, detail, headers = error.status_code, str(error.detail), error.headers
        fields = error.fields if isinstance(error, WrongField) else {}
    elif isinstance(error, RequestValidationError):
        errors = error.errors()
        status, detail = _UNPROCESSABLE, " ".join(_sentence(one) for one in errors)
        fields = _by_field(errors)
    else:
        raise error
    return _answer(request, status, detail, headers, fields)


def unforeseen_page(request: Request, error: Exception) -> Response:
    """Return 500 for an unforeseen error: its kind, and the mark of its trace in the log; its text may be secret."""
    mark = secrets.token_hex(4)
    log.error("%s %r failed, mark %s", request.method, request.url.path, mark, exc_info=error)
    detail = f"Unexpected {type(error).__name__}: the log of Airflow's API server has its trace, at mark {mark}."
    if request.method not in ("GET", "HEAD"):
        detail += " Whether the request was carried out is not known: check before you ask again."
    try:
        return _answer(request, _UNFORESEEN, detail, None)
    except Exception:
        log.exception("the page of mark %s failed, too", mark)
        return PlainTextResponse(detail, _UNFORESEEN)


def _answer(
    request: Request,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None,
    fields: Mapping[str, str] | None = None,
) -> Response:
    if API in request.url.path or "text/html" not in request.headers.get("accept", ""):
        content = {"detail": detail, **({"fields": dict(fields)} if fields else {})}
        return JSONResponse(content, status_code=status, headers=headers)
    title = _TITLES.get(status, "That did not work")
    sign_in = status == _NOT_SIGNED_IN
    style = alone() if sign_in else ""
    flow = _OF_FLOW.match(request.url.path.removeprefix(root_of(request)))
    if status == _NOT_FOUND and detail == _NO_DETAIL:
        detail = "The page has nothing at this address: it may be of an older link."
    page = written(request, "error.html", status, title=title, detail=detail, sign_in=sign_in, style=style, flow=flow)
    page.headers.update(headers or {})
    return page
