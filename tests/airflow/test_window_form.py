"""What the fields of a backfill's form mean, before anything is asked of a cluster."""

from __future__ import annotations

import pytest

from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.model import OffsetWindow, TimeWindow, TopicPartition, TopicWindows, Window
from ferry_airflow.window_steps import backfill_of
from tests.golden import Golden, brief

FLOW = parse_settings(
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\na->b.topics = .*\n",
    "f",
).flow("a->b")
LANE = {"lane": "backfill-form"}
FROM, TO = "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"
SECOND = TimeWindow(from_ms=1_000, to_ms=2_000)


@pytest.mark.parametrize(
    ("form", "window"),
    [
        ({"from": FROM, "to": TO}, SECOND),
        (
            {"times": [f"x={FROM}/{TO}", "y=5/7"]},
            TopicWindows(windows={"x": SECOND, "y": TimeWindow(from_ms=5, to_ms=7)}),
        ),
        (
            {"from_offsets": ["x:0:1"], "to_offsets": ["x:0:3"]},
            OffsetWindow(ranges={TopicPartition(topic="x", partition=0): (1, 3)}),
        ),
    ],
)
def test_a_window_of_the_form(form: dict[str, object], window: Window) -> None:
    options = backfill_of(FLOW, "run", {**LANE, **form}, None).options
    assert options.window == window
    assert options.topics == window.topics


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"times": [f"x={FROM}/{TO}"], "from": FROM, "to": TO},
        {"times": [f"x={FROM}/{TO}"], "topics": ["x"]},
        {"times": [f"x={FROM}"]},
    ],
    ids=brief,
)
def test_what_is_no_window_is_named(form: dict[str, object], golden: Golden) -> None:
    with pytest.raises(BadInput) as refused:
        backfill_of(FLOW, "run", {**LANE, **form}, None)
    golden(refused.value)
