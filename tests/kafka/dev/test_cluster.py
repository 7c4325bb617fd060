"""Local clusters: what is started is found again, survives a kill with its data, and is all that is stopped."""

import errno
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.dev import ClusterSpec, RunningCluster, attach, down, status, up
from ferry.dev.cluster import create_cluster
from ferry.dev.jars import jars
from ferry.dev.process import ProcessRecord, wait_for, wait_gone
from ferry.errors import BadInput, Refused, Unreachable
from ferry.jvm import ARCHIVE
from tests.tiers import ANSWER_S


@pytest.fixture
def dev_home(tmp_path: Path) -> Iterator[Path]:
    """A home of the test's own; whatever it started ends with it."""
    yield tmp_path
    down(tmp_path, delete=True, grace_seconds=0)


def said(*command: str) -> dict[str, Any]:
    """What a command answers in JSON, with nothing beside it."""
    done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


def create(cluster: RunningCluster, topic: str, *, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result(ANSWER_S)


def produce(cluster: RunningCluster, topic: str, values: list[bytes], **settings: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **settings})
    if settings:
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    if settings:
        producer.commit_transaction(ANSWER_S)
    assert producer.flush(ANSWER_S) == 0


def consume(cluster: RunningCluster, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": f"{topic}-reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 2 * ANSWER_S
    found: list[bytes | None] = []
    while len(found) < count and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(count, timeout=1) if message.error() is None]
    consumer.close()
    return found


def has_ended(pid: int) -> bool:
    """Gone, or a zombie whose parent is an init that does not reap, as in many containers."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_broker_reads_its_classes_from_the_archive_of_make_setup(
    source_cluster: RunningCluster, old_cluster: RunningCluster
) -> None:
    for broker in (*source_cluster.brokers, *old_cluster.brokers):
        mapped = {entry.path for entry in psutil.Process(broker.pid).memory_maps()}
        assert str(jars(broker.spec.version).resolve() / ARCHIVE) in mapped, "make setup makes it; else no JVM uses it"


def test_a_killed_broker_comes_back_with_its_data(source_cluster: RunningCluster, topic: str) -> None:
    create(source_cluster, topic)
    produce(source_cluster, topic, [b"one", b"two"])
    broker = source_cluster.brokers[0]
    before, address = broker.pid, broker.address

    broker.kill()
    assert (broker.state, broker.pid) == ("stopped", None)
    broker.start()

    assert broker.pid not in (None, before)
    assert broker.address == address
    assert consume(source_cluster, topic, 2) == [b"one", b"two"]


def test_a_paused_broker_holds_its_answers_until_it_is_resumed(source_cluster: RunningCluster, topic: str) -> None:
    create(source_cluster, topic)
    broker = source_cluster.brokers[0]
    broker.pause()
    assert broker.state == "paused"
    producer = Producer({"bootstrap.servers": source_cluster.bootstrap})
    producer.produce(topic, b"late")
    assert producer.flush(1) == 1

    broker.resume()

    assert broker.state == "running"
    assert producer.flush(ANSWER_S) == 0
    source_cluster.wait_ready()  # the controller may have fenced it


def test_transactions_work_at_once(target_cluster: RunningCluster, topic: str) -> None:
    create(target_cluster, topic)
    produce(target_cluster, topic, [b"exactly", b"once"], **{"transactional.id": topic})
    assert consume(target_cluster, topic, 2) == [b"exactly", b"once"]


def test_the_older_kafka_serves_transactions_and_groups(old_cluster: RunningCluster, topic: str) -> None:
    create(old_cluster, topic)
    produce(old_cluster, topic, [b"old"], **{"transactional.id": topic})
    assert consume(old_cluster, topic, 1) == [b"old"]


def test_three_brokers_outlive_the_loss_of_one(three_brokers: RunningCluster, topic: str) -> None:
    create(three_brokers, topic, replicas=3)
    produce(three_brokers, topic, [b"before"])
    leader = AdminClient({"bootstrap.servers": three_brokers.bootstrap}).list_topics(topic, timeout=ANSWER_S)
    victim = three_brokers.broker(leader.topics[topic].partitions[0].leader)

    victim.kill()
    produce(three_brokers, topic, [b"during"])
    victim.start()

    assert consume(three_brokers, topic, 2) == [b"before", b"during"]


def test_another_process_finds_and_stops_exactly_what_was_started(dev_home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        command = [sys.executable, "-m", "ferry.dev"]
        home = ["--home", str(dev_home)]
        assert said(*command, "up", "--clusters", "alone", "--dry-run", *home)["clusters"][0]["would"] == "make"
        assert not list(dev_home.iterdir()), "a dry run leaves nothing behind"
        subprocess.run([*command, "up", "--clusters", "alone", *home], check=True)
        (alone,) = status(dev_home)
        assert alone.state == "running"
        pid = alone.brokers[0].pid
        assert pid is not None
        again = subprocess.run([*command, "up", "--clusters", "alone", *home], check=True)
        assert again.returncode == 0
        would = said(*command, "up", "--clusters", "alone,other", "--dry-run", *home)["clusters"]
        assert [(one["name"], one["would"]) for one in would] == [("alone", "leave"), ("other", "make")]
        assert said(*command, "down", "--delete", "--dry-run", *home) == {
            "stopped": ["alone"],
            "deleted": True,
            "dry_run": True,
        }
        assert status(dev_home) == (alone,)

        subprocess.run([*command, "down", *home], check=True)

        assert has_ended(pid)
        assert said(*command, "up", "--clusters", "alone", "--dry-run", *home)["clusters"][0]["would"] == "start"
        assert [cluster.state for cluster in status(dev_home)] == ["stopped"]
        assert stranger.poll() is None
        stranger.communicate(b"\n")


@pytest.mark.parametrize("shift", [-3600.0, 3600.0], ids=["older", "newer"])
def test_a_process_with_a_reused_pid_is_left_alone(dev_home: Path, shift: float) -> None:
    cluster = up(ClusterSpec(name="reused"), home=dev_home)
    broker = cluster.brokers[0]
    broker.kill()
    properties = str(broker.properties_file)
    with subprocess.Popen([sys.executable, "-c", "input()", properties], stdin=subprocess.PIPE) as stranger:
        started = psutil.Process(stranger.pid).create_time()
        record = ProcessRecord(pid=stranger.pid, started=started + shift, argument=properties)
        record.write(broker.directory / "process.json")

        down(dev_home)

        assert broker.state == "stopped"
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_a_process_that_does_other_work_is_left_alone(dev_home: Path) -> None:
    cluster = up(ClusterSpec(name="other"), home=dev_home)
    broker = cluster.brokers[0]
    broker.kill()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        started = psutil.Process(stranger.pid).create_time()
        record = ProcessRecord(pid=stranger.pid, started=started, argument=str(broker.properties_file))
        record.write(broker.directory / "process.json")
        broker.kill()
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_brokers_end_with_a_killed_owner(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from ferry.dev import ClusterSpec, guard, up\n"
        "home = Path(sys.argv[1])\n"
        "with guard(home):\n"
        "    print(up(ClusterSpec(name='orphan'), home=home).brokers[0].pid, flush=True)\n"
        "    input()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    assert wait_for(lambda: has_ended(pid), seconds=ANSWER_S)


def test_a_second_start_of_a_running_broker_is_refused(source_cluster: RunningCluster) -> None:
    with pytest.raises(Refused, match=r"process \d+"):
        source_cluster.brokers[0].start()


def test_another_spec_under_a_known_name_is_bad_input(source_cluster: RunningCluster, cluster_home: Path) -> None:
    with pytest.raises(BadInput, match=source_cluster.name):
        up(ClusterSpec(name=source_cluster.name, brokers=3), home=cluster_home)
    assert attach(cluster_home, source_cluster.name) == source_cluster


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing_running(dev_home: Path) -> None:
    spec = ClusterSpec(name="broken", properties={"log.retention.ms": "soon"})
    with pytest.raises((Refused, Unreachable), match=r"soon"):
        up(spec, home=dev_home)
    assert all(cluster.state == "stopped" for cluster in status(dev_home))


def test_ports_taken_after_they_were_chosen_are_chosen_again(dev_home: Path) -> None:
    """The broker is given a port that is in use, as when somebody takes it between the choice and the start."""
    spec = ClusterSpec(name="taken")
    made = create_cluster(spec, dev_home / spec.name)
    host, port = made.brokers[0].address.split(":")
    with socket.create_server((host, int(port))):
        running = up(spec, home=dev_home)
        assert running.brokers[0].state == "running"
        assert running.bootstrap != made.bootstrap


def test_a_killed_process_has_not_ended_while_a_thread_of_it_holds_a_port(tmp_path: Path) -> None:
    """The first thread of a process goes first; the port is free when the last one has gone."""
    program = (
        "import ctypes, socket, sys, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=sys.stdin.read).start()\n"
        "print(server.getsockname()[1], flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    port = int(child.stdout.readline())
    process = psutil.Process(child.pid)
    record = ProcessRecord(pid=child.pid, started=process.create_time(), argument=str(tmp_path))
    assert wait_for(lambda: process.status() == psutil.STATUS_ZOMBIE, seconds=ANSWER_S)
    with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
        socket.create_server(("127.0.0.1", port))
    assert wait_gone([record], seconds=0.1) == [record]

    child.stdin.close()

    assert wait_gone([record], seconds=ANSWER_S) == []
    socket.create_server(("127.0.0.1", port)).close()
    child.wait()
    child.stdout.close()
