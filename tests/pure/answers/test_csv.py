"""Each question of the stories that changes nothing is asked for csv, too: flat rows, or a refusal."""

from __future__ import annotations

import contextlib
import csv
import io
from typing import Any

import pytest

from ferry.program import main
from tests.pure.answers.stories import STORIES, answers
from tests.pure.answers.test_answers import commands
from tests.pure.answers.world import Answer, World

QUICK = "archive"
"""The story that `make quick` has."""

READS = {
    "plan", "lag", "flows", "status", "explain", "version", "readiness", "translate", "verify", "groups", "groups diff",
    "ledger", "lanes list", "acls required", "acls diff", "switches list", "switches show", "reports list",
    "reports verify", "config check", "config explain", "config policy", "dev status",
}  # fmt: skip


NUMBERS = {
    "offset", "offsets", "start", "end", "from", "to", "position", "source end", "log size", "lag", "then", "now",
    "records", "bytes", "bytes (about)", "seconds", "lag: records", "partitions not known", "lost", "doubled", "left",
    "slices", "tasks", "topics", "partitions", "windows", "groups", "RPO records", "RTO s", "ways", "markers", "line",
}  # fmt: skip
"""Columns of numbers. `topics` of `ferry flows` and the verb `to` of a switch are texts."""
TEXTS = {"flows": {"topics"}, "switches list": {"to"}}


def is_number(cell: str) -> bool:
    try:
        float(cell or 0)
    except ValueError:
        return False
    return True


def name_of(words: tuple[str, ...]) -> str:
    return max((" ".join(one) for one in commands() if words[: len(one)] == one), key=len, default="")


def csv_of(words: tuple[str, ...]) -> tuple[Any, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*words, "-o", "csv"])
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


class Asker:
    """Asks in place of a world; `refused`: the commands that have no table."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask
        self.refused: set[str] = set()

    def __call__(self, world: World, *words: str) -> Answer:
        name = name_of(words)
        if name not in READS and "--dry-run" not in words:
            answer: Answer = self.ask(world, *words)
            return answer
        code, out, err = csv_of(words)
        answer = self.ask(world, *words)
        if "cannot be csv" in err:
            assert (code, out) == (2, "")
            self.refused.add(name)
        elif "error" in answer.body:
            assert (code, out) == (answer.code, "")
        else:
            assert code == answer.code, (words, err)
            head, *rows = csv.reader(io.StringIO(out))
            assert {len(row) for row in rows} <= {len(head)}, words
            numbers = [at for at, column in enumerate(head) if column in NUMBERS - TEXTS.get(name, set())]
            assert all(is_number(row[at]) for row in rows for at in numbers), (words, out)
        return answer


@pytest.mark.parametrize(
    "story", [pytest.param(story, marks=() if story == QUICK else pytest.mark.slow) for story in STORIES]
)
def test_what_changes_nothing_is_csv_or_refused(story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker(World.ask)
    monkeypatch.setattr(World, "ask", lambda world, *words: asker(world, *words))  # noqa: PLW0108 - a method
    answers(story)
    assert asker.refused & READS <= {"plan", "translate", "ledger", "explain", "config explain"}
