"""The log of a task: lines of clients are in groups, repeated ones are counted, and Ferry's own are in none."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ferry.run.pace import Milestones
from ferry.words import SAYS
from ferry_airflow.log_groups import END_GROUP, GROUP, HOOKS, KAFKA, SPARK, Groups, Repeats, group_of

HOOK = "airflow.task.hooks.airflow.providers.apache.spark.hooks.spark_submit.SparkSubmitHook"


@pytest.mark.parametrize(
    ("logger", "text", "group"),
    [
        ("kafka.net.manager", "Connection failed", KAFKA),
        ("kafka", "Connection failed", KAFKA),
        ("kafkaesque", "a line of an author's own", None),
        ("py4j.clientserver", "Closing down clientserver connection", SPARK),
        (HOOK, "Spark-Submit cmd: spark-submit --master local[*]", SPARK),
        (HOOK, "26/11/28 07:27:00 WARN NativeCodeLoader: Unable to load native-hadoop library", SPARK),
        (HOOK, "Traceback (most recent call last):", SPARK),
        (HOOK, f"{SAYS}run r of a->b: copied 3 records", None),
        ("airflow.task.hooks.airflow.providers.http.hooks.http.HttpHook", "called", HOOKS),
        ("airflow.task.operators.ferry_airflow.operators.FerryPlanOperator", "plan of run r", None),
        ("ferry.kafka.produce.writer", "a warning of Ferry's", None),
        ("my_company.callbacks", "paged", None),
    ],
)
def test_a_line_is_in_the_group_of_the_client_that_prints_it(logger: str, text: str, group: str | None) -> None:
    assert group_of(logger, text) == group


def test_lines_of_a_group_are_together_and_another_line_ends_it() -> None:
    groups = Groups()
    assert groups.before(None) == []
    assert groups.before(SPARK) == [f"{GROUP}{SPARK}"]
    assert groups.before(SPARK) == []
    assert groups.before(KAFKA) == [END_GROUP, f"{GROUP}{KAFKA}"]
    assert groups.before(None) == [END_GROUP]
    assert groups.before(None) == []


def test_a_client_that_tries_again_and_again_is_shown_once_and_counted() -> None:
    repeats = Repeats()
    lines = [
        f"Bootstrap connection to bootstrap-0 failed: ECONNREFUSED (backoff {n / 100:.2f} secs)" for n in range(99)
    ]
    shown = [line for line in map(repeats.shown, lines) if line is not None]
    assert [shown[0], len(shown)] == [lines[0], 2]
    assert shown[1].startswith(lines[9])
    assert "10" in shown[1].removeprefix(lines[9])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Connection failed: 111 ECONNREFUSED", "Connection failed: 104 ECONNRESET"),
        ("bootstrap-0 not ready; waiting 0.10 secs", "bootstrap-1 not ready; waiting 0.10 secs"),
        ("cannot reach 10.0.0.1:9092", "cannot reach 10.0.0.2:9092"),
    ],
)
def test_what_names_another_cause_or_another_broker_is_not_a_repetition(one: str, other: str) -> None:
    repeats = Repeats()
    assert (repeats.shown(one), repeats.shown(other)) == (one, other)


def test_progress_is_shown_when_there_is_some_and_seldom_in_a_long_run() -> None:
    idle = Milestones()
    assert [second for second in range(5, 60, 5) if idle.has("0 of 2 slices", second)] == [5]
    busy = Milestones()
    shown = [second for second in range(5, 3_601, 5) if busy.has(f"at {second}", second)]
    assert shown[:10] == list(range(5, 51, 5)), "in the first minute each measurement"
    assert len(shown) < 100
    pauses = [later - sooner for sooner, later in pairwise(shown)]
    assert max(pauses) == 60
    assert shown[-1] > 3_600 - 61
