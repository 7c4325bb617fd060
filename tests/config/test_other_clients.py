"""MirrorMaker 2's other clients: no login and no broker of theirs is left out in silence."""

from __future__ import annotations

import pytest

from ferry.cli.config.check import all_problems
from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from tests.golden import Golden

BASE = """\
clusters = a, b, c
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
c.bootstrap.servers = c:1
a->b.enabled = true
"""
LOGIN = 'x.Y required username="{}" password="geheim";'


LAST = "for all that it asks there; let that one do what both may, and remove this line"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "a.admin.bootstrap.servers = x:1",
            [f"differs from line 2, which counts: Ferry reaches a as its consumer, {LAST}"],
        ),
        (
            "b.admin.bootstrap.servers = x:1",
            [f"differs from line 3, which counts: Ferry reaches b as its producer, {LAST}"],
        ),
        ("b.consumer.bootstrap.servers = x:1", ["differs from line 3"]),
        ("a.producer.bootstrap.servers = x:1", ["differs from line 2"]),
        ("a->b.admin.bootstrap.servers = a:1", ["differs from line 3, which counts: Ferry reaches b"]),
        (
            "a->b.target.admin.security.protocol = SSL",
            ["is not used: Ferry reaches b as its producer, for all that it"],
        ),
        ("b.admin.security.protocol = SSL", ["is not used: Ferry reaches b as its producer, for all that it asks"]),
        ("a.consumer.client.id = x\na.admin.client.id = y", []),
        ("a.admin.bootstrap.servers = a:1 ", []),
        ("c.admin.bootstrap.servers = x:1", []),
        ("c->a.source.admin.bootstrap.servers = x:1", []),
        ("b.consumer.bootstrap.servers = x:1\nb->c.enabled = true", []),
        ("a.bootstrap.servers.admin = x", ["is not known"]),
    ],
)
def test_a_difference_is_named_with_what_counts(lines: str, said: list[str]) -> None:
    problems = examine(f"{BASE}{lines}\n", "f").problems
    assert len(problems) == len(said), problems
    for problem, beginning in zip(problems, said, strict=True):
        assert (problem.line, problem.key) == (6, lines.partition(" = ")[0])
        assert problem.message.startswith(beginning)


def test_another_login_for_the_admin_client_is_named_without_its_secret(golden: Golden) -> None:
    lines = f"a.sasl.jaas.config = {LOGIN.format('copy')}\na.admin.sasl.jaas.config = {LOGIN.format('admin')}\n"
    (problem,) = parse_settings(BASE + lines, "f").problems
    golden(str(problem))
    assert "geheim" not in str(problem)


def test_a_mistake_in_a_client_that_does_not_exist_stops_nothing() -> None:
    lines = "a.admin.request.timeout.ms = soon\nb.consumer.fetch.max.bytes = many\na.producer.max.request.size = x\n"
    examined = examine(BASE + lines, "f")
    assert all_problems(examined) == ()
    assert [one.line for one in examined.unneeded] == [6, 7, 8]
