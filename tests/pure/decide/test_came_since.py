"""What came to a cluster after its clients were moved away: readiness of the flow back names it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.features.switch.rules.readiness import came_since
from ferry.model.switch import SwitchOptions, Verb
from tests.golden import Golden
from tests.pure.decide.switched import switched
from tests.pure.decide.values import place


@pytest.mark.parametrize(
    ("ends", "copied"),
    [
        pytest.param({"orders-0": 5, "orders-1": 7}, (), id="nothing"),
        pytest.param({"orders-0": 8, "orders-1": 8, "orders-2": 1, "late-0": 9}, (), id="to three partitions"),
        pytest.param({"orders-0": 8}, (), id="one does not tell"),
        pytest.param({"orders-0": 8, "orders-1": 8}, ("orders",), id="the flow back writes there"),
    ],
)
def test_what_came_to_the_cluster_that_clients_left_is_named(
    ends: dict[str, int], copied: tuple[str, ...], golden: Golden
) -> None:
    now = {place(name[:-2], int(name[-1])): end for name, end in ends.items()}
    check = came_since(
        switched(("orders", 0, 5), ("orders", 1, 7), ("bills", 0, 2)), {**now, place("bills"): 2}, copied
    )
    assert check is not None
    known = {"orders-0", "orders-1"} <= ends.keys() or bool(copied)
    assert (check.name, check.ok, check.known) == ("stranded", True, known)
    golden(check.message)


@pytest.mark.parametrize("reverse", [True, False])
def test_a_failback_that_exports_records_is_named_only_after_a_switch_that_starts_the_flow_back(reverse: bool) -> None:
    state = switched(("orders", 0, 5))
    one_way = replace(state, switch=replace(state.switch, options=SwitchOptions(reverse=reverse)))
    check = came_since(one_way, {place("orders"): 8}, ())
    assert check is not None
    assert (check.ok, "ferry failback" in check.message) == (True, reverse)


def test_if_no_partition_reports_its_end_nothing_is_said_to_have_come_to_none() -> None:
    check = came_since(switched(("orders", 0, 5)), {}, ())
    assert check is not None
    assert (check.ok, check.known, check.message.startswith("whether")) == (True, False, True)


def test_after_a_failover_or_where_the_flow_back_writes_all_topics_nothing_is_compared() -> None:
    assert came_since(switched(verb=Verb.FAILOVER), {place("orders"): 5}, ()) is None
    assert came_since(switched(("orders", 0, 3)), {place("orders"): 5}, {"orders"}) is None
