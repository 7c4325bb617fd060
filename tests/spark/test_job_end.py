"""The driver leaves its error in a file; the task makes of it whether Airflow tries again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ferry.config.settings import parse_settings
from ferry.features.records.spark.copy_job import main
from ferry.model import Origin
from ferry.run.spark.job_end import JobEnd, end_of_job
from ferry_airflow.operators import FerryCopyOperator
from ferry_airflow.spark_job import LONGEST_LINE, OUTPUT, failed

FILE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
COMMAND = "Cannot execute: spark-submit copy_job.py. Error code is: 2."
PROVIDER = AirflowException(COMMAND)


@pytest.mark.parametrize(
    ("told", "code", "final", "sentence"),
    [
        (JobEnd(sentence="topic t is gone", final=True), 2, True, "topic t is gone"),
        (JobEnd(sentence="offset 7 of t-0 is corrupt", final=True), 1, True, "offset 7 of t-0 is corrupt"),
        (JobEnd(sentence="a leader moved", final=False), 1, False, "a leader moved"),
        (JobEnd(sentence="broker does not answer", final=False), 3, False, "broker does not answer"),
        # The driver ended without a word: the exit code is all that there is.
        (None, 2, True, "exit code 2 and"),
        (None, 1, False, "exit code 1 and"),
        (None, 137, False, "exit code 137 and"),
        # It was not started: the provider says why.
        (None, None, False, COMMAND),
    ],
)
def test_a_refusal_is_not_tried_again(told: JobEnd | None, code: int | None, sentence: str, *, final: bool) -> None:
    error = failed(PROVIDER, told, code)
    assert sentence in str(error)
    assert isinstance(error, AirflowFailException) is final


@pytest.mark.parametrize(
    ("printed", "named"),
    [
        ("Traceback (most recent call last):\n  x\nModuleNotFoundError: No module named 'ferry'\n", "'ferry'"),
        ("java.lang.OutOfMemoryError: Java heap space\nat X\nINFO ShutdownHookManager: deleted\n", "Java heap space"),
        ("Killed\n", "Killed"),
        ("x" * 10_000, "x" * LONGEST_LINE),
    ],
)
def test_a_job_that_leaves_no_error_is_reported_in_one_line_with_its_cause(printed: str, named: str) -> None:
    said = str(failed(AirflowException(f"{COMMAND}\n{OUTPUT}\n{printed}"), None, 1))
    assert named in said
    assert len(said.splitlines()) == 1
    assert len(said) < LONGEST_LINE + 200
    assert "copy_job.py" not in said


def test_the_job_tells_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.run.spark.job.signal.signal", lambda *_: None)
    monkeypatch.setattr("ferry.run.spark.job.parent_watch.watch", lambda _: None)
    config, end = tmp_path / "flow.properties", tmp_path / "end.json"
    config.write_text(FILE)
    code = main(config=config, clients=None, end=end, flow="a->c", run="r", lane=None, origin=Origin(host="h"))
    told = end_of_job(end)
    assert code == 2
    assert told is not None
    assert told.final
    assert "a->c" in told.sentence


def test_the_task_fails_by_the_word_of_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone.properties"
    copy = FerryCopyOperator(task_id="copy", config=str(gone), flow="a->b", conn_id="spark_default")

    def submit(self: SparkSubmitOperator, context: Context) -> None:
        assert self.application_args
        job = subprocess.run([sys.executable, self.application, *self.application_args], check=False)
        self._hook = cast("Any", SimpleNamespace(_submit_sp=job))
        raise AirflowException("Cannot execute: spark-submit, and no tail of its log")

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)
    connection = SimpleNamespace(host="local[2]", extra_dejson={})
    with pytest.raises(AirflowFailException, match=str(gone)):
        copy.submit(
            connection,
            parse_settings(FILE, "f").flow("a->b"),
            cast("Context", {}),
            ["--run", "r"],
        )
