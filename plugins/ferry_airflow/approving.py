"""What an approver is asked in Airflow, and whether the answer is one that may be acted on; pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ferry.features.switch.settings import APPROVE_OWN, APPROVERS, Approvers

_MARKS = re.compile(r"([!-/:-@\[-`{-~])")
_ITEM = re.compile(r"(- |\d+\. )?(.*)")


def question(preview: str, asked_by: str, reason: str) -> str:
    """Return the body of a question in Markdown: first what would be done, then the quoted reason of who triggered it.

    Names of topics and groups, and the reason, are texts of others: nothing in them is Markdown.
    """
    items = (_ITEM.fullmatch(line) for line in preview.splitlines())
    shown = [f"{item.group(1) or ''}{_plain(item.group(2))}" for item in items if item is not None]
    said = [f"> {_plain(line)}" for line in reason.strip().splitlines()] or ["> No reason was given."]
    return "\n".join([*shown, "", f"Triggered by {_plain(asked_by)}, with this reason:", "", *said])


def digest_of_params(params: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a run's parameters."""
    text = json.dumps({name: params[name] for name in params}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def trouble_with(user: Mapping[str, Any] | None, asked_by: str, approvers: Approvers) -> str | None:
    """Return why an answer may not be acted on, in a sentence; None when it may.

    `user` is who answered, as Airflow reports it. `asked_by` is the name of the user who triggered the run, empty if it
    is not known.
    """
    if not user:
        return "Airflow does not say who answered"
    names = {str(user.get("id") or ""), str(user.get("name") or "")} - {""}
    who = str(user.get("name") or user.get("id"))
    if approvers.users and not names & set(approvers.users):
        return f"{who} is none of {APPROVERS.name} ({', '.join(approvers.users)})"
    if approvers.own:
        return None
    if not asked_by:
        return (
            f"Airflow does not say who triggered the run, so {who} may be the same person: trigger it as a user of"
            f" Airflow, or set {APPROVE_OWN.name} = true"
        )
    if asked_by in names:
        return (
            f"{who} asked for it, and another person has to approve: let one answer, or set {APPROVE_OWN.name} = true"
        )
    return None


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)
