"""What a Spark task of a comparison does: compare the ranges of its row, and answer in a row. Without Spark's API.

```
in   task int                   one row per task
out  task int, body binary      the pickled Compared, or the FerryError that ended the task
```
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from ferry.errors import FerryError
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.verifier import CompareSpec, compare_spec
from ferry.run.spark.columns import binaries, ints
from ferry.run.spark.package import unpacked

ROW = "task int, body binary"
"""The rows of an answer, as Spark writes a schema."""


def compare_tasks(specs: Mapping[int, CompareSpec], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compare the ranges of every task that `batches` name.

    Anything but a FerryError is raised: Spark then tries the task again, perhaps elsewhere.
    """
    for batch in batches:
        for task in batch.column("task").to_pylist():
            body = pickle.dumps(_compared(specs[task]))
            yield pa.RecordBatch.from_arrays([ints([task]), binaries([body])], names=["task", "body"])


def compare_packed_tasks(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compare the ranges of every task that `batches` name, by specs of the package `name`, sent as an artifact."""
    return compare_tasks(unpacked(name), batches)


def _compared(spec: CompareSpec) -> Compared | FerryError:
    try:
        return compare_spec(spec)
    except FerryError as error:
        return error
