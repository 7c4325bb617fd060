"""What `ferry plan --sample` says of records whose topic the file does not list."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ferry.cli.output import Form
from ferry.commands.sampled import show_sample
from ferry.config.settings import parse_settings
from ferry.features.records.rules.sample import Pair, Sample, Side
from tests.golden import Golden

FILE = """clusters = a, b
a.bootstrap.servers = h:1
b.bootstrap.servers = h:2
a->b.enabled = true
ferry.transforms = days
ferry.transform.days.topics = orders
ferry.transform.days.target = concat(topic, '-', partition)
ferry.transform.days.targets = {topic}-0, {topic}-1
ferry.transform.days.partitions = 2
ferry.transform.days.poison = skip
"""
BEFORE = Side(topic="orders", timestamp=1, key=b"k", value=b"v", headers=())


def pair(offset: int, name: str) -> Pair:
    return Pair(partition=0, offset=offset, before=BEFORE, after=replace(BEFORE, topic=name), poison=None)


@pytest.mark.parametrize(("name", "what", "code"), [("orders-1", "changed", 0), ("orders-2", "not listed", 1)])
def test_a_topic_that_is_not_listed_is_seen_before_a_run_stops_there(
    capsys: pytest.CaptureFixture[str], name: str, what: str, code: int, golden: Golden
) -> None:
    flow = parse_settings(FILE, "f").flow("a->b")
    pairs = (pair(0, "orders-0"), pair(1, name))
    one = Sample(
        transform=flow.records.transforms[0],
        digest="d",
        topic="orders",
        target="orders-0",
        named="a.orders",
        pairs=pairs,
    )
    assert show_sample(flow, [one], values=False, form=Form.JSON) == code
    records = json.loads(capsys.readouterr().out)["samples"][0]["records"]
    assert [record["what"] for record in records] == ["changed", what]
    assert show_sample(flow, [one], values=False, form=Form.TABLE) == code
    shown = capsys.readouterr().out
    assert name in shown
    golden(shown.splitlines()[0])
