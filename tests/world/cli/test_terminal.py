"""What a person sees at a real terminal of 80 columns, and what a pipe gets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import PROGRAM, environment
from tests.terminal import ESCAPE, WIDTH, at_a_terminal

TABLE = "import json, sys; from ferry.cli.output import print_table; print_table(**json.loads(sys.argv[1]))"
FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:9
b.bootstrap.servers = 127.0.0.1:10
a->b.enabled = true
a->b.topics = orders.*, payments.settled.by-country.v2, customers.addresses.verified, a-third.of.many
a->b.ferry.schedule = 0 6 * * *
"""


def table(columns: list[str], rows: list[list[object]], right: list[str]) -> list[str]:
    given = json.dumps({"columns": columns, "rows": rows, "right": right})
    shown = ESCAPE.sub("", at_a_terminal([sys.executable, "-c", TABLE, given]))
    return [line.rstrip() for line in shown.splitlines()]


def test_a_table_that_fits_is_a_table() -> None:
    assert table(["topic", "offset"], [["orders", 7]], ["offset"]) == ["topic   offset", "orders       7"]


def test_names_fold_and_numbers_stay_whole() -> None:
    name = "payments.settled.by-country." * 3
    columns = ["topic", "partition", "start", "end", "bytes (about)", "target"]
    row = [name, 3, 1234567890, 1234567999, "12.3 MB", f"primary.{name}"]
    lines = table(columns, [row], columns[1:5])
    assert max(map(len, lines)) <= WIDTH
    whole = " ".join(lines).split()
    assert {"1234567890", "1234567999"} <= set(whole)
    assert sorted("".join(whole)) == sorted("".join(map(str, [*columns, *row])).replace(" ", ""))
    assert "12.3 MB" in "\n".join(lines)


def test_a_table_that_is_far_too_wide_is_a_block_for_each_row() -> None:
    columns = ["lane", "topics", "partitions", "offsets", "records", "windows", "last run", "state", "group"]
    row = ["backfill-january", 12, 4800, 1234567890, 1234567890, 3, "backfill-20260301T060000Z-1a2b", "success"]
    lines = table(columns, [[*row, f"ferry.a->b.{n}"] for n in ("one", "two")], columns[1:6])
    assert max(map(len, lines)) <= WIDTH
    assert [line.split("  ")[0] for line in lines] == [*columns, "", *columns, ""]
    assert [line.split()[-1] for line in lines if line.startswith("offsets")] == ["1234567890"] * 2
    assert [line.split()[-1] for line in lines if line.startswith("last run")] == [row[6]] * 2


def test_no_command_says_more_in_a_line_than_fits(tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text(FILE)
    for arguments in (["--help"], ["backfill", "--help"], ["flows", "--config", str(config)]):
        shown = ESCAPE.sub("", at_a_terminal([PROGRAM, *arguments]))
        assert shown.count("\n") > 1
        assert [line for line in shown.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_who_wants_no_colours_gets_none(variables: dict[str, str]) -> None:
    coloured = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|38|9[0-7])[0-9;]*m")
    assert coloured.search(at_a_terminal([PROGRAM, "plan", "--help"]))
    assert not coloured.search(at_a_terminal([PROGRAM, "plan", "--help"], **variables))


def test_a_pipe_gets_neither_colours_nor_folds(tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text(FILE)
    env = {**environment(), "TERM": "xterm-256color"}
    shown = []
    for arguments in (["plan", "--help"], ["flows", "--config", str(config)]):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True, env=env)
        assert "\x1b" not in done.stdout
        shown.append(done.stdout)
    assert len(max(shown[-1].splitlines(), key=len)) > WIDTH


def test_a_shell_is_told_the_commands_that_a_word_begins() -> None:
    asked = {"_FERRY_COMPLETE": "complete_bash", "COMP_WORDS": "ferry sw", "COMP_CWORD": "1"}
    done = subprocess.run([PROGRAM], capture_output=True, text=True, check=False, env={**environment(), **asked})
    assert sorted(done.stdout.split()) == ["switches", "switchover"]


COUNTED = """
import logging, sys
from ferry.features.verify.cli.command import shown_progress
logging.basicConfig(format="%(message)s", level="INFO")
with shown_progress(1_000, quiet="quiet" in sys.argv) as told:
    told(250, 5_000_000)
    logging.info("a line of another")
"""
WORKING = """
import logging, sys
from ferry.cli.progress_bar import working
logging.basicConfig(format="%(message)s", level="INFO")
with working("Beginning", quiet="quiet" in sys.argv) as shown:
    shown("quiet: under way")
    logging.info("a line of another")
"""
STEPS = """
import logging, sys
from ferry.cli.progress_bar import steps
logging.basicConfig(format="%(message)s", level="INFO")
with steps(quiet="quiet" in sys.argv) as shown:
    shown.begin("Copy [all]")
    shown.end("done in 3.0 s: 7 records")
"""


@pytest.mark.parametrize(
    ("work", "bar", "lines"),
    [
        (COUNTED, "25%", ["a line of another"]),
        (WORKING, "quiet: under way", ["a line of another"]),
        (STEPS, "0:00:0", ["Copy [all] ...", "    done in 3.0 s: 7 records"]),
    ],
    ids=["verify", "switch", "drill"],
)
def test_long_work_has_a_bar_at_a_terminal_lines_in_a_pipe_and_nothing_when_quiet(
    work: str, bar: str, lines: list[str]
) -> None:
    command = [sys.executable, "-c", work]
    shown = at_a_terminal(command)
    assert bar in ESCAPE.sub("", shown)
    assert "\x1b[2K" in shown, "it is drawn over, and gone at the end"
    for line in lines:
        assert any(part.rstrip().endswith(line) for part in re.split(r"[\n\r]", ESCAPE.sub("", shown))), line
    piped = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert piped.stderr.splitlines() == lines
    assert piped.stdout == ""
    assert bar not in ESCAPE.sub("", at_a_terminal([*command, "quiet"]))
