"""Groups of a topic that is dealt to other partitions: set where they miss nothing, left where others moved them."""

from __future__ import annotations

from pathlib import Path

from ferry.dev import RunningCluster
from ferry.features.groups.acts.of_run import checkpoint, sync_groups
from ferry.features.switch.acts.freeze import frozen
from ferry.features.switch.acts.group_plan import plan_groups
from ferry.features.switch.acts.sides import Sides
from ferry.model import Why
from ferry.model.switch import Switch, SwitchState, Verb
from tests.harness import (
    Lab,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
)
from tests.program import warm_ferry as ferry
from tests.pure.run.unit_flows import SOURCES, TARGETS, Units, lab_of
from tests.tiers import ANSWER_S


def failed_over(lab: Lab) -> tuple[dict[int, int], tuple[str, ...]]:
    """Where a failover would lead the only group, by target partition, and what it says of that."""
    flow = lab.flow.flow
    switch = Switch(
        id="s-1", verb=Verb.FAILOVER, named=flow, via=flow, who="x", approved_by="x", approved_ms=1, at_ms=1
    )
    sides = Sides(verb=Verb.FAILOVER, named=flow, via=lab.flow, back=None, clusters=frozenset())
    state = SwitchState(switch=switch, offset=0)
    sentence = frozen(sides, state, patience_s=ANSWER_S).sentence
    assert sentence.startswith(f"{SOURCES} partitions, 0 offsets ")
    assert sentence.endswith("; 1 group")
    (moving,) = plan_groups(sides, state, settled=False, patience_s=ANSWER_S).moving
    assert moving.why is None
    return {place.partition: offset for place, offset in moving.offsets}, moving.notes


def test_a_group_of_a_dealt_topic_is_set_where_it_misses_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    group = f"g-{new_alias()}"
    settings = {"ferry.chunk.bytes": "4000", "groups": group}
    plain = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    units, plans = Units(lab := lab_of(plain, topic), topic), []
    for start in (0, 300, 600):
        send(producer(source_cluster), topic, numbered(300, partitions=SOURCES, start=start))
        plans.append(units.run())
    read = {number: 100 + 7 * number for number in range(SOURCES)}  # of 180 each
    commit_offsets(source_cluster, group, {(topic, number): at for number, at in read.items()})

    told = ferry("translate", str(lab.flow.flow), "--group", group, "--json", config=lab.write(tmp_path))
    assert told.code == 1, told.err
    body = told.json("translate-group")
    assert len(body["not_translated"]) == SOURCES
    places = {one["target_partition"]: (one["target_offset"], one["read_again_at_most"]) for one in body["dealt"]}
    assert places.keys() == set(range(TARGETS))
    unread = {
        row[2] for number, rows in read_topic(source_cluster.bootstrap, topic).items() for row in rows[read[number] :]
    }
    again = 0
    for number, rows in read_topic(target_cluster.bootstrap, units.target).items():
        at, most = places[number]
        assert all(row[0] >= at for row in rows if row[2] in unread)
        assert sum(row[0] >= at and row[2] not in unread for row in rows) <= most
        assert at > rows[0][0], "what was read long ago is not read again"
        again += most
    assert 0 < again < 3 * 180, "of what the last run but one has dealt"

    dry = ferry("groups", "sync", str(lab.flow.flow), "--dry-run", "--json", config=lab.write(tmp_path))
    writes = dry.json("groups-sync")["writes"]
    assert {one["target_partition"]: (one["target_offset"], one["read_again_at_most"]) for one in writes} == places
    assert all(one["read"] == list(read.values()) for one in writes)

    offsets, (said,) = failed_over(lab)
    assert (offsets, f"of {units.target}, " in said, f" {again} records at most " in said) == (
        {number: at for number, (at, _) in places.items()},
        True,
        True,
    )

    with lab.runs() as runs:
        done = checkpoint(runs, plans[-1].run)
    assert done is not None
    assert (done.left, done.groups, done.offsets, done.again) == ((), 1, TARGETS, again)

    def standing() -> dict[int, int]:
        return committed_offsets(target_cluster, group, units.target, TARGETS)

    assert standing() == {number: at for number, (at, _) in places.items()}
    ends = dict.fromkeys(range(SOURCES), 180)
    commit_offsets(source_cluster, group, {(topic, number): at for number, at in ends.items()})
    commit_offsets(target_cluster, group, {(units.target, 0): 1})
    with lab.runs() as runs:
        _, done = sync_groups(runs, "groups-2")
    assert done is not None
    assert [(one.why, one.place and one.place.partition) for one in done.left] == [(Why.MOVED, 0)]
    now, there = standing(), read_topic(target_cluster.bootstrap, units.target)
    assert (now[0], done.again) == (1, 0)
    assert all(now[number] == there[number][-1][0] + 2 for number in (1, 2)), "behind the marker: it has no lag"

    # It goes back at the source, so it does there.
    commit_offsets(source_cluster, group, {(topic, number): at for number, at in read.items()})
    with lab.runs() as runs:
        sync_groups(runs, "groups-3")
    assert standing() == {number: at for number, (at, _) in places.items()} | {0: 1}
