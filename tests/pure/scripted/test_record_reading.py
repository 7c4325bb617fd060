"""What the thread that reads records says of its waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast
from unittest.mock import patch

import pytest

from ferry.config.client_options import ENGINE_CHOOSES
from ferry.features.records.acts import reading
from ferry.features.records.acts.reading import ReadSpec, ReadWaits, read_batches
from ferry.features.records.rules.ranges import ReadRange
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.throttle import Throttle
from tests.pure.scripted.lane import Lane, place
from tests.pure.scripted.wire import connected, on_the_wire

QUOTA_S = 2.5


@pytest.mark.parametrize("rate", [None, 100])
def test_waits_for_a_throttle_and_for_quotas_are_kept_up_to_date(rate: int | None) -> None:
    lane, waits = Lane([[4] * 20]), ReadWaits()
    spec = ReadSpec(
        alias="a",
        connection=cast("Any", None),
        fetch=ENGINE_CHOOSES,
        pieces=(ReadRange(place(), 0, 80),),
        topic_ids={},
        bytes_per_second=rate,
        in_order=True,
    )
    with on_the_wire(lane.source) as (clock, loop):

        @contextmanager
        def opened(*_: Any, **__: Any) -> Iterator[Cluster]:
            cluster = connected(loop, lane.source)
            loop.run(cluster.open)
            cluster.throttled_s = QUOTA_S
            yield cluster

        throttle = partial(Throttle, clock=clock.now)
        with patch.object(reading, "connected", opened), patch.object(reading, "Throttle", throttle):
            began = clock.skipped
            found = list(read_batches(spec, waits=waits))
    assert len(found) == 20
    assert waits.quota_s == QUOTA_S
    if rate is None:
        assert waits.throttle_s == 0
    else:
        assert 0 < waits.throttle_s <= clock.skipped - began
