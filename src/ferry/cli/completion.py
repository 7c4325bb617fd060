"""What a shell offers for a word that is being typed: flows, topics and lanes of the file, and keys.

It must be quick and print nothing of its own. The file is only read, not checked, and no cluster is asked. An error
offers nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import typer

LIVE = "live"
_FLOW = re.compile(r"([\w.-]+->[\w.-]+)\.enabled", re.ASCII)
_NAME = re.compile(r"[\w.-]+", re.ASCII)
"""A topic's name; an item with other characters is a pattern."""


class _Word(str):
    """A word as the shell is to write it; Typer would compare it with the word as the shell reads it."""

    __slots__ = ()

    def startswith(self, *_: object) -> bool:
        """Return True: the word was chosen by its beginning already."""
        return True


def offered_flows(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the flows that the file enables, quoted where the shell would take their `>` for a redirection."""
    return [_word(flow) for flow in _flows(_entries(ctx)) if flow.startswith(incomplete)]


def offered_topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the topics that the file names for the flow; only the cluster has those that a pattern matches."""
    entries = _entries(ctx)
    flows, words = list(_flows(entries)), _line()
    flows = [flow for flow in flows if flow in words] or flows
    lists = [entries.get(f"{flow}.topics", entries.get("topics", "")) for flow in flows]
    names = {name.strip() for text in lists for name in text.split(",")}
    return sorted(name for name in names if _NAME.fullmatch(name) and name.startswith(incomplete))


def offered_lanes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the flows' own lanes; those of backfills and drills are in the ledger."""
    entries = _entries(ctx)
    own = [entries.get(f"{flow}.ferry.lane", entries.get("ferry.lane", LIVE)) for flow in _flows(entries)]
    return sorted({lane for lane in own if lane.startswith(incomplete)})


def offered_keys(incomplete: str) -> list[str]:
    """Return Ferry's keys and MirrorMaker 2's, after the alias, flow and client that are typed already."""
    from ferry.config.explain import every_key  # noqa: PLC0415 - only a shell asks for it

    before, name = _split_key(incomplete)
    return sorted({_word(before + one.name) for one in every_key() if one.name.startswith(name)})


def _split_key(text: str) -> tuple[str, str]:
    """Return `primary->backup.` and the rest, or nothing and all of it."""
    found = re.match(r"([\w-]+->[\w-]+\.)(.*)", text, re.ASCII)
    return (found.group(1), found.group(2)) if found else ("", text)


def _entries(ctx: typer.Context) -> Mapping[str, str]:
    """Return the file's entries; none if there is no file, or it cannot be read."""
    from ferry.config.settings import read_text  # noqa: PLC0415 - only a shell asks for it
    from ferry.config.text.properties import parse_all  # noqa: PLC0415 - as above

    words = _line()
    behind = [after for word, after in itertools.pairwise(words) if word == "--config"]
    named = next(iter(behind), None) or ctx.find_root().params.get("config")
    try:
        path = Path(str(named)).expanduser()
        if named is None or not path.is_file():  # reading a pipe would wait
            return {}
        return {entry.key: entry.value.strip() for entry in parse_all(read_text(path))[0]}
    except Exception:  # offering nothing is better than a traceback in the user's line
        return {}


def _flows(entries: Mapping[str, str]) -> Iterator[str]:
    for key, value in entries.items():
        found = _FLOW.fullmatch(key)
        if found and value.lower() != "false":
            yield found.group(1)


def _line() -> list[str]:
    """Return the words of the line: a word before an option without its value is in no parameter yet."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    found = shlex.shlex(line, posix=True)
    found.whitespace_split, found.commenters = True, ""
    words: list[str] = []
    with contextlib.suppress(ValueError):  # an open quote, of the word that is being typed
        words.extend(found)
    return words


def _word(text: str) -> str:
    """Return the text as the line can hold it: zsh and fish quote it themselves, bash does not."""
    if os.environ.get("_FERRY_COMPLETE") != "complete_bash":
        return text
    words = os.environ.get("COMP_WORDS", "").split("\n")
    at = os.environ.get("COMP_CWORD", "")
    typed = words[int(at)] if at.isdecimal() and int(at) < len(words) else ""
    return _Word(text if typed[:1] in ("'", '"') else shlex.quote(text))
