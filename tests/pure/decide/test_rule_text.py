"""Transforms as the ledger keeps them: the same rule comes back, and no secret goes in."""

from __future__ import annotations

import pytest

from ferry.config.flow import steps
from ferry.config.flow.rule_text import parse_rule, rule_text
from ferry.config.flow.transforms import Poison, TransformSpec
from ferry.config.text.filters import PatternList
from ferry.errors import Refused
from tests.golden import Golden

EVERY_STEP = (
    steps.Drop(when=steps.When(test=steps.TopicMatches(pattern="a.*"), negate=True)),
    steps.Keep(sql="value IS NOT NULL"),
    steps.Sample(parts_per_million=5_000),
    steps.AddHeader(name="ü", value="x", when=steps.When(test=steps.HasHeader(name="h"))),
    steps.DropHeaders(names=("a", "b"), when=steps.When(test=steps.IsTombstone())),
    steps.Provenance(cluster="a"),
    steps.Json(paths=("$.a", "$['b c']"), change=steps.Change.REDACT, replacement="0", is_object=True),
    steps.Json(paths=("$.a",), change=steps.Change.HASH),
    steps.OnlyFields(include=("a",), renames=(("a", "b"), ("c", "d"))),
    steps.Cast(paths=("$.a",), to="int8", is_object=True),
    steps.Cast(paths=(), to="string", of_key=True),
    steps.HashKey(),
    steps.Route(pattern="a(.*)", replacement="$1"),
    steps.RouteByTime(topic_format="${topic}", time_format="yyyy"),
    steps.Rename(sql="target"),
)


def spec(salt: str = "", **more: object) -> TransformSpec:
    return TransformSpec(name="small", topics=PatternList(items=("t", "u.*")), salt=salt, **more)  # type: ignore[arg-type]


def test_every_step_comes_back_as_it_was() -> None:
    assert {type(one) for one in EVERY_STEP} == set(steps.Step.__args__)
    for one in (
        spec(steps=EVERY_STEP, partitions=12, poison=Poison.SKIP),
        spec(sql="SELECT * FROM records"),
        spec(function="a.b:c"),
        spec(steps=(steps.Rename(sql="key"),), partitions=2, targets=("{topic}-b", "a")),
    ):
        back = parse_rule(rule_text(one), ())
        assert back == one
        assert back.digest(spark_version="4") == one.digest(spark_version="4")


def test_a_salt_that_is_written_out_stays_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "a long enough secret")
    clear, reference = spec("a planted secret!"), spec("${env:PLANTED}")
    assert "planted" not in rule_text(clear)
    assert parse_rule(rule_text(reference), ()).secret() == b"a long enough secret"
    assert parse_rule(rule_text(clear), (clear,)).secret() == b"a planted secret!"
    # Without the file's word it is another transform, and its digest says so.
    assert parse_rule(rule_text(clear), ()).digest(spark_version="4") != clear.digest(spark_version="4")


@pytest.mark.parametrize("text", ["", "{}", '{"name":"x"}', "nonsense"])
def test_what_it_does_not_know_is_refused(text: str, golden: Golden) -> None:
    with pytest.raises(Refused) as caught:
        parse_rule(text, ())
    golden(caught.value)
