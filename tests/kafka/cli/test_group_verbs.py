"""`ferry groups sync|snapshot|diff|rollback` and what a run says of groups: as a user types them, checked by schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.cli.identity import new_run
from ferry.dev import RunningCluster
from ferry.features.groups.rules.kept_snapshots import made_by
from tests.harness import Lab, commit_offsets, committed_offsets, create_topic, new_alias, numbered, producer, send
from tests.program import warm_ferry as ferry


@pytest.mark.timeout(180)
def test_the_verbs_of_groups(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    alias = new_alias()
    app, other = f"app-{alias}", f"other-{alias}"
    settings = {"groups": f".*-{alias}"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=settings)
    config, copy = lab.write(tmp_path), lab.target_topic(topic)
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    commit_offsets(source_cluster, app, {(topic, 0): 4})
    commit_offsets(source_cluster, other, {(topic, 0): 6})

    ran = ferry("run", "--json", config=config)
    body = ran.json("run")
    assert (ran.code, body["state"], body["groups"]["groups"], body["groups"]["left"]) == (0, "success", 2, [])
    assert committed_offsets(target_cluster, app, copy, 1) == {0: 4}

    commit_offsets(source_cluster, app, {(topic, 0): 99})
    commit_offsets(target_cluster, other, {(copy, 0): 1})
    wish = ferry("groups", "sync", "--dry-run", "--json", config=config)
    told = wish.json("groups-sync")
    assert (wish.code, told["run"]) == (1, None)
    assert [(one["group"], one["outcome"], one["before"]) for one in told["writes"]] == [(app, "ahead", 4)]
    assert [(one["group"], one["why"]) for one in told["left"]] == [(other, "moved")]
    assert committed_offsets(target_cluster, app, copy, 1) == {0: 4}
    said = ferry("groups", "sync", config=config)
    assert (said.code, f"group left: group {other} is at 1 of {copy}-0 on t{alias}" in said.out) == (1, True)
    assert "1 at the copied end, " in said.out
    forced = ferry("groups", "sync", "--force", "--group", other, "--json", config=config)
    assert (forced.code, forced.json("groups-sync")["left"]) == (0, [])
    assert committed_offsets(target_cluster, other, copy, 1) == {0: 6}

    taken = ferry("groups", "snapshot", "--snapshot", "drill", "--json", config=config)
    (snapshot,) = taken.json("groups-snapshot")["snapshots"]
    assert (snapshot["name"], snapshot["groups"]) == ("drill", 2)
    commit_offsets(source_cluster, app, {(topic, 0): 1})
    assert ferry("groups", "sync", "--group", app, config=config).code == 0
    differ = ferry("groups", "diff", "--snapshot", "drill", "--json", config=config)
    found = [(one["group"], one["now"]) for one in differ.json("groups-diff")["differences"]]
    assert (differ.code, found) == (1, [(app, 1)])
    assert "1 offset differs from " in ferry("groups", "diff", "--snapshot", "drill", config=config).out
    dry = ferry("groups", "rollback", "--snapshot", "drill", "--dry-run", "--json", config=config)
    assert [one["group"] for one in dry.json("groups-rollback")["writes"]] == [app]
    assert committed_offsets(target_cluster, app, copy, 1) == {0: 1}
    back = ferry("groups", "rollback", "--snapshot", "drill", config=config)
    assert back.code == 0, back.err
    assert "ferry groups rollback --snapshot rollback-" in back.out
    assert ferry("groups", "diff", "--snapshot", "drill", config=config).out.startswith("0 offsets differ from")
    listed = ferry("groups", "snapshots", "list", "--json", config=config).json("groups-snapshot")["snapshots"]
    assert [one["name"].partition("-")[0] for one in listed] == [
        "cli",
        "groups",
        "groups",
        "drill",
        "groups",
        "rollback",
    ]
    assert ferry("groups", "snapshots", "drop", "drill", "--yes", config=config).code == 0
    unknown = ferry("groups", "rollback", "--snapshot", "drill", config=config)
    assert (unknown.code, "no snapshot 'drill'" in unknown.err) == (2, True)
    for name, why in (
        (f"none-{alias}", f"is not on {alias}"),
        ("elsewhere", "is excluded by"),
        ("ferry.x", "holds Ferry's own positions"),
    ):
        refused = ferry("groups", "sync", "--group", name, config=config)
        assert (refused.code, f"group {name} " in refused.out, why in refused.out) == (1, True, True)


@pytest.mark.parametrize(
    ("run", "by"),
    [
        (new_run("groups"), "ferry groups sync"),
        (new_run("rollback"), "ferry groups rollback"),
        ("manual__2026-11-20", "a run"),
        ("groups-of-mine", "a run"),
    ],
    ids=["sync", "rollback", "scheduled", "named-by-somebody"],  # each process makes ids of its own
)
def test_a_snapshot_tells_what_made_it(run: str, by: str) -> None:
    assert made_by(run) == by
