"""`pip install ferry-replicator` without an extra: the command line, and one sentence for what needs more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ferry import __version__
from tests.world.packaging.declared import requirements
from tests.world.packaging.installation import CHECKOUT, Installation, bare, frozen, pip_install
from tests.world.packaging.test_wheel import IMPORT, ON_EXTRAS, imports

FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
a->b.topics = orders
"""
MASKED = "ferry.transforms = masked\nferry.transform.masked.topics = orders\nferry.transform.masked.where = TRUE\n"
HELP = """
import contextlib, io
from ferry.program import main
for words in {commands!r}:
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            main([*words.split(), "--help"])
    except SystemExit as end:
        assert not end.code, words
    assert " Usage: ferry " + words in shown.getvalue(), words
print("all of them")
"""


@pytest.fixture(scope="module", params=["tested", "oldest"])
def slim(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An environment with the wheel alone: with the versions of constraints.txt, or the oldest that it accepts."""
    place = bare(tmp_path_factory.mktemp("slim"))
    constraints = CHECKOUT / "constraints.txt"
    if request.param == "oldest":
        constraints = place.home / "oldest.txt"
        constraints.write_text("".join(f"{one.name}=={oldest(one)}\n" for one in requirements(wheel)))
    pip_install(place, "--retries", "10", "--only-binary", ":all:", "--constraint", str(constraints), str(wheel))
    (place.home / "mm2.properties").write_text(FILE)
    (place.home / "masked.properties").write_text(FILE + MASKED)
    return place


def oldest(requirement: Requirement) -> str:
    """The lower bound of a range."""
    (bound,) = (part.version for part in requirement.specifier if part.operator == ">=")
    return bound


def ferry(place: Installation, *words: str) -> tuple[int, str]:
    """Exit code and all that a command prints, wherever it prints it."""
    done = place.run(place.home / "bin" / "ferry", *words, FERRY_CONFIG="mm2.properties")
    return done.returncode, done.stdout + done.stderr


def test_it_brings_neither_airflow_nor_spark(slim: Installation) -> None:
    names = frozen(slim)
    assert names["ferry-replicator"] == __version__
    assert not [name for name in names if re.match("(apache-airflow|pyspark|pandas|pyarrow|numpy)", name)]
    assert len(names) < 40


def test_each_module_is_imported_and_kafka_python_has_what_is_needed(slim: Installation, wheel: Path) -> None:
    names = imports(wheel, "ferry", but=ON_EXTRAS)
    slim.said(IMPORT.format(names=names))
    slim.said("from ferry.kafka.connect.reliance import check_installed\ncheck_installed()")


def test_each_command_shows_its_help(slim: Installation) -> None:
    commands = re.findall(r"^## `ferry (.+)`$", (CHECKOUT / "docs" / "cli-reference.md").read_text(), re.MULTILINE)
    assert {"run", "airflow setup", "dev up"} <= {*commands}
    assert slim.said(HELP.format(commands=commands)) == ["all of them"]


def test_what_needs_no_cluster_works(slim: Installation) -> None:
    assert ferry(slim, "--version") == (0, f"ferry {__version__}\n")
    code, shown = ferry(slim, "--help")
    assert (code, " Usage: ferry " in shown) == (0, True)
    code, shown = ferry(slim, "config", "check", "mm2.properties")
    assert (code, "a->b" in shown) == (0, True)


def test_a_cluster_that_does_not_answer_is_named(slim: Installation) -> None:
    code, shown = ferry(slim, "plan", "a->b", "--patience", "1")
    assert code == 3
    assert re.fullmatch(r"ferry: cluster [ab] at 127\.0\.0\.1:[12] .* 1 s .*\n", shown)


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("airflow setup", "airflow"),
        ("run a->b --spark", "spark"),
        ("plan a->b --sample 3 --config masked.properties", "spark"),
        ("verify a->b --spark", "spark"),
        ("ledger export a->b --to ledger.parquet", "spark"),
    ],
)
def test_what_needs_an_extra_names_it_in_one_sentence(slim: Installation, words: str, extra: str) -> None:
    code, shown = ferry(slim, *words.split())
    assert code == 2
    assert re.fullmatch(rf"ferry: [^\n]*: install ferry-replicator\[{extra}\][^\n]*\n", shown), shown
