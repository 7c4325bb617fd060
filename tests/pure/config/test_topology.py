"""What `ferry config check` says of clusters and flows together: no network is asked."""

from pathlib import Path

import pytest

from ferry.cli.command import Context
from ferry.config.reading.examine import examine
from ferry.config.text.problem import Severity
from tests.golden import Golden, brief

BASE = """\
clusters = west, east, north
west.bootstrap.servers = w1:9092, w2:9092
east.bootstrap.servers = e1:9092
north.bootstrap.servers = n1:9092
west->east.enabled = true
"""
IDENTITY = "replication.policy.class = IdentityReplicationPolicy\n"
BACK = "east->west.enabled = true\n"


def said(text: str) -> list[tuple[int | None, str]]:
    problems = examine(text, "f").problems
    assert all(problem.severity is Severity.WARNING for problem in problems)
    return [(problem.line, f"{problem.key}: {problem.message}") for problem in problems]


@pytest.mark.parametrize(
    ("servers", "shared"),
    [
        ("w1:9092, w2:9092", "w1:9092"),
        ("e9:9092, W2:9092", "W2:9092"),
        ("SSL://w1:9092", "SSL://w1:9092"),
    ],
)
def test_a_broker_of_two_clusters_is_named_with_both_lines(servers: str, shared: str, golden: Golden) -> None:
    text = BASE.replace("e1:9092", servers)
    ((line, sentence),) = said(text)
    assert line == 3
    assert shared in sentence
    golden(sentence)


def test_brokers_at_top_level_are_those_of_every_cluster(golden: Golden) -> None:
    text = "clusters = west, east\nbootstrap.servers = h:1\nwest->east.enabled = true\n"
    ((line, sentence),) = said(text)
    assert line == 2
    golden(sentence)


@pytest.mark.parametrize("servers", ["w1:9093", "w1.example:9092", "${env:FERRY_NOT_SET_ANYWHERE}"])
def test_other_brokers_are_other_clusters(servers: str) -> None:
    assert said(BASE.replace("e1:9092", servers)) == []


@pytest.mark.parametrize(
    ("lines", "line", "topic", "way"),
    [
        (IDENTITY + BACK, 7, "any-topic", "west->east (line 5)"),
        (IDENTITY + BACK + "west->east.topics = orders.*\n", 7, "orders", "west->east (line 5)"),
        (IDENTITY + BACK + "topics = a, b\nwest->east.topics = b, c\n", 7, "b", "west->east (line 5)"),
        (
            IDENTITY + "east->north.enabled = true\nnorth->west.enabled = true\n",
            7,
            "any-topic",
            "north->west (line 8), west->east (line 5)",
        ),
        (IDENTITY + BACK + "topics = [a-z]+\n", 7, "a", "west->east (line 5)"),
        (
            IDENTITY + BACK + "west->east.topics = ord.{3}\neast->west.topics = [o-p]rders\n",
            7,
            "orders",
            "west->east (line 5)",
        ),
        (
            IDENTITY + BACK + "west->east.topics = [a-m]+\neast->west.topics = [m-z]{2}\n",
            7,
            "mm",
            "west->east (line 5)",
        ),
        (
            IDENTITY
            + BACK
            + f"west->east.topics = {', '.join(f'one{n}' for n in range(99))}, x\neast->west.topics = (?!y)[x-z]\n",
            7,
            "x",
            "west->east (line 5)",
        ),
        (
            "east->west.replication.policy.class = IdentityReplicationPolicy\n" + BACK,
            7,
            "any-topic",
            "west->east (line 5)",
        ),
    ],
    ids=brief,
)
def test_flows_that_would_bring_topics_back_are_named_once(
    lines: str, line: int, topic: str, way: str, golden: Golden
) -> None:
    ((found, sentence),) = said(BASE + lines)
    assert found == line
    assert repr(topic) in sentence
    assert way in sentence
    golden(sentence)


@pytest.mark.parametrize(
    "lines",
    [
        IDENTITY + BACK,
        BACK + "west->east.replication.policy.separator = _\n",
        BACK + "replication.policy.separator = t\n",
    ],
    ids=brief,
)
def test_the_remedy_is_what_would_help(lines: str, golden: Golden) -> None:
    loops = [sentence for _, sentence in said(BASE + lines) if "come back" in sentence]
    (remedy,) = {sentence.rpartition(", or ")[2] for sentence in loops}
    golden(remedy)


@pytest.mark.parametrize(
    "lines",
    [
        BACK,
        IDENTITY,
        IDENTITY + "east->west.enabled = false\n",
        IDENTITY + BACK + "west->east.topics = a.*\neast->west.topics = b.*\n",
        IDENTITY + BACK + "west->east.topics = a\nwest->east.topics.exclude = a\n",
        IDENTITY + "east->north.enabled = true\n",
        IDENTITY + BACK + "west->east.topics = [a-m]+\neast->west.topics = [n-z]+\n",
        IDENTITY + BACK + "west->east.topics = ord.{3}\neast->west.topics = [o-p]rder\n",
    ],
)
def test_flows_that_bring_nothing_back_are_not(lines: str) -> None:
    assert said(BASE + lines) == []


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (BACK, 0),  # a pause is in the ledger, so the plan alone knows whether one of the two is on standby
        ("east->north.enabled = true\nnorth->west.enabled = true\n", 1),
        (BACK + "no.such.key = 1\n", 1),
    ],
)
def test_a_warning_that_only_a_plan_can_decide_does_not_come_with_each_command(
    lines: str, shown: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + IDENTITY + lines)
    settings = Context(config=path, clusters=(), quiet=False, verbose=False).settings()
    assert len(settings.problems) == shown + (BACK in lines), "ferry config check has it"
    assert capsys.readouterr().err.count("ferry: warning: ") == shown


@pytest.mark.parametrize(("separator", "aliases"), [("_", []), (".", ["us.east"]), ("e", ["us.east", "west"])])
def test_an_alias_that_contains_the_separator_is_named(separator: str, aliases: list[str], golden: Golden) -> None:
    text = BASE.replace("east", "us.east").replace("north", "n") + f"replication.policy.separator = {separator}\n"
    found = said(text)
    assert [line for line, _ in found] == [1 for _ in aliases]
    assert all(
        repr(alias) in sentence for (_, sentence), alias in zip(found, sorted(aliases, reverse=True), strict=True)
    )
    for line in found[:1]:
        golden(line[1])
