"""How help is shaped: the commands in groups, and options without what repeats nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferry.cli.lazy import Panel
from ferry.commands import COMMANDS
from ferry.program import main
from tests.golden import Golden


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return capsys.readouterr().out


def test_every_command_has_a_panel_and_none_is_empty() -> None:
    assert {name for name, row in COMMANDS.items() if row.panel is None} == set()
    assert {row.panel for row in COMMANDS.values()} == set(Panel)


def test_help_shows_the_panels_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    titles = re.findall(r"╭─ ([\w ]+) ─", helped(capsys))
    assert titles == ["Options", *Panel]


def test_local_clusters_come_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.findall(r"^│ (\w+) ", helped(capsys), re.MULTILINE)[-1] == "dev"


@pytest.mark.parametrize("words", ["", "lag", "groups", "lanes drop", "dev up", "dev", "airflow", "airflow setup"])
def test_help_repeats_no_types(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = helped(capsys, *words.split())
    assert "--help" in shown
    assert re.findall(r"<\w+>", shown) == []


@pytest.mark.parametrize("words", ["", "run", "config", "config explain", "migrate import-mm1"])
def test_help_is_a_word_too(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = helped(capsys, *words.split())
    with pytest.raises(SystemExit) as ended:
        main(["help", *words.split()])
    assert (ended.value.code, capsys.readouterr().out) == (0, shown)
    assert f"Usage: ferry {words}".strip() in shown


def test_there_is_no_help_on_what_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "nothing"])
    assert (ended.value.code, "nothing" in capsys.readouterr().err) == (2, True)


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert (ended.value.code, "Usage: ferry" in capsys.readouterr().out) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        *("switches show", "switches show a->b", "migrate mm1", "skip orders 0", "lanes drop", "config new", "pause"),
        *("flows extra more", "run a->b extra", "dev up extra", "airflow setup extra", "lanes drop a->b x y"),
        "ledger rebuild --input /nope.jsonl",
    ],
)
def test_a_word_too_few_or_too_many_is_answered_with_the_usage(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n")
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    err = capsys.readouterr().err
    assert (ended.value.code, err.count("\n"), "Missing" in err, "Got" in err) == (2, 1, False, False)
    assert f"ferry {' '.join(line.split()[:1])}" in err
    golden(err.removeprefix("ferry: "))


@pytest.mark.parametrize("line", ["drills --config x", "drills --json", "metrics --port=1", "drill --config x"])
def test_an_option_in_place_of_a_command_is_answered_with_the_commands(
    line: str, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    golden(capsys.readouterr().err.removeprefix("ferry: "))


@pytest.mark.parametrize("before", [["--quiet"], ["--config", "mm2.properties", "-o", "json"]])
def test_help_may_follow_options_of_the_program(before: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["lanes", "drop"]):
        with pytest.raises(SystemExit) as ended:
            main([*before, "help", *words])
        assert (ended.value.code, capsys.readouterr().out) == (0, helped(capsys, *words))


@pytest.mark.parametrize("group", ["drills", "acls", "migrate"])
def test_a_word_that_is_no_command_of_a_group_is_answered_with_those_that_are(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([group, "a->b"])
    rows = COMMANDS[group].rows  # type: ignore[union-attr]
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert all(name in err for name in rows)


@pytest.mark.parametrize("group", ["lanes", "switches", "reports"])
def test_a_group_that_has_a_list_shows_it(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in ([group], [group, "list"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--config", "/nowhere/mm2.properties"])
        said.append((ended.value.code, capsys.readouterr()))
    assert said[0] == said[1]
    assert "/nowhere/mm2.properties" in said[0][1].err
