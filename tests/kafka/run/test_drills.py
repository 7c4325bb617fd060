"""Drills between two real clusters: what they find is true, production stays as it was, and nothing is left."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.features.switch.acts.application import scratch_group
from ferry.features.switch.rules.report import FIRST_RECORD_MEANS
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
    wait_until,
    watermark,
)
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

RECORDS = 4_000
PARTITIONS = 2
LATER = 60
"""Records that the live lane has not copied when a drill begins."""


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster) -> Lab:
    """A flow as of `drill_lab`."""
    return drill_lab(source_cluster, target_cluster)


def drill_lab(source: RunningCluster, target: RunningCluster) -> Lab:
    """A flow that has copied a topic; a group stands half-way in one partition, and at the end of the other."""
    alias = new_alias()
    topic = f"drilled-{alias}"
    group = f"billing-{alias}"
    settings = {
        "groups": f"{group}.*",
        "ferry.deployment": alias,
        "ferry.rpo.seconds": "3600",
        "ferry.rto.seconds": "300",
    }
    lab = Lab(source=source, target=target, alias=alias, topics=(topic,), settings=settings)
    create_topic(source, topic, PARTITIONS)
    send(producer(source), topic, numbered(RECORDS, partitions=PARTITIONS))
    lab.micro_run()
    send(producer(source), topic, numbered(LATER, partitions=PARTITIONS, start=RECORDS))
    commit_offsets(source, group, {(topic, 0): 700, (topic, 1): watermark(source, topic, 1)})
    return lab


def drilled(lab: Lab, folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """A drill's answer, which is what its report says."""
    reports = folder / "reports"
    answer = ferry("drill", *arguments, "--report", reports, "--json", config=lab.write(folder))
    assert answer.code == code, f"{answer.out}\n{answer.err}"
    body: dict[str, Any] = answer.json("drill")
    kept = json.loads(Path(body["report"]["json"]).read_text())
    assert (kept["id"], kept["outcome"], kept["rpo"]) == (body["id"], body["outcome"], body["rpo"])
    assert ferry("reports", "verify", reports, "--chain-only").code == 0
    return body


def whole_seconds(body: dict[str, Any]) -> float:
    """From the begin of a drill's first step to the end of its last one."""
    ended, began = ([step[name] for step in body["steps"]] for name in ("ended_ms", "began_ms"))
    return float(max(ended) - min(began)) / 1000


def left_on(cluster: RunningCluster, lab: Lab) -> tuple[set[str], set[str]]:
    """Topics and groups of the lab on a cluster."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = set(admin.list_topics(timeout=ANSWER_S).topics)
    groups = {group.group_id for group in admin.list_consumer_groups().result(ANSWER_S).valid}
    groups = {name for name in groups if lab.alias in name or name.startswith("ferry.smoke.")}
    return {name for name in topics if lab.alias in name}, groups


def has_each_way(body: dict[str, Any], *ways: str) -> None:
    """Assert that a full drill that lost nothing has each way's figures apart."""
    found = [(way["via"], way["records"], way["seconds"]) for way in body["rpo"]["ways"]]
    assert found == [(way, 0, 0.0) for way in ways]
    lost_at = [way["at_ms"] for way in body["rpo"]["ways"]]
    stops = [step["ended_ms"] for step in body["steps"] if step["name"].endswith("-stop")]
    assert lost_at == stops, "each way's losses were measured when its flow was stopped"
    for rows in (body["rpo"]["partitions"], body["groups"]):
        assert {row.get("via", body["flow"]) for row in rows} == set(ways)
    assert {goal["of"] for goal in body["goals"]} == set(ways)


def has_first_record(body: dict[str, Any]) -> bool:
    """Whether a consumer of the new cluster had a record, no sooner than the groups' offsets could be read there."""
    rto = body["rto"]
    return bool(rto["seconds"] <= rto["first_record_seconds"] <= whole_seconds(body)) and bool(
        rto["first_record_means"].startswith(FIRST_RECORD_MEANS)
    )


def test_a_tabletop_drill_counts_what_would_be_lost_and_writes_nothing_but_its_report(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    before = left_on(lab.target, lab)
    body = drilled(lab, tmp_path, "tabletop")
    assert left_on(lab.target, lab) == before
    assert (body["outcome"], body["rpo"]["records"]) == ("success", LATER)
    assert [(row["topic"], row["records"]) for row in body["rpo"]["partitions"]] == [(topic, LATER // PARTITIONS)] * 2
    first_ms = min(row[4] for rows in read_topic(lab.source.bootstrap, topic).values() for row in rows)
    assert 0 < 1000 * body["rpo"]["seconds"] <= wall_ms() - first_ms
    (group,) = body["groups"]
    # The half of the later records that the group has read in partition 1 is not there yet.
    assert (group["committed"], group["beyond"], group["exact"]) == (2, LATER // PARTITIONS, None)
    assert [step["outcome"] for step in body["steps"]] == ["done"] * len(body["steps"])
    late = replace(lab, settings={**lab.settings, "ferry.rpo.seconds": "0"})
    missed = drilled(late, tmp_path, "tabletop", code=1)
    assert (missed["outcome"], len(missed["deviations"])) == ("deviations", 1)
    dry = ferry("drills", "tabletop", "--dry-run", "--json", config=lab.write(tmp_path)).json("drill")
    assert dry["report"] is None


def test_a_shadow_drill_copies_compares_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    copy = lab.target_topic(topic)
    before, rows = left_on(lab.target, lab), read_topic(lab.target.bootstrap, copy)
    body = drilled(lab, tmp_path, "shadow", "--from", "earliest", "--approve-by", "anna")
    assert (body["outcome"], body["deviations"], body["refusals"]) == ("success", [], [])
    checked = body["verification"]
    assert (checked["equal"], checked["records"], checked["partitions"]) == (True, RECORDS + LATER, PARTITIONS)
    (group,) = body["groups"]
    assert (group["committed"], group["exact"], group["reread"], group["skipped"], group["beyond"]) == (2, 2, 0, 0, 0)
    assert 0 < body["rto"]["seconds"] <= whole_seconds(body)
    assert has_first_record(body)
    assert body["samples"][0]["lag_records"] >= RECORDS + LATER
    assert body["samples"][-1]["lag_records"] == 0
    assert {step["name"]: step["approved_by"].partition(" (")[0] for step in body["steps"] if step["approved_by"]} == {
        "copy": "anna"
    }
    assert [check["held"] for check in body["checks"]] == [True] * 3
    assert left_on(lab.target, lab) == before
    assert read_topic(lab.target.bootstrap, copy) == rows
    dry = ferry("drills", "shadow", "--dry-run", "--json", config=lab.write(tmp_path)).json("drill-dry-run")
    assert dry["would"][1].startswith(f"copy {RECORDS + LATER} offsets of {PARTITIONS} partitions ")
    assert left_on(lab.target, lab) == before


def test_a_drill_that_tried_out_nothing_is_no_success(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    now = f"{wall_ms()}"
    idle = drilled(lab, tmp_path, "shadow", "--from", now, code=1)
    assert (idle["outcome"], idle["verification"], idle["groups"][0]["reread"]) == ("deviations", None, None)
    assert idle["rto"]["first_record_seconds"] is None
    assert idle["rto"]["first_record_means"].startswith("not known: ")
    assert idle["deviations"][0].startswith("nothing was copied, ")
    assert ferry("pause", "--topic", topic, "--reason", "a drill", config=lab.write(tmp_path)).code == 0
    paused = drilled(lab, tmp_path, "partial", "--topic", topic, "--approve-by", "anna", code=1)
    assert paused["outcome"] == "deviations"
    assert paused["deviations"][0].startswith(f"paused, so not copied: {topic};")


def test_a_partial_drill_brings_one_topic_and_its_group_to_where_they_are_at_the_source(
    lab: Lab, tmp_path: Path
) -> None:
    (topic,) = lab.topics
    group = f"billing-{lab.alias}"
    given = ("partial", "--topic", topic, "--group", group)
    unread = f"unread-{topic}"  # the flow's as well, but not the group's
    create_topic(lab.source, unread, 1)
    send(producer(lab.source), unread, numbered(7))
    lab = replace(lab, topics=(topic, unread))
    assert ferry("drill", *given, config=lab.write(tmp_path)).code == 2
    assert ferry("drills", "partial", "--approve-by", "anna", config=lab.write(tmp_path)).code == 2
    body = drilled(lab, tmp_path, *given, "--approve-by", "anna")
    assert (body["outcome"], body["rpo"]["records"], body["deviations"]) == ("success", LATER, [])
    assert body["verification"]["records"] == RECORDS + LATER
    assert [body["samples"][at]["lag_records"] for at in (0, -1)] == [LATER, 0]
    assert has_first_record(body)
    assert scratch_group(body["id"]) not in left_on(lab.target, lab)[1]
    (moved,) = body["groups"]
    assert (moved["target_group"], moved["committed"], moved["exact"], moved["reread"]) == (group, 2, 2, 0)
    assert committed_offsets(lab.target, group, lab.target_topic(topic), PARTITIONS).keys() == {0, 1}
    for some in (given[:-1], ("partial", "--group")):
        other = drilled(lab, tmp_path, *some, "nobody", "--approve-by", "anna", code=2)
        assert "group nobody" in other["refusals"][0]
    send(producer(lab.source), topic, numbered(LATER, partitions=PARTITIONS, start=RECORDS + LATER))
    alone = drilled(lab, tmp_path, "partial", "--group", group, "--approve-by", "anna")
    assert (alone["outcome"], alone["rpo"]["records"]) == ("success", LATER)
    assert {row["topic"] for row in alone["rpo"]["partitions"]} == {topic}, "only what the group reads"
    assert alone["verification"]["records"] == RECORDS + 2 * LATER


def test_a_killed_shadow_drill_is_named_and_its_remains_go(lab: Lab, tmp_path: Path) -> None:
    config = lab.write(tmp_path)
    before = left_on(lab.target, lab)
    slow = replace(lab, settings={**lab.settings, "ferry.throttle.bytes.per.second": "20000"}).write(tmp_path)
    process = start("drills", "shadow", "--from", "earliest", "--report", tmp_path / "reports", config=slow)

    def copies() -> bool:
        assert process.poll() is None, finished(process)
        return left_on(lab.target, lab)[0] > before[0]

    wait_until(copies, "a topic of the drill")
    process.send_signal(signal.SIGKILL)
    finished(process)
    config = lab.write(tmp_path)
    (lane,) = {name.rpartition(".")[2] for name in left_on(lab.target, lab)[0] - before[0]}
    refused = ferry("drills", "shadow", "--from", "earliest", "--report", tmp_path / "reports", config=config)
    assert refused.code == 2
    remedy = ("lanes", "drop", f"{lab.alias}->t{lab.alias}", lane, "--yes", "--interrupt")
    assert f"ferry {' '.join(remedy)}".replace(remedy[2], f"'{remedy[2]}'") in refused.out
    assert ferry(*remedy, "--dry-run", config=config).code == 0
    body = drilled(lab, tmp_path, "shadow", "--from", "earliest", "--clean")
    (note,) = body["notes"]
    assert f" lane {lane}: it was removed" in note
    assert left_on(lab.target, lab) == before


def test_a_report_that_cannot_be_written_lets_nothing_begin(lab: Lab, tmp_path: Path) -> None:
    before = left_on(lab.target, lab)
    (tmp_path / "file").write_text("")
    for verb in ("tabletop", "shadow"):
        answer = ferry("drill", verb, "--report", tmp_path / "file", config=lab.write(tmp_path))
        assert (answer.code, "nothing was begun" in answer.err) == (2, True)
    assert left_on(lab.target, lab) == before


@pytest.mark.timeout(300)  # a switch there, one back, and each of them asked for again, in ten commands
def test_a_full_drill_moves_the_groups_there_and_back_and_loses_nothing(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    there = f"t{lab.alias}"
    both = {f"{there}->{lab.alias}.enabled": "true", "emit.heartbeats.enabled": "false"}
    lab = replace(lab, settings={**lab.settings, **both})
    config, flow = lab.write(tmp_path), f"{lab.alias}->{there}"
    reports = tmp_path / "reports"
    for missing in ([], ["--approve-by", " "]):
        assert ferry("drills", "full", flow, "--report", reports, *missing, config=config).code == 2
    dry = ferry("drills", "full", flow, "--dry-run", "--report", reports, config=config)
    assert (dry.code, "failback" in dry.out.splitlines()[-1]) == (0, True), dry
    before = committed_offsets(lab.source, f"billing-{lab.alias}", topic, PARTITIONS)
    given: tuple[str, ...] = ("--approve-by", "anna", "--quiet-seconds", "0.5", "--id", f"full-{lab.alias}")
    # The hook fails on the way back alone: what is left of the drill is that way, and its hook has to be given again.
    halfway = ("--redirect-command", "sh -c 'test $FERRY_SWITCH_VERB = switchover'")
    stopped = ferry("drills", "full", flow, *given, *halfway, "--report", reports, config=config, seconds=200)
    assert (stopped.code, "exit code 1" in stopped.out) == (4, True), stopped
    unhooked = ferry("drills", "full", flow, *given, "--report", reports, config=config)
    assert (unhooked.code, "was begun with --redirect-command" in unhooked.out) == (2, True), unhooked
    given = (*given, "--redirect-command", "true")
    left = ferry("drills", "full", flow, *given, "--dry-run", "--report", reports, config=config)
    assert (left.code, left.out.startswith("1. call the hook that ")) == (0, True), left
    answer = ferry("drills", "full", flow, *given, "--report", reports, "--json", config=config, seconds=200)
    assert answer.code == 0, answer
    body = answer.json("drill")
    assert (body["outcome"], body["rpo"]["records"], body["deviations"]) == ("success", None, [])
    way_back = f"{there}->{lab.alias}"
    has_each_way(body, flow, way_back)
    names = [step["name"] for step in body["steps"]]
    assert names.index("switchover-smoke") < names.index("failback-drain") < names.index("failback-smoke")
    assert {step["approved_by"].partition(" (")[0] for step in body["steps"]} == {"anna"}
    assert 0 < body["rto"]["seconds"] <= whole_seconds(body)
    assert has_first_record(body)
    checked = body["verification"]
    assert (checked["equal"], checked["complete"], checked["differences"]) == (True, True, 0)
    compared = f"{checked['records']} records of {flow} were compared, "
    assert any(note.startswith(compared) for note in body["notes"])
    assert checked["records"] > 0
    assert [(group["reread"], group["skipped"]) for group in body["groups"]] == [(0, 0)] * 2
    # What the ledger has of the way out, though the process that drained ended before the drill did.
    out = [one["lag_records"] for one in body["samples"] if "via" not in one]
    assert (out[0], out[-1]) == (LATER, 0)
    assert committed_offsets(lab.source, f"billing-{lab.alias}", topic, PARTITIONS) == before
    again = ferry("drills", "full", flow, *given, "--report", reports, "--json", config=config, seconds=200)
    assert (again.code, again.json("drill")["steps"]) == (0, body["steps"])

    told = ferry("reports", "switch", flow, f"full-{lab.alias}-back", "--report", reports, "--json", config=config)
    back = told.json("drill")
    assert (told.code, back["kind"], back["outcome"], back["flow"]) == (
        0,
        "failback",
        "success",
        way_back,
    )
    assert [{**row, "via": way_back} for row in back["rpo"]["partitions"]] == [
        row for row in body["rpo"]["partitions"] if "via" in row
    ]
    assert [step["name"] for step in back["steps"]] == [name for name in names if name.startswith("failback-")]
    assert ferry("reports", "verify", reports, "--chain-only").code == 0
