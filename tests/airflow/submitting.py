"""Processes of `spark-submit` that a test's own process starts through the provider's hook."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


@contextmanager
def outputs_closed() -> Iterator[None]:
    """Close the outputs of all processes that the block started, because the provider leaves them open."""
    begin, processes = subprocess.Popen, []

    def remembered(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
        processes.append(begin(*arguments, **options))
        return processes[-1]

    try:
        with mock.patch("subprocess.Popen", remembered):
            yield
    finally:
        for process in processes:
            process.communicate()
