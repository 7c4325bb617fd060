"""A local Spark is local in whatever Spark mode the process that starts it is."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
from ferry.features.records.spark.local_session import local_session
with local_session("local") as spark:
    print("master", spark.sparkContext.master)
"""


def test_a_local_session_is_local_below_a_process_that_uses_spark_connect() -> None:
    inherited = {
        "SPARK_REMOTE": "sc://127.0.0.1:1",
        "SPARK_CONNECT_MODE_ENABLED": "1",  # PySpark sets it, and leaves it when the session has ended
        "SPARK_API_MODE": "connect",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE], env={**os.environ, **inherited}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "master local[" in done.stdout) == (0, True), done.stderr
