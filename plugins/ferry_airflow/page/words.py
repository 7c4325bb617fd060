"""The page of what the words mean, one click from each badge."""

from __future__ import annotations

from itertools import groupby

from fastapi import Request
from fastapi.responses import Response

from ferry_airflow.page.glossary import all_words
from ferry_airflow.page.rendering import written
from ferry_airflow.page.threads import page_router

router = page_router()


@router.get("/words")
def words(request: Request) -> Response:
    """Show every word of a flow, a run, a refusal and a gap, and the terms, with an index."""
    sections = [(name, list(rows)) for name, rows in groupby(all_words(), key=lambda one: one.section)]
    return written(request, "words.html", sections=sections)
