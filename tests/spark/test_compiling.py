"""Which jobs have Spark compile: those through which many records pass."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark.compiling import COMPILED_RECORDS, compile_long_work
from ferry.features.records.spark.streams import Stream
from ferry.run.spark.submit import submit_conf
from tests.pure.decide.values import piece

RULE = PoisonRule(transform="t", poison=Poison.FAIL, letters=DeadLetters(topic="d"))
HALF = COMPILED_RECORDS // 2


def stream(*records: int, plain: bool = False) -> Stream:
    pieces = tuple(replace(piece(partition=at, end=7 + count), start=7) for at, count in enumerate(records))
    return Stream(
        change=lambda read, then, columns: read(then, columns),
        rule=RULE,
        pieces=pieces,
        plain=cast("Any", object() if plain else None),
    )


@pytest.mark.parametrize(
    ("streams", "compiled"),
    [
        ([stream(HALF, HALF)], True),
        ([stream(HALF, HALF - 1)], False),
        ([stream(COMPILED_RECORDS, plain=True), stream(1)], False),  # Python alone carries these out
        ([], False),
    ],
)
def test_what_much_passes_through_is_compiled(streams: list[Stream], compiled: bool) -> None:
    told: dict[str, str] = {}
    spark = cast("Any", SimpleNamespace(conf=SimpleNamespace(set=told.__setitem__)))
    assert compile_long_work(spark, streams) is compiled
    assert set(told) <= set(submit_conf()), "as the job was submitted, it would not be compiled"
    assert bool(told) is compiled
