"""The JSON answers of `ferry reports`: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from ferry.codec.form import F, Form
from ferry.codec.kinds import filled
from ferry.features.evidence.acts.folder import Checked

CHECKED = Form(
    Checked,
    F("number", "kept.number"),
    F("name", "kept.name"),
    F("sha256", "kept.sha256"),
    F("signed", says="whether the signatures of JSON and page are valid; null: they were not checked"),
    F("problem", kind=filled("")),
)
"""One report of `ferry reports verify`."""
