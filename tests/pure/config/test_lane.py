"""A flow in a lane beside the live one: scratch topics that nobody copies on, and nothing done but copying."""

from __future__ import annotations

import pytest

from ferry.config.flow.guards import OnGuard
from ferry.config.flow.lane import in_lane, lane_flow
from ferry.config.reasons import why_topic
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from tests.golden import Golden

FILE = """
clusters = east, west
east.bootstrap.servers = a:1
west.bootstrap.servers = b:1
east->west.enabled = true
west->east.enabled = true
topics = .*
ferry.merge.topics = .*
ferry.guard.retention.passed = skip
ferry.sync.topic.deletes.enabled = true
replication.policy.class = {policy}
"""
LANE = "backfill-january"


@pytest.mark.parametrize(
    ("policy", "copy"), [("DefaultReplicationPolicy", "east.orders"), ("IdentityReplicationPolicy", "orders")]
)
def test_a_lane_has_scratch_topics_and_only_copies(policy: str, copy: str, golden: Golden) -> None:
    settings = parse_settings(FILE.format(policy=policy), "lanes.properties")
    live, back = settings.flow("east->west"), settings.flow("west->east")
    flow = in_lane(live, LANE)
    scratch = f"{copy}.backfill.{LANE}"
    assert flow.topics.policy.format_remote_topic("east", "orders") == scratch
    for each in (live, flow, back):
        golden(each.topics.selection.why_not(scratch))
    assert not why_topic(back, settings.origins[back.flow], scratch).taken
    assert flow.topics.selection.takes("orders")
    assert flow.topics.guards.retention_passed.default is OnGuard.FAIL
    assert not flow.topics.merge.matches("orders")
    switches = (
        *(
            flow.topics.sync_topic_deletes,
            flow.topics.sync_topic_configs,
            flow.syncs_acls,
            flow.syncs_groups,
            flow.ledger.prunes,
        ),
        *(flow.emits_checkpoints, flow.mirror.emit_offset_syncs, flow.mirror.emit_heartbeats.enabled),
    )
    assert not any(switches)
    assert in_lane(flow, LANE).topics.policy == flow.topics.policy, "once is enough"
    assert lane_flow(live, None) is live
    assert live.topics.policy.format_remote_topic("east", "orders") == copy


def test_the_live_lane_cannot_be_called_like_another(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        parse_settings(FILE.format(policy="DefaultReplicationPolicy") + "ferry.lane = drill-a\n", "lanes.properties")
    golden(caught.value)


@pytest.mark.parametrize("windows", ["@once", "@continuous", "every day"])
def test_windows_repeat(windows: str) -> None:
    text = FILE.format(policy="DefaultReplicationPolicy") + f"ferry.backfill.windows = {windows}\n"
    with pytest.raises(BadInput, match=r"ferry\.backfill\.windows"):
        parse_settings(text, "lanes.properties")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", ""),
        ("sync.group.offsets.enabled = false", "sync.group.offsets.enabled is false"),
        ("sync.group.offsets.interval.seconds = -1", "sync.group.offsets.interval.seconds is negative"),
    ],
)
def test_which_line_keeps_runs_from_writing_offsets_of_groups(line: str, why: str) -> None:
    flow = parse_settings(FILE.format(policy="DefaultReplicationPolicy") + line, "lanes.properties").flow("east->west")
    assert flow.unsynced == why
    assert flow.syncs_groups is (not why)
