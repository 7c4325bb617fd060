"""MirrorMaker 2's other clients: no login and no broker of theirs is left out in silence."""

from __future__ import annotations

import pytest

from ferry.config.client_check import all_problems
from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from tests.golden import Golden, brief

BASE = """\
clusters = a, b, c
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
c.bootstrap.servers = c:1
a->b.enabled = true
"""
LOGIN = 'x.Y required username="{}" password="geheim";'


LAST = "give that login the permissions of both, and remove this line"


@pytest.mark.parametrize(
    ("lines", "differs"),
    [
        ("a.admin.bootstrap.servers = x:1", True),
        ("b.admin.bootstrap.servers = x:1", True),
        ("b.consumer.bootstrap.servers = x:1", True),
        ("a.producer.bootstrap.servers = x:1", True),
        ("a->b.admin.bootstrap.servers = a:1", True),
        ("a->b.target.admin.security.protocol = SSL", True),
        ("b.admin.security.protocol = SSL", True),
        ("a.consumer.client.id = x\na.admin.client.id = y", False),
        ("a.admin.bootstrap.servers = a:1 ", False),
        ("c.admin.bootstrap.servers = x:1", False),
        ("c->a.source.admin.bootstrap.servers = x:1", False),
        ("b.consumer.bootstrap.servers = x:1\nb->c.enabled = true", False),
        ("a.bootstrap.servers.admin = x", True),
    ],
    ids=brief,
)
def test_a_difference_is_named_with_what_counts(lines: str, differs: bool, golden: Golden) -> None:
    problems = examine(f"{BASE}{lines}\n", "f").problems
    assert len(problems) == differs, problems
    for problem in problems:
        assert (problem.line, problem.key) == (6, lines.partition(" = ")[0])
        golden(problem.message)


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
