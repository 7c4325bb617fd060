"""`ferry backfill` and `ferry lanes` as people use them, and what they refuse."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.words import to_the_ms
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send
from tests.program import warm_ferry as ferry

HOUR = 3_600_000
LANE = "backfill-history"


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    create_topic(source_cluster, topic, 2)
    return Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.run.max.records": "3"},
    )


def test_a_window_from_the_command_line_to_its_end(lab: Lab, tmp_path: Path) -> None:
    config, (topic,) = lab.write(tmp_path), lab.topics
    begin = time.time_ns() // 1_000_000 - 5 * HOUR
    send(
        producer(lab.source),
        topic,
        [
            Message(value=b"%d" % number, partition=number % 2, timestamp=begin + number * HOUR // 4)
            for number in range(12)
        ],
    )
    window = ("--from", to_the_ms(begin + HOUR), "--to", to_the_ms(begin + 2 * HOUR))
    lane = ("--lane", LANE)
    looked = ferry("backfill", *lane, *window, "--dry-run", "--json", config=config)
    assert looked.code == 0, looked.err
    body = looked.json("backfill")
    assert (body["state"], body["left"], body["runs"]) == ("planned", 4, [])
    done = ferry("backfill", *lane, *window, "--json", config=config)
    assert done.code == 0, done.err
    body = done.json("backfill")
    assert (body["state"], body["records"], body["left"], len(body["runs"])) == ("success", 4, 0, 2)
    assert "to go" in done.err
    own = f"{topic}={to_the_ms(begin + HOUR)}/{to_the_ms(begin + 2 * HOUR)}"
    again = ferry("backfill", *lane, "--times", own, "--json", config=config).json("backfill")
    assert (again["state"], again["records"], again["runs"]) == ("success", 0, [])
    scratch = f"{lab.target_topic(topic)}.backfill.{LANE}"
    rows = read_topic(lab.target.bootstrap, scratch)
    assert sorted(int(row[2] or b"") for part in rows.values() for row in part) == [4, 5, 6, 7]

    verified = ferry("verify", *lane, "--json", config=config)
    assert verified.code == 0, verified.err
    assert (verified.json("verify")["equal"], verified.json("verify")["records"]) == (True, 4)
    receipts = ferry("ledger", *lane, "--json", config=config).json("ledger")["receipts"]
    assert {receipt["target_topic"] for receipt in receipts} == {scratch}
    translated = ferry("translate", lab_flow(lab), topic, "0", "2", *lane, "--json", config=config).json("translate")
    assert (translated["outcome"], translated["target_offset"]) == ("exact", 0)

    (listed,) = ferry("lanes", "list", "--json", config=config).json("lanes-list")["lanes"]
    assert (listed["lane"], listed["records"], listed["windows"], listed["left"]) == (LANE, 4, 1, 0)
    unasked = ferry("lanes", "drop", LANE, config=config)
    assert (unasked.code, "add --yes" in unasked.err) == (2, True)
    assert ferry("lanes", "drop", LANE, "--dry-run", "--json", config=config).json("lanes-drop")["topics"] == [scratch]
    for earlier in (False, True):
        dropped = ferry("lanes", "drop", LANE, "--yes", "--json", config=config)
        assert dropped.code == 0, dropped.err
        assert (dropped.json("lanes-drop")["earlier"] is not None) is earlier


def lab_flow(lab: Lab) -> str:
    return f"{lab.alias}->t{lab.alias}"


def test_history_before_live_goes_into_its_topics_and_live_goes_on_behind_it(lab: Lab, tmp_path: Path) -> None:
    config, (topic,) = lab.write(tmp_path), lab.topics
    now = time.time_ns() // 1_000_000
    sender = producer(lab.source)
    send(sender, topic, [Message(value=b"%d" % hour, timestamp=now - (5 - hour) * HOUR) for hour in range(4)])
    window = ("--from", to_the_ms(now - 6 * HOUR), "--to", to_the_ms(now - 3 * HOUR))
    done = ferry("backfill", "--into-live", *window, config=config)
    assert done.code == 0, done.err
    assert lab.micro_run().records == 2
    assert [row[2] for row in read_topic(lab.target.bootstrap, lab.target_topic(topic))[0]] == [b"0", b"1", b"2", b"3"]
    lab.assert_equal()
    late = ("--from", to_the_ms(now - 7 * HOUR), "--to", to_the_ms(now - 4 * HOUR))
    refused = ferry("backfill", "--into-live", *late, config=config)
    assert (refused.code, "old records would come" in refused.err) == (2, True)


def test_lanes_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "flow.properties"
    config.write_text(
        "clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:2\n"
        "a->b.enabled = true\na->b.topics = .*\n"
    )
    answer = ferry("verify", "--lane", "january", config=config)
    assert (answer.code, "has no lane 'january'" in answer.err) == (2, True)
    answer = ferry("lanes", "drop", "live", "--yes", config=config)
    assert (answer.code, "never live" in answer.err) == (2, True)
    config.write_text(config.read_text() + "ferry.lane = drill-a\n")
    answer = ferry("flows", config=config)
    assert (answer.code, "a drill lane" in answer.err) == (2, True)
