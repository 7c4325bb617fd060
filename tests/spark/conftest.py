"""A Spark session for all tests of one process that need no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferry.run.spark.submit import submit_conf
from tests.clusters import PASSWORDS
from tests.spark.jobs import LOCAL
from tests.spark.notebook import Notebook, notebook


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One session of Spark in local mode."""
    conf = " ".join(f'--conf "{key}={value}"' for key, value in submit_conf().items())
    environment = {
        **LOCAL,
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {conf} pyspark-shell",
        "SOURCE_PASSWORD": "".join(PASSWORDS["source"]),
    }
    with notebook(tmp_path_factory.mktemp("notebook") / "spark.log", environment) as found:
        yield found
