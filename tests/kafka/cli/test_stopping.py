"""SIGTERM ends `ferry run` with its report and exit code 1, whenever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, wait_until
from tests.program import Answer, environment, finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

SIGNALLED = """
import importlib, os, signal, sys
from ferry.program import main

place, name = sys.argv[1].rsplit(".", 1)
module, _, owner = place.partition(":")
where = importlib.import_module(module)
for part in owner.split(".") if owner else ():
    where = getattr(where, part)
before = getattr(where, name)

def signalled(*arguments, **options):
    signal.raise_signal(signal.SIGTERM)
    return before(*arguments, **options)

setattr(where, name, signalled)
del sys.argv[1]
main()
"""
"""The program, which gets SIGTERM when it comes to a function for the first time."""

BACKFILL = ("backfill", "--lane", "backfill-x", "--from", "2020-01-01T00:00:00Z", "--to")

OPENING = "ferry.run.micro_run:MicroRuns.open_new"
SESSION = "ferry.features.records.spark.local_session"
GROUPS = "ferry.features.groups.acts.of_run.checkpoint"
REPORT = "ferry.run.micro_run:MicroRuns.report"


def signalled(place: str, *arguments: str, config: Path) -> Answer:
    """Run the program; SIGTERM comes at `place`, a function as `module:Class.name` or `module.name`."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, place, *arguments],
        capture_output=True,
        text=True,
        env=environment(config),
        check=False,
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow with 100 records in two slices."""
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(100, partitions=2))
    return Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))


def catches(process: psutil.Process, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(mask >> (number - 1) & 1)


@pytest.mark.parametrize("command", [("run",), BACKFILL])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_not_opened_yet_ends_with_one_sentence(
    tmp_path: Path, command: tuple[str, ...], number: signal.Signals
) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text(
        "clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:1\na->b.enabled = true\n"
    )
    until = ["2021-01-01T00:00:00Z"] if command is BACKFILL else []
    process = start(*command, *until, "--json", config=config)
    wait_until(lambda: catches(psutil.Process(process.pid), signal.SIGTERM), "a run that catches SIGTERM")
    process.send_signal(number)
    answer = finished(process)
    assert answer.code == 1, answer.err
    assert answer.json("error")["error"]["kind"] == "interrupted"
    assert f"{number.name} arrived before anything began" in answer.err


def test_a_run_that_is_being_planned_copies_nothing_and_reports(lab: Lab, tmp_path: Path) -> None:
    config = lab.write(tmp_path)
    answer = signalled(OPENING, "run", "--run", "r1", "--json", config=config)
    assert answer.code == 1, answer.err
    body = answer.json("run")
    assert (body["run"], body["state"], body["records"]) == ("r1", "failed", 0)
    assert {row["kind"] for row in body["refusals"]} == {"unfinished"}
    assert ferry("run", "--resume", "r1", config=config).code == 0
    assert lab.assert_equal() == 100


@pytest.mark.parametrize("place", [GROUPS, REPORT])
def test_a_run_that_has_copied_all_still_reports(lab: Lab, tmp_path: Path, place: str) -> None:
    answer = signalled(place, "run", "--json", config=lab.write(tmp_path))
    assert answer.code == 1, answer.err
    body = answer.json("run")
    assert (body["state"], body["records"]) == ("success", 100)
    assert lab.assert_equal() == 100


def test_a_run_that_is_to_verify_itself_says_that_it_did_not(lab: Lab, tmp_path: Path) -> None:
    config = lab.write(tmp_path)
    config.write_text(config.read_text() + "ferry.verify = content\n")
    answer = signalled(GROUPS, "run", "--json", config=config)
    assert answer.code == 1, answer.err
    body = answer.json("run")
    assert (body["state"], body["records"]) == ("partial", 100)
    (why,) = body["verified"]["not_compared"]
    assert "SIGTERM" in why


def test_a_backfill_reports(lab: Lab, tmp_path: Path) -> None:
    until = datetime.now(UTC).isoformat(timespec="milliseconds")
    answer = signalled(OPENING, *BACKFILL, until, "--json", config=lab.write(tmp_path))
    assert answer.code == 1, answer.err
    body = answer.json("backfill")
    assert (len(body["runs"]), body["records"]) == (1, 0)
    assert body["left"] > 0


@pytest.mark.parametrize(
    ("place", "begun"),
    [
        ("ferry.features.records.spark.local_session.prepare", False),
        ("ferry.features.records.spark.copy_job.on_spark", True),
        (GROUPS, True),
    ],
    ids=["start", "copy", "groups"],
)
def test_a_run_in_spark_reports(lab: Lab, tmp_path: Path, place: str, begun: bool) -> None:
    answer = signalled(place, "run", "--spark", "--json", config=lab.write(tmp_path))
    assert answer.code == 1, answer.err
    if begun:
        body = answer.json("run")
        assert body["state"] == ("success" if place == GROUPS else "failed")
        assert body["records"] == (100 if place == GROUPS else 0)
    else:
        assert answer.json("error")["error"]["kind"] == "interrupted"


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    code = (
        "import signal, sys\n"
        "from ferry.cli.stopping import stop_signals\n"
        "with stop_signals() as stop:\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    assert stop() and stop.by == 'SIGTERM'\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    except KeyboardInterrupt:\n"
        "        sys.exit(0)\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=2 * ANSWER_S, check=False)
    assert done.returncode == 0
