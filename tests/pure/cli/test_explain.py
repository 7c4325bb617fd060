"""`ferry explain`: each word that Ferry shows has its row of docs/troubleshooting.md, offline."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from ferry.cli.words import FILE, all_words
from ferry.features.doctor.cli.doctor import SHOWN
from ferry.features.observe.rules.alerts import AlertKind
from ferry.model import RefusalKind, Resolution
from ferry.program import main

TOOL = Path(__file__).parents[3] / "tools" / "word_list.py"


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *words])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_the_words_are_those_of_the_document() -> None:
    assert FILE.read_text() == runpy.run_path(str(TOOL))["rendered"](), "run python tools/word_list.py"
    assert all(one.means or one.look for one in all_words())
    assert {one.of for one in all_words()} == {"state", "kind", "alert", "error", "term"}


@pytest.mark.parametrize("kind", sorted({kind.value for kind in (*RefusalKind, *Resolution)}))
def test_a_kind_is_explained(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = explained(capsys, kind, "--json")
    words = [one for one in json.loads(out)["words"] if one["of"] == "kind"]
    assert code == 0
    assert {one["word"] for one in words} == {kind}
    assert all(one["fixes"] or one["look"] for one in words)


def test_an_alert_is_found_by_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = explained(capsys, "FerryLagOverRpo")
    assert (code, out.startswith("lag (")) == (0, True)
    assert "docs/runbooks/lag.md" in out
    assert "`" not in out


RULES = {name for one in all_words() if one.of == "alert" for name in (one.word, *one.also) if name.startswith("Ferry")}


@pytest.mark.parametrize("name", sorted(RULES))
def test_an_alert_has_a_meaning_and_a_fix(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = json.loads(explained(capsys, name, "--json")[1])["words"]
    assert all(one[part] for part in ("means", "look", "fixes"))
    out = explained(capsys, name)[1]
    assert [label in out for label in ("means: ", "check: ", "fix: ")] == [True] * 3


def test_every_kind_of_alert_has_a_row() -> None:
    assert {kind.value for kind in AlertKind} <= {one.word for one in all_words() if one.of == "alert"}


def test_no_text_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    words = json.loads(explained(capsys, "--json")[1])["words"]
    texts = [one[part] for one in words for part in ("means", "look", "fixes")]
    assert [text for text in texts if "](" in text or "`" in text or re.search(r"(?<!\S)\*\w", text)] == []


def test_a_pattern_keeps_its_star(capsys: pytest.CaptureFixture[str]) -> None:
    assert "than ferry.rpo.* allows" in explained(capsys, "behind")[1]
    (one,) = json.loads(explained(capsys, "behind", "--json")[1])["words"]
    assert "than ferry.rpo.* allows" in one["means"]


def test_a_word_that_is_none_is_an_error_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = explained(capsys, "retention-pased")
    assert (code, out) == (2, "")
    assert "retention-passed" in err


def test_a_term_of_the_glossary_is_found_by_each_of_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("run", "micro-run"):
        (one,) = json.loads(explained(capsys, name, "--json")[1])["words"]
        assert (one["of"], one["word"], one["also"]) == ("term", "run", ["micro-run"])


@pytest.mark.parametrize("word", [*SHOWN.values(), "not known", "rpo", "RPO", "grade"])
def test_what_doctor_and_status_print_is_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = json.loads(explained(capsys, word, "--json")[1])["words"]
    assert one["means"]


def test_without_a_word_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = explained(capsys)
    assert code == 0
    assert all(one.word in out for one in all_words())
