"""What tests need, how long they may take, and which of them only `make test-all` runs.

The folder of a test says what it needs:

pure     Python alone: no process, no connection (`make quick`)
kafka    Kafka's brokers or Java classes
spark    Spark, mostly with brokers
airflow  Airflow, mostly with brokers and Spark
browser  Chromium
world    processes, loopback connections, promtool, Compose, pip
soak     minutes to hours: `make soak`; some need no more than Python
"""

import os
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

PATIENCE = float(os.environ.get("FERRY_PATIENCE", "1"))
"""What the limits of tests, and their waits, are multiplied with: more than 1 on a machine with other work."""

ANSWER_S = 30 * PATIENCE
"""How long a test waits for one answer of a broker or a server, and Ferry in a test for one of a cluster."""

PURE = "pure"

IN_PART = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
"""Whether large tables run in part, as in `make quick` and `make test`."""

SECONDS = {
    PURE: 30 if IN_PART else 120,  # one case of a whole table meets all codes
    "kafka": 120,
    "browser": 120,
    "world": 120,
    "spark": 600,
    "airflow": 600,
    "soak": 3600,
}
"""How long a test may take, unless its own mark says otherwise; set-up and clean-up of fixtures do not count."""

EXTRA: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "extra.toml").read_text())
"""What `make test` leaves out: per file, tests and what it has in their place; `*` is the whole file."""

OF_MAKE_TEST = pytest.StashKey[dict[str, set[str]]]()
"""Of each file that the session has collected, the tests with their cases that `make test` runs."""


def examples(most: int) -> int:
    """How many examples a random test has that wants many: a sixth where tables run in part."""
    return most // 6 if IN_PART else most


def share(cases: Iterable[T], number: int, of: int) -> Sequence[T]:
    """All cases of a table; where tables run in part every `of`-th, so that shares 0 to `of` - 1 are all of them."""
    return list(cases)[number % of :: of] if IN_PART else list(cases)


def is_extra(file: str, test: str) -> bool:
    """Whether only `make test-all` runs a test; `test` is its name, with the id of its parameters if it has some."""
    names = EXTRA.get(file, {})
    return "*" in names or test in names or test.partition("[")[0] in names
