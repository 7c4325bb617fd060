"""What `ferry lanes list` says of a lane satisfies its schema, whatever the lane is for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from ferry.config.settings import parse_settings
from ferry.features.lanes.cli.forms import lane_json
from ferry.features.lanes.rules.listing import Lane, LanePart
from ferry.model import LaneKind, TopicPartition
from tests.golden import Golden
from tests.program import SCHEMAS, closed

FILE = """
clusters = primary, backup
primary.bootstrap.servers = p:9092
backup.bootstrap.servers = b:9092
primary->backup.enabled = true
"""


@pytest.mark.parametrize("kind", [None, *LaneKind])
def test_a_lane_of_every_kind_is_in_the_schema(kind: LaneKind | None) -> None:
    flow = parse_settings(FILE, "mm2.properties").flow("primary->backup")
    name = "live" if kind is None else f"{kind}-one"
    lane = Lane(name=name, kind=kind, topics=("primary.orders",), parts=(), windows=1, last_run=None)
    schema = json.loads((SCHEMAS / "lanes-list.json").read_text())
    Draft202012Validator(closed(schema)).validate({"flow": str(flow.flow), "lanes": [lane_json(flow.flow, lane)]})


def test_records_that_receipts_name_no_more_are_said_not_to_be_counted(golden: Golden) -> None:
    flow = parse_settings(FILE, "mm2.properties").flow("primary->backup")
    whole = Lane(name="live", kind=None, topics=(), parts=(), windows=0, last_run=None)
    assert whole.uncounted == ""
    place = TopicPartition("orders", 0)
    part = LanePart(source=place, target=place, ranges=((0, 900),), records=300, pruned=500)
    lane = replace(whole, parts=(part,), dealt=3)
    golden(lane.uncounted)
    body = lane_json(flow.flow, lane)
    assert (body["records"], body["pruned_offsets"], body["dealt_partitions"]) == (300, 500, 3)
    schema = json.loads((SCHEMAS / "lanes-list.json").read_text())
    Draft202012Validator(closed(schema)).validate({"flow": str(flow.flow), "lanes": [body]})
