"""An option has one meaning: by its form, the same in every command that has it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from ferry.program import main
from tests.golden import Golden

ROOT = Path(__file__).resolve().parents[3]
COMMANDS: dict[str, Any] = dict(run_path(str(ROOT / "tools" / "cli_reference.py"))["every_command"]())
SEVERAL = {
    "--from": {"TIME", "OFFSET|TIME"},
    "--to": {"TIME", "OFFSET", "OFFSET|TIME"},
    "--topic": {"TOPIC", "TOPIC,..."},
}
"""Options whose value has a wider form in some commands."""


def options_of(command: Any) -> set[str]:
    return {name for one in command.params for name in one.opts}


def forms() -> dict[str, set[str]]:
    found = defaultdict(set)
    for command in COMMANDS.values():
        for one in command.params:
            if one.param_type_name == "option" and not one.hidden:
                for name in one.opts:
                    found[name].add("" if one.is_flag else str(one.metavar))
    return found


def test_an_option_has_one_form() -> None:
    assert {name: kinds for name, kinds in forms().items() if len(kinds) > 1} == SEVERAL


def test_options_of_one_meaning_are_apart() -> None:
    by_option = {
        option: {words for words, command in COMMANDS.items() for one in command.params if option in one.opts}
        for option in (
            *("--max-records", "--rpo-records", "--explain", "--reason", "--sample", "--one-in"),
            *("--clusters", "--names", "--group", "--worker-group", "--export", "--output"),
        )
    }
    assert by_option == {
        "--max-records": {"plan", "run", "backfill"},
        "--rpo-records": {"lag", "readiness", "switchover", "failback"},
        "--explain": {"plan"},
        "--sample": {"plan"},
        "--one-in": {"verify"},
        "--reason": {"pause", "skip", "switches abandon"},
        "--clusters": set(),
        "--names": {"dev up", "dev down"},
        "--group": {
            *("groups show", "groups sync", "groups snapshot", "groups diff", "groups rollback"),
            *("translate", "drills partial", "migrate mm1"),
        },
        "--worker-group": {"migrate mm2", "migrate hand-back"},
        "--export": set(),
        "--output": {"ledger export", "failback", "support-bundle", "migrate import-mm1", "migrate hand-back"},
    }


@pytest.mark.parametrize("words", sorted(words for words, one in COMMANDS.items() if "--patience" in options_of(one)))
def test_patience_is_also_called_timeout(words: str) -> None:
    one = COMMANDS[words]
    parser = one.make_parser(one.context_class(one))
    assert parser._long_opt["--timeout"] is parser._long_opt["--patience"]
    assert "--timeout" not in options_of(one)


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("pause a->b --reason --dry-run", "--reason"),
        ("status --patience --json", "--patience"),
        ("plan a->b --explain -o csv", "--explain"),
        ("lag a->b --topic --json", "--topic"),
        ("switches abandon a->b s-1 --why --quiet", "--why"),
        ("support-bundle --output --dry-run", "--output"),
        ("config check --fix --no-such-option", "--fix"),
        ("migrate import-mm1 --output --whitelist a", "--output"),
        ("migrate hand-back a->b --output -", "--output"),
        ("pause a->b --reason --no-such=option", "--reason"),
    ],
)
def test_no_option_takes_the_next_option_for_its_value(
    line: str, option: str, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    out, err = capsys.readouterr()
    assert (ended.value.code, err.startswith(f"ferry: {option} ") or "--json" in line) == (2, True)
    golden(err)
    assert out == "" or "--json" in line


FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
"""


@pytest.mark.parametrize(
    "line",
    [
        "verify --from yesterday",
        "verify --to 2026-01-31T06:00:00",
        "verify --from latest",
        "drills shadow --from yesterday",
        "drills shadow --from 2026-01-31T06:00:00",
        "backfill --lane backfill-x --from yesterday --to 2026-01-31T06:00:00Z",
        "backfill --lane backfill-x --from-offset yesterday --to-offset orders:0:7",
        "backfill --lane backfill-x --from-offset orders:0:1 --from-offset orders:0:2 --to-offset orders:0:7",
    ],
)
def test_a_bound_has_one_remedy_which_is_its_help(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    with pytest.raises(SystemExit) as ended:
        main([*line.split(), "--config", str(path)])
    err = capsys.readouterr().err
    assert (ended.value.code, "topic:partition:offset" in err) == (2, False)
    golden(err.removeprefix("ferry: "))


def test_a_value_may_be_an_options_name_after_an_equals_sign() -> None:
    one = COMMANDS["pause"]
    assert "--dry-run" in one.make_context("pause", ["a->b", "--reason=--dry-run"]).params.values()


@pytest.mark.parametrize("value", ["-5", "-1h", "- see the ticket", "--- see the ticket", "-x and more"])
def test_a_value_may_begin_with_a_hyphen(value: str) -> None:
    one = COMMANDS["pause"]
    assert value in one.make_context("pause", ["a->b", "--reason", value]).params.values()
