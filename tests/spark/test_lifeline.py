"""What the Python side does where its JVM is gone, or never came."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.run.spark.parent_watch import GATEWAY_VARIABLE

ROOT = Path(__file__).parents[2]
START = """
from ferry.errors import FerryError
from ferry.features.records.spark.local_session import local_session
try:
    with local_session("never"):
        pass
except FerryError as error:
    print(type(error).__name__, error.exit_code, error)
"""


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never answers: a cluster that a job would wait a minute for."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_job_whose_jvm_was_gone_before_it_looked_ends(tmp_path: Path, silent: socket.socket) -> None:
    config = tmp_path / "mm2.properties"
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    config.write_text(
        f"clusters = a, b\na.bootstrap.servers = {address}\nb.bootstrap.servers = {address}\na->b.enabled = true\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    done = subprocess.run(
        [sys.executable, ROOT / "jobs" / "copy_job.py", "--config", config, "--flow", "a->b", "--run", "r1"],
        env={**os.environ, GATEWAY_VARIABLE: str(closed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("script", "java_home", "error", "said"),
    [
        ("kill -9 $$", None, "Retryable 1", " killed by SIGKILL"),
        ("exit 3", None, "Retryable 1", " ended with exit code 3"),
        ("exit 3", "/nowhere", "Refused 2", "install Java 17, or set JAVA_HOME"),
    ],
)
def test_a_spark_that_does_not_start_says_what_happened(
    tmp_path: Path, script: str, java_home: str | None, error: str, said: str
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "spark-submit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    environment = {**os.environ, "SPARK_HOME": str(tmp_path)}
    if java_home is not None:
        environment["JAVA_HOME"] = java_home
    done = subprocess.run([sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(error), done.stdout + done.stderr
    assert said in done.stdout
