"""Spellings of earlier versions, which version 0.1 takes and no help shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ferry.commands import COMMANDS, OLD_SPELLINGS
from ferry.dev.app import app
from ferry.program import main, program
from tests.golden import Golden
from tests.pure.cli.test_commands import rows

FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
"""
LINES = {
    "switch list a->c": "switches list a->c",
    "switch show a->c s-1": "switches show a->c s-1",
    "switch abandon a->c s-1 --why x": "switches abandon a->c s-1 --reason x",
    "drill tabletop a->c": "drills tabletop a->c",
    "drill shadow a->c": "drills shadow a->c",
    "drill partial a->c --topic orders": "drills partial a->c --topic orders",
    "drill full a->c": "drills full a->c",
    "adopt mm1 a->c --group mirror": "migrate mm1 a->c --group mirror",
    "adopt mm2 a->c": "migrate mm2 a->c",
    "hand-back mm2 a->c": "migrate hand-back a->c",
    "hand-back a->c": "migrate hand-back a->c",
    "config import-mm1 --help": "migrate import-mm1 --help",
    "config import-mm1 --whitelist": "migrate import-mm1 --whitelist",
    "policy check DefaultReplicationPolicy": "config policy DefaultReplicationPolicy",
    "policy check --json DefaultReplicationPolicy": "config policy --json DefaultReplicationPolicy",
    "--clusters b switch list a->c": "--clusters b switches list a->c",
    "lanes drop backfill-x --flow a->c": "lanes drop a->c backfill-x",
}
"""Old lines, and the lines of today that mean the same."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with one flow, which FERRY_CONFIG names."""
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    monkeypatch.setenv("FERRY_CONFIG", str(path))


def answer(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("old", LINES)
@pytest.mark.usefixtures("config")
def test_an_old_line_means_what_todays_means(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, old)
    assert found == answer(capsys, LINES[old])
    assert "No such" not in found[2]


def test_every_old_spelling_of_a_command_is_run() -> None:
    tried = {tuple(line.split()) for line in LINES}
    longest = [old for old in OLD_SPELLINGS if old != ("policy",)]  # alone it shows help, as below
    assert [old for old in longest if not any(line[: len(old)] == old for line in tried)] == []


@pytest.mark.parametrize("words", OLD_SPELLINGS, ids=" ".join)
def test_help_of_an_old_spelling_is_todays(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, " ".join((*words, "--help")))
    assert (code, f"ferry {' '.join(OLD_SPELLINGS[words])}" in out) == (0, True)


def test_no_list_shows_an_old_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, "--help")[1].split()
    firsts = {words[0] for words in OLD_SPELLINGS if words[0] not in COMMANDS}
    assert firsts == {"switch", "drill", "adopt", "hand-back", "policy"}
    assert [word for word in firsts if f"│ {word} " in " ".join(shown)] == []
    assert "import-mm1" not in answer(capsys, "config --help")[1]


@pytest.mark.parametrize(
    "line", ["lanes drop a->b", "lanes drop a->b x y", "lanes drop a->b x --flow a->b", "lanes drop"]
)
@pytest.mark.usefixtures("config")
def test_a_lane_to_drop_is_named_once(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = answer(capsys, line)
    assert (code, out, err.count("\n")) == (2, "", 1)


def options() -> Iterator[tuple[str, str, str]]:
    """The words of each command with old options, and each of these with that of today."""
    for words, row in rows():
        yield from ((words, old, new) for old, new in row.old.items() if new.startswith("--"))


def command(words: str) -> Any:
    found = program()
    for word in words.split():
        found = found.get_command(None, word)
    return found


@pytest.mark.parametrize(("words", "old", "new"), list(options()))
def test_an_old_option_is_todays_and_is_not_shown(
    words: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = command(words)
    needed = {"switches abandon": ["a->b", "s-1"]}.get(words, [])
    values = [one.make_context(words, [*needed, option, "7"]).params for option in (old, new)]
    assert values[0] == values[1]
    shown = answer(capsys, f"{words} --help")[1]
    assert (f"{old} " in shown, new in shown) == (False, True)


@pytest.mark.parametrize("line", ["lag --watch", "lag a->b --watch=5", "lag --watch 5 a->b"])
def test_an_option_of_another_command_is_a_hint(line: str, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    code, out, err = answer(capsys, line)
    assert (code, out) == (2, "")
    golden(err)


@pytest.mark.parametrize("words", ["up", "down"])
def test_the_names_of_local_clusters_had_the_option_of_the_clusters_of_a_file(words: str) -> None:
    found: Any = get_command(app)
    one = found.get_command(None, words)
    values = [one.make_context(words, [option, "a,b"]).params for option in ("--clusters", "--names")]
    assert values[0] == values[1]
    assert values[0]["names"] == "a,b"


def test_the_old_options_of_today() -> None:
    assert {f"{words} {old}" for words, old, _ in options()} == {
        "lag --max-records", "lag --max-seconds", "readiness --max-records", "readiness --max-seconds",
        "switchover --max-records", "switchover --max-seconds", "failback --max-records", "failback --max-seconds",
        "pause --why", "switches abandon --why", "run --run", "ledger export --to", "ledger rebuild --from",
        "reports verify --last", "verify --sample", "plan --why", "failback --export", "migrate mm2 --group",
        "migrate hand-back --group", "groups snapshot --name",
    }  # fmt: skip
