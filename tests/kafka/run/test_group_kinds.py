"""Share groups and Streams groups on real brokers: named, never translated, and no reason to leave others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.dev.jars import jars, java
from ferry.features.switch.acts.group_plan import plan_groups
from ferry.features.switch.acts.sides import Sides
from ferry.model.switch import Switch, SwitchOptions, SwitchState, Verb
from tests.commands import compile_java
from tests.harness import Lab, commit_offsets, committed_offsets, create_topic, new_alias, numbered, producer, send
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

SOURCE = Path(__file__).with_name("GroupKinds.java")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of `GroupKinds`."""
    folder = tmp_path_factory.mktemp("kinds")
    kafka = ":".join(map(str, sorted(jars("4.3.0").glob("*.jar"))))
    compile_java(SOURCE, class_path=kafka, into=folder)
    return f"{folder}:{kafka}"


@contextmanager
def members(classes: str, cluster: RunningCluster, topic: str, share: str, streams: str) -> Iterator[None]:
    """One member in a share group, and one in a Streams group."""
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", classes, "GroupKinds"]
    with subprocess.Popen(
        [*command, cluster.bootstrap, topic, share, streams],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert any(line == "joined\n" for line in process.stdout), "it ended before it had joined"
            yield
            process.stdin.write("leave\n")
            process.stdin.flush()
            assert process.wait(2 * ANSWER_S) == 0
        finally:
            process.kill()


@pytest.mark.timeout(180)
def test_share_and_streams_groups_are_named_on_either_side_and_the_others_are_written(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, classes: str
) -> None:
    alias = new_alias()
    settings = {"groups": f"{alias}.*"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=settings)
    app, mixed, share, streams = (f"{alias}-{name}" for name in ("app", "mixed", "share", "streams"))
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(20))
    assert lab.micro_run().records == 20
    config, copy = lab.write(tmp_path), lab.target_topic(topic)
    for name in (app, mixed):
        commit_offsets(source_cluster, name, {(topic, 0): 7})

    def left() -> tuple[int, dict[str, str], dict[str, str]]:
        """Exit code of a sync, and what it says of groups that it left."""
        answer = ferry("groups", "sync", "--json", config=config)
        found = answer.json("groups-sync")["left"]
        return answer.code, {one["group"]: one["why"] for one in found}, {one["group"]: one["message"] for one in found}

    with (
        members(classes, source_cluster, topic, share, streams),
        members(classes, target_cluster, copy, mixed, f"{alias}-there"),
    ):
        code, why, said = left()
        assert (code, why) == (1, {share: "kind", streams: "kind", mixed: "active"})
        assert f"group {share} on {alias} is a share " in said[share]
        assert f"group {streams} on {alias} is a Streams " in said[streams]
        assert committed_offsets(target_cluster, app, copy, 1) == {0: 7}
        shown = ferry("groups", "--json", config=config)
        assert {group["group"] for group in shown.json("groups")["groups"]} >= {app, mixed, share, streams}, shown.err
        flow = lab.flow.flow
        failover = Switch(
            id="s-1", verb=Verb.FAILOVER, named=flow, via=flow, who="x", approved_by="x", approved_ms=1, at_ms=1
        )
        sides = Sides(verb=Verb.FAILOVER, named=flow, via=lab.flow, back=None, clusters=frozenset())
        made = plan_groups(sides, SwitchState(switch=failover, offset=0), settled=False, patience_s=ANSWER_S)
        assert {one.group: one.why for one in made.moving if one.aside} == {
            name: said[name] for name in (share, streams)
        }
        assert [one.group for one in made.against(SwitchOptions())] == [mixed], "what no switch moves holds none up"
    code, why, said = left()  # empty by now, and still what they are
    assert (code, why[share], why[mixed]) == (1, "kind", "failed")
    assert f"group {mixed} is a share group on t{alias} " in said[mixed]
