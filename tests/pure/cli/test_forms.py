"""The forms of an answer: `-o json`, `-o table`, `-o csv`, and `--json`, which is the first one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ferry.cli.output import Figure, Form, echo, in_bytes, print_answer, print_table
from ferry.program import main
from tests.golden import Golden
from tests.program import Answer

FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
a->b.topics = orders.*
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A file with one flow."""
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code, *capsys.readouterr()


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(
    "words",
    [
        ["flows", "--json"],
        ["--json", "flows"],
        ["flows", "-o", "json"],
        ["flows", "-ojson"],
        ["-o", "json", "flows"],
        ["flows", "--format", "json"],
        ["flows", "--format=json", "--json"],
        ["-o", "csv", "flows", "-o", "json"],
    ],
    ids=" ".join,
)
def test_json_has_several_spellings(words: list[str], config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, *words, "--config", config)
    assert (code, [one["flow"] for one in json.loads(out)["flows"]]) == (0, ["a->b"])


def test_csv_is_the_table_with_a_header(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answer(capsys, "flows", "-o", "csv", "--config", config)
    head, row = rows(out)
    assert (code, head[0], row[0]) == (0, "flow", "a->b")
    assert "\r" not in out


def test_the_table_may_be_named(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    named, bare = (answer(capsys, "flows", *words, "--config", config) for words in (["-o", "table"], []))
    assert named == bare


def test_a_check_of_the_file_is_one_table_of_its_lines(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = answer(capsys, "config", "check", config, "-o", "csv")
    head, *found = rows(out)
    assert (code, head[:2], [row[0] for row in found]) == (0, ["line", "key"], ["2", "3", "4", "5", "6"])
    assert "0 errors" in err


@pytest.mark.parametrize(
    "words",
    [
        ["pause", "--reason", "x", "-o", "csv"],
        ["run", "-o", "csv"],
        ["-o", "csv", "skip", "a->b", "orders", "0", "--to", "7", "--reason", "x"],
        ["plan", "--explain", "orders", "-o", "csv"],
        ["flows", "-o", "xml"],
        ["status", "--watch", "5", "-o", "csv"],
        ["translate", "a->b", "orders", "0", "7", "-o", "csv"],
        ["config", "explain", "topics", "-o", "csv"],
    ],
    ids=" ".join,
)
def test_what_has_no_table_refuses_csv(
    words: list[str], config: str, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    code, out, err = answer(capsys, *words, *([] if "explain" in words else ["--config", config]))
    assert (code, out) == (2, "")
    golden(err.removeprefix("ferry: "))


def test_two_forms_at_once_are_refused(config: str, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    code, out, err = answer(capsys, "flows", "--json", "-o", "csv", "--config", config)
    assert (code, json.loads(out)["error"]["kind"]) == (2, "bad-input")
    golden(err.removeprefix("ferry: "))


def test_an_error_whose_sentence_is_data_has_its_code_and_facts(
    config: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "identical.properties"
    path.write_text(f"{FILE}\nb->a.enabled = false\na->b.ferry.offsets = identical\n")
    skip = ["skip", "a->b", "orders", "0", "--to", "5", "--reason", "corrupt", "--json"]
    code, out, _ = answer(capsys, *skip, "--config", str(path))
    body = Answer(code=2, out=out, err="").json("error")["error"]
    assert (code, body["kind"], body["code"]) == (2, "refused", "identical.command")
    assert (body["facts"]["act"], body["facts"]["flow"]) == ("ferry skip", "a->b")

    _, out, _ = answer(capsys, *skip, "--to", "x", "--config", config)
    assert Answer(code=2, out=out, err="").json("error")["error"].keys() == {"kind", "message"}


def test_an_error_is_json_where_the_answer_would_be(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["-o", "json"], ["-ojson"], ["--format", "json"], ["--format=json"]):
        code, out, err = answer(capsys, "lag", "a->c", *words, "--config", config)
        assert (code, json.loads(out)["error"]["kind"]) == (2, "bad-input")
        assert err.startswith("ferry: ")


def test_sentences_and_further_tables_are_not_among_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    def show() -> None:
        echo("first")
        print_table(
            ["topic", "bytes"], [["a,b", in_bytes(1500)], ["c", None], ["\x1b[2J", 'say "x"']], total=["total", "1"]
        )
        print_table(["another"], [["one"]])

    print_answer(dict, show, form=Form.CSV)
    out, err = capsys.readouterr()
    assert rows(out) == [["topic", "bytes"], ["a,b", "1500"], ["c", ""], ["\\x1b[2J", 'say "x"']]
    assert err == "first\n"
    print_answer(dict, show, form=Form.TABLE)
    assert "1.5 kB" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x")'])
def test_a_text_is_no_formula_of_a_spreadsheet(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = ["group", "offset"], [[text, -1], [f"a{text}", -1.5]]
    print_answer(dict, lambda: print_table(*table), form=Form.CSV)
    assert rows(capsys.readouterr().out)[1:] == [[f"'{text}", "-1"], [f"a{text}", "-1.5"]]
    print_answer(dict, lambda: print_table(*table), form=Form.TABLE)
    assert f"'{text}" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["\t=1+1", "\r=1+1", "\n=1+1"])
def test_no_text_begins_with_what_a_spreadsheet_skips(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(dict, lambda: print_table(["reason"], [[text]]), form=Form.CSV)
    assert rows(capsys.readouterr().out)[1][0].startswith("\\")


def test_a_number_has_what_is_said_of_it_in_a_column_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    table = ["topic", "records"], [["a", Figure(4, "at least 4"), "at least"], ["b", Figure(None, "not known"), None]]
    print_answer(dict, lambda: print_table(*table, only_csv="known"), form=Form.CSV)
    assert rows(capsys.readouterr().out) == [["topic", "records", "known"], ["a", "4", "at least"], ["b", "", ""]]
    print_answer(dict, lambda: print_table(*table, only_csv="known"), form=Form.TABLE)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["topic", "records"]
    assert [line.split(maxsplit=1) for line in lines] == [["a", "at least 4"], ["b", "not known"]]


def test_a_table_without_rows_has_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    def show() -> None:
        print_table(["topic"], [], omit=True)

    print_answer(dict, show, form=Form.CSV)
    print_answer(dict, show, form=Form.TABLE)
    assert capsys.readouterr().out == "topic\n"


def test_an_answer_that_turns_out_to_have_no_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(dict, lambda: echo("nothing"), form=Form.CSV)
    assert "-o json" in capsys.readouterr().err
