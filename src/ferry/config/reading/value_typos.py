"""Values that Java accepts and no user means: with a comment after them, a lone backslash, quotes, two names in one."""

from __future__ import annotations

import re

from ferry.config.keys import values
from ferry.config.keys.catalogue import may_be_shown
from ferry.config.reading.findings import Findings
from ferry.config.reading.typos import COMMENT_BEHIND, QUOTES, has_comment, shown, without_comment
from ferry.config.text.properties import Property, is_continued, parse_all, written_raw
from ferry.config.text.secrets import has_reference, is_secret
from ferry.messages.catalogue import sentence

_TOPIC_LISTS = ("topics", "topics.exclude", "ferry.merge.topics")
_NAME_LISTS = (*_TOPIC_LISTS, "groups", "groups.exclude")
_WITHOUT_EMPTY_ITEMS = ("clusters", "topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude")
"""Lists in which Kafka 4.3 refuses an item without text (`ConfigDef.ValidList`)."""
_EMPTY_ITEM = re.compile(r",\s*,|^\s*,|,\s*$")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_MEANT = frozenset("\\:=#! \t\f\"'")
"""Characters that users escape with one backslash because the format, or JAAS, requires it."""
_QUOTED = re.compile(rf"[{QUOTES}].*|[^\[]*[{QUOTES}]")
_CONTROL = {"t": "a tab", "n": "a line feed", "r": "a carriage return", "f": "a form feed"}
_OF_SEVERAL_LINES = (
    "sasl.jaas.config",
    "ssl.truststore.certificates",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
)


def look_at_value(entry: Property, name: str, findings: Findings, *, torn: bool = False) -> None:
    """Warn about the value of `entry`, whose key is `name` without alias or flow. Secrets are not shown.

    `torn`: the value was torn from the next line, so that its end is reported already.
    """
    _look_for_backslash(entry, findings)
    if not torn:
        _look_for_comment(entry, findings)
    if name == "ferry.start":
        _look_for_seconds(entry, findings)
    if name in _WITHOUT_EMPTY_ITEMS and not torn:
        _look_for_empty_items(entry, findings)
    if name in _NAME_LISTS and not has_reference(entry.value):
        _look_for_quotes(entry, findings)
        if name in _TOPIC_LISTS:
            _look_for_blanks(entry, findings)


def _look_for_backslash(entry: Property, findings: Findings) -> None:
    r"""Warn about a lone backslash: `\d` is read as d, and `C:\temp` has a tab in it."""
    comment = COMMENT_BEHIND.search(entry.raw)
    text = entry.raw[: comment.start()] if comment is not None else entry.raw
    may_hold_lines = entry.key.endswith(_OF_SEVERAL_LINES)

    def is_lone(escaped: str) -> bool:
        return escaped not in _MEANT and len(escaped) == 1 and not (may_hold_lines and escaped in _CONTROL)

    lone = next((one for one in _ESCAPE.findall(text) if is_lone(one)), None)
    if lone is None:
        return
    if not may_be_shown(entry.key):
        findings.warn(
            entry,
            entry.key,
            sentence("line.backslash.alone"),
        )
        return
    doubled = _ESCAPE.sub(lambda found: f"\\{found.group()}" if is_lone(found.group(1)) else found.group(), text)
    correction = (written_raw(entry.key, doubled + entry.raw[len(text) :]),)
    findings.warn(
        entry,
        entry.key,
        sentence("line.backslash", value=entry.value, lone=lone, read=_CONTROL.get(lone, lone), line=shown(correction)),
        correction=correction,
    )


def _look_for_comment(entry: Property, findings: Findings) -> None:
    if not has_comment(entry):
        return
    remedy = "put the comment on a line of its own"
    if may_be_shown(entry.key):
        correction = without_comment(entry)
        how = f": {shown(correction)}" if correction else " before the entry, by hand"
        message = sentence("line.comment.shown", value=entry.value, remedy=remedy, how=how)
        findings.warn(entry, entry.key, message, correction=correction)
    elif is_secret(entry.key) and not _is_whole_jaas(entry):
        # Only its writer knows whether it is a comment: a password may have a blank and a # in it.
        findings.warn(entry, entry.key, sentence("line.comment", remedy=remedy))


def _is_whole_jaas(entry: Property) -> bool:
    return entry.key.endswith("jaas.config") and entry.value.rstrip().endswith(";")


def _look_for_seconds(entry: Property, findings: Findings) -> None:
    """Warn about epoch seconds, which are read as milliseconds: some day of January or February 1970."""
    text = entry.value.strip()
    if re.fullmatch(r"[1-9][0-9]{8,9}", text):
        correction = (written_raw(entry.key, f"{text}000"),)
        message = sentence("line.seconds", value=text, line=shown(correction))
        findings.warn(entry, entry.key, message, correction=correction)


def _look_for_quotes(entry: Property, findings: Findings) -> None:
    if not any(_QUOTED.fullmatch(item) for item in _items(entry)):
        return
    correction = (written_raw(entry.key, re.sub(rf"\\?[{QUOTES}]", "", entry.raw)),)
    findings.warn(
        entry,
        entry.key,
        sentence("line.quotes", value=entry.value, line=shown(correction)),
        correction=correction,
    )


def _look_for_empty_items(entry: Property, findings: Findings) -> None:
    if has_comment(entry) or not _EMPTY_ITEM.search(entry.value):
        return
    raw = re.sub(r"\s*,[\s,]*,\s*", ", ", entry.raw.strip().strip(",").strip())
    line = written_raw(entry.key, raw)
    # A blank that is escaped stays where it is.
    is_whole = raw and not is_continued(raw) and not any(_EMPTY_ITEM.search(one.value) for one in parse_all(line)[0])
    correction = (line,) if is_whole else None
    remedy = f"; write {shown(correction)}" if correction else "; remove the comma"
    findings.warn(
        entry,
        entry.key,
        sentence("line.comma", remedy=remedy),
        correction=correction,
    )


def _look_for_blanks(entry: Property, findings: Findings) -> None:
    item = next((item for item in _items(entry) if re.fullmatch(r"[^\[]*\s.*", item)), None)
    if item is not None:
        message = sentence("line.blank-in-name", item=item)
        findings.warn(entry, entry.key, message)


def _items(entry: Property) -> tuple[str, ...]:
    """Return the items of a list, without a comment after it, which is reported separately."""
    comment = COMMENT_BEHIND.search(entry.value)
    return values.items(entry.value if comment is None else entry.value[: comment.start()])
