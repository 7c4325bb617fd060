"""What tests need, how long they may take, and which of them only `make test-all` runs."""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

PATIENCE = float(os.environ.get("FERRY_PATIENCE", "1"))
"""What every limit of time is multiplied with: more than 1 on a machine that has other work."""

QUICK = ("scripted", "protocol", "alerts", "config", "decide", "mm1", "model", "net", "policy", "wire")
"""Folders of the quick tier (`make quick`): no broker, Java, browser or process. Tests there that ask for brokers by a
fixture, or are marked `process` or `slow`, are not of it. What takes longest comes first, so that processes end
together."""

LONGER = ("scripted/test_every_answer.py", "decide/test_hostile_ledger.py")
"""Files of the quick tier that take more than a few seconds: `make quick FILE=...` prefers others."""

QUICK_SECONDS = 60
"""How long a test of the quick tier may take."""

IS_QUICK = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
"""Whether this is `make quick`."""

EXTRA = {
    "packaging/test_wheel.py": "packaging/test_requirements.py, and all other tests, on an installation with extras",
    "spark/test_local.py": "spark/test_records.py, spark/test_transformed.py",
    "spark/test_lost_transforms.py": "spark/test_breaking.py, cli/test_in_spark.py",
    "spark/test_verify_apart.py": "spark/test_verify_transformed.py",
}
"""Files that `make test` leaves out, and what it has in their place."""


def share(cases: Iterable[T], number: int, of: int) -> Sequence[T]:
    """All cases of a table; of them in the quick tier every `of`-th, so that shares 0 to `of` - 1 are all of them."""
    return list(cases)[number % of :: of] if IS_QUICK else list(cases)
