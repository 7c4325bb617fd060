"""Switches by the program: checks, approval, a process that is killed, history, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import secrets
import signal
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from tests.harness import create_topic, new_alias, numbered, producer, send, wait_until
from tests.program import PROGRAM, environment, finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import share


@pytest.fixture
def pair(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path) -> Path:
    """A file with a flow each way, which has run once; its hook writes what it is told."""
    here, there = new_alias(), new_alias()
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    path = tmp_path / f"{here}.properties"
    lines = {
        "clusters": f"{here}, {there}",
        f"{here}.bootstrap.servers": source_cluster.bootstrap,
        f"{there}.bootstrap.servers": target_cluster.bootstrap,
        f"{here}->{there}.enabled": "true",
        f"{there}->{here}.enabled": "true",
        "topics": topic,
        "groups": f"none-{secrets.token_hex(4)}",
        "heartbeats.replication.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "replication.factor": "1",
        "tasks.max": "1",
        "ferry.rpo.records": "5",
        "ferry.switch.redirect.command": f"sh -c 'echo $FERRY_SWITCH_TO >> {tmp_path}/redirected'",
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


def aliases(pair: Path) -> list[str]:
    """The file's clusters."""
    return pair.read_text().splitlines()[0].partition(" = ")[2].split(", ")


def test_checks_and_approval_come_first(pair: Path, source_cluster: RunningCluster, topic: str) -> None:
    flow = "->".join(aliases(pair))
    never = ferry("switchover", flow, "--approve-by", "bob", config=pair)
    assert never.code == 2
    assert "has copied nothing" in never.err

    assert ferry("run", flow, "--quiet", config=pair).code == 0
    send(producer(source_cluster), topic, numbered(10, start=10))
    behind = ferry("readiness", flow, "--json", config=pair)
    assert behind.code == 1
    assert [check["name"] for check in behind.json("readiness")["checks"] if not check["ok"]] == ["lag"]
    ready = ferry("readiness", flow, "--json", "--rpo-records", "10", config=pair)
    assert ready.code == 0, ready.out
    shown = ferry("switchover", flow, "--dry-run", "--json", "--rpo-records", "10", config=pair)
    assert shown.code == 0
    assert [step["step"] for step in shown.json("switch-preview")["steps"]][:3] == ["readiness", "freeze", "quiet"]

    nobody = ferry("switchover", flow, "--id", "s-1", "--rpo-records", "10", "--json", config=pair)
    assert nobody.code == 2
    assert "--approve-by" in nobody.err
    assert ferry("switches", "list", flow, "--json", config=pair).json("switch-list")["switches"] == []


@pytest.mark.timeout(240)
def test_a_switchover_that_is_killed_goes_on_where_it_was(pair: Path, tmp_path: Path) -> None:
    clusters = aliases(pair)
    flow = "->".join(clusters)
    assert ferry("run", flow, "--quiet", config=pair).code == 0

    command = ("switchover", flow, "--id", "s-1", "--approve-by", "bob", "--json")
    process = start(*command, "--quiet-seconds", "600", config=pair)

    def waits() -> bool:
        (one,) = ferry("switches", "list", flow, "--json", config=pair).json("switch-list")["switches"] or [None]
        return one is not None and one["next_step"] == "quiet"

    wait_until(waits, "a switch that waits until the topics are quiet", 60)
    process.send_signal(signal.SIGKILL)
    finished(process)
    other = ferry("failover", flow, "--id", "s-2", "--approve-by", "eve", config=pair)
    assert other.code == 2
    assert "switchover s-1" in other.err
    shown = ferry("switches", "abandon", flow, "s-1", "--reason", "waits too long", "--dry-run", config=pair)
    gone = ferry("switches", "abandon", flow, "s-1", "--reason", "waits too long", "--json", config=pair)
    assert (shown.out, gone.json("switch")["end"]["outcome"]) == ("switchover s-1 would be abandoned\n", "abandoned")
    given_up = ferry("switchover", flow, "--id", "s-1", "--approve-by", "bob", config=pair)
    assert (given_up.code, "switchover s-1 is abandoned already" in given_up.err) == (2, True)

    process = start(*command[:2], "--id", "s-3", *command[4:], "--quiet-seconds", "2", config=pair)
    wait_until(lambda: (tmp_path / "redirected").exists() or process.poll() is not None, "a hook that was called", 60)
    process.send_signal(signal.SIGKILL)
    finished(process)
    done = ferry(*command[:2], "--id", "s-3", *command[4:], config=pair)
    assert done.code == 0, done.err
    state = done.json("switch")
    assert state["end"]["outcome"] == "finished"
    assert state["switch"]["approved_by"].startswith("bob (named on ")
    assert set((tmp_path / "redirected").read_text().split()) == {clusters[1]}
    wrong = ferry("failover", flow, "--id", "s-3", "--approve-by", "bob", config=pair)
    assert wrong.code == 2
    assert "s-3 is a switchover" in wrong.err
    again = ferry(*command[:2], "--id", "s-3", *command[4:], config=pair)
    assert again.code == 0
    assert again.json("switch") == state

    twice = ferry("switchover", flow, "--approve-by", "bob", config=pair)
    assert twice.code == 2
    assert "moved clients" in twice.err
    nowhere = ferry("failback", flow, "--approve-by", "bob", "--output", "/proc/stranded.jsonl", config=pair)
    assert nowhere.code == 2
    assert "name another file with --output" in nowhere.err
    back = ferry("failback", flow, "--id", "b-1", "--approve-by", "bob", "--quiet-seconds", "1", "--json", config=pair)
    assert back.code == 0, back.err
    listed = ferry("switches", "list", flow, "--json", config=pair).json("switch-list")
    assert [(one["id"], one["state"]) for one in listed["switches"]] == [
        ("s-1", "abandoned"),
        ("s-3", "finished"),
        ("b-1", "finished"),
    ]
    shown = ferry("switches", "show", flow, "b-1", "--json", config=pair)
    assert {**shown.json("switch"), "report": None, "deviations": []} == back.json("switch")
    assert ferry("plan", flow, "--quiet", config=pair).code == 0, "the flow copies again"
    home = ferry("failback", flow, "--approve-by", "bob", config=pair)
    assert home.code == 2
    assert "nothing to fail back" in home.err


@pytest.mark.timeout(240)
def test_a_switch_that_stops_midway_has_a_code_of_its_own_and_keeps_its_options(pair: Path, tmp_path: Path) -> None:
    flow = "->".join(aliases(pair))
    assert ferry("run", flow, "--quiet", config=pair).code == 0
    command = ("switchover", flow, "--id", "s-1", "--json")
    stop = f"sh -c 'echo $FERRY_SWITCH_HOOK $FERRY_SWITCH_FROM >> {tmp_path}/stopped'"
    begun = ("--approve-by", "bob", "--quiet-seconds", "600", "--quiet-timeout", "0.1", "--stop-command", stop)
    stopped = ferry(*command, *begun, config=pair)
    assert stopped.code == 4, stopped.err
    assert stopped.json("error")["error"]["kind"] == "refused"
    assert f"ferry switchover '{flow}' --id s-1" in stopped.err
    assert (tmp_path / "stopped").read_text() == f"stop {aliases(pair)[0]}\n"
    for other in (("--quiet-timeout", "9"), ("--leave-group", "g"), ("--approve-by", "eve")):
        answer = ferry(*command, "--stop-command", stop, *other, config=pair)
        assert answer.code == 2, answer.err
        assert other[0] in answer.err
    without = ferry(*command, config=pair)
    assert without.code == 2
    assert "--stop-command" in without.err
    assert ferry("switches", "abandon", flow, "s-1", "--reason", "a test", config=pair).code == 0


@pytest.mark.timeout(240)
def test_a_switch_leaves_one_report_and_a_folder_that_takes_none_fails_nothing(
    pair: Path, source_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    flow, reports = "->".join(aliases(pair)), tmp_path / "reports"
    with pair.open("a") as file:
        file.write(f"ferry.report.dir = {reports}\n")
    assert ferry("run", flow, "--quiet", config=pair).code == 0
    send(producer(source_cluster), topic, numbered(5, start=10))
    command = ("switchover", flow, "--id", "s-1", "--approve-by", "bob", "--quiet-seconds", "1", "--json")
    done = ferry(*command, config=pair)
    assert done.code == 0, done.err
    state = done.json("switch")
    (report,) = reports.glob("report-*.json")
    assert state["report"]["json"] == str(report)
    told = json.loads(report.read_text())
    assert (told["id"], told["kind"], told["outcome"]) == ("s-1", "switchover", "success")
    assert [told["samples"][at]["lag_records"] for at in (0, -1)] == [5, 0], "what its drain copied"
    page = report.with_suffix(".html")
    assert " from 5 to 0 records" in page.read_text()
    page.unlink()  # as if it had died there
    again = ferry(*command, config=pair)
    assert (again.code, again.json("switch")) == (0, state), again.err
    assert sorted(reports.glob("report-*")) == [page, report]
    assert ferry("reports", "verify", reports, "--chain-only").code == 0

    back = ferry("failback", *command[1:3], "b-1", *command[4:], "--report", "/proc/reports", config=pair)
    assert back.code == 0, back.err
    assert back.json("switch")["report"] is None
    assert "warning: failback b-1 is over, " in back.err
    assert f"ferry reports switch '{flow}' b-1" in back.err


def answered_at_a_terminal(answer: str, *arguments: str | Path, config: Path) -> tuple[int, str]:
    """A command at a real terminal, whose person writes one line when she is asked: exit code, and what was shown."""
    pid, terminal = pty.fork()
    if pid == 0:  # the terminal is all of the command's streams
        os.execve(PROGRAM, [str(PROGRAM), *map(str, arguments)], {**environment(config), "TERM": "dumb"})
    shown, asked = b"", False
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the command has left
            break
        if not part:
            break
        shown += part
        if not asked and b"To approve, write the name of" in shown:
            asked = True
            os.write(terminal, f"{answer}\n".encode())
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode().replace("\r\n", "\n")


def test_a_person_at_a_terminal_sees_the_steps_and_whoever_names_another_cluster_has_refused(pair: Path) -> None:
    here, there = aliases(pair)
    flow = f"{here}->{there}"
    assert ferry("run", flow, "--quiet", config=pair).code == 0
    for answer in share(("", "yes", here), 1, 3):
        code, shown = answered_at_a_terminal(answer, "switchover", flow, "--id", "s-1", config=pair)
        assert code == 2, shown
        assert "declare" in shown, "the steps were shown before"
        assert "nothing was written" in " ".join(shown.split())
    assert ferry("switches", "list", flow, "--json", config=pair).json("switch-list")["switches"] == []
    command = ("switchover", flow, "--id", "s-1", "--quiet-seconds", "1", "--no-smoke")
    code, shown = answered_at_a_terminal(there, *command, config=pair)
    assert code == 0, shown
    (switch,) = ferry("switches", "list", flow, "--json", config=pair).json("switch-list")["switches"]
    assert (switch["state"], switch["approved_by"] != "") == ("finished", True)
