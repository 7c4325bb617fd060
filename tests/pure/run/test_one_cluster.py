"""A flow whose two aliases lead to one cluster is refused."""

from __future__ import annotations

import pytest

from ferry.config.settings import parse_settings
from ferry.lane.session import one_cluster
from tests.golden import Golden
from tests.said import facts_in

FLOW = parse_settings(
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n", "f"
).flow("a->b")


def test_both_aliases_of_one_cluster_are_named_with_their_lines(golden: Golden) -> None:
    why = one_cluster(FLOW, "lkc-1", "lkc-1")
    assert why is not None
    facts = facts_in(why)
    assert (why.code, facts["source"], facts["target"], facts["cluster"]) == ("clusters.same", "a", "b", "lkc-1")
    golden(why)


@pytest.mark.parametrize(("source", "target"), [("lkc-1", "lkc-2"), ("", ""), ("", "lkc-2"), ("lkc-1", "")])
def test_two_clusters_and_ids_that_are_not_known_are_no_reason(source: str, target: str) -> None:
    assert one_cluster(FLOW, source, target) is None
