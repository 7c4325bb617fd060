"""A notebook: a process with a Spark session that reads by the format `ferry`, and the test's end of it.

As a program it answers each line of its input, a question in JSON, with one line.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.config.settings import parse_settings
from ferry.errors import FerryError
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.transform import steps_of
from tests.tiers import ANSWER_S, PATIENCE

ROOT = Path(__file__).parents[2]
SECONDS = 300 * PATIENCE
MARK = "answer: "

NO_RECORDS = ""
"""In place of topics: an empty frame with the columns of records, for what no cluster is needed for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a question brought: rows by column name (bytes are bytes again), and which task read each."""

    rows: list[dict[str, Any]]
    tasks: list[int]
    partitions: int
    """Tasks that Spark makes of it, those without a row among them; 0 on Spark Connect, which does not tell."""
    plan: str


class Failed(Exception):
    """A question ended in an error; the text is Spark's."""


class Notebook:
    """Asks, and waits for the answer."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def read(self, topics: str, options: Mapping[str, str], *where: str, sql: str = "", function: str = "") -> Read:
        """Load, filter, select by SQL or by one of the functions below, and collect. Raises Failed."""
        found = self._asked(
            {"topics": topics, "options": dict(options), "where": where, "sql": sql, "function": function}
        )
        return Read(rows=_rows(found), tasks=found["tasks"], partitions=found["partitions"], plan=found["plan"])

    def transformed(
        self, file: str, records: Sequence[Sequence[Any]], settings: Mapping[str, str] = MappingProxyType({})
    ) -> list[dict[str, Any]]:
        """What the only transform of the only flow in a file's text makes of rows. Raises Failed.

        `settings` are the session's before.
        """
        rows = [[_plain(value) for value in row] for row in records]
        return _rows(self._asked({"file": file, "records": rows, "settings": dict(settings)}))

    def examples(self) -> list[str]:
        """Expressions that Spark's documents of its functions show, each as it stands in a query without FROM."""
        found: list[str] = self._asked({"examples": True})["examples"]
        return found

    def sampled(self, file: str, records: Sequence[Sequence[Any]], *, values: bool, as_json: bool) -> dict[str, Any]:
        """What `ferry plan --sample` says of rows with the only flow in a file's text: `code`, `out`, `err`."""
        rows = [[_plain(value) for value in row] for row in records]
        return self._asked({"sample": rows, "of": file, "values": values, "json": as_json})

    def delivered(self, call: str, **arguments: Any) -> dict[str, Any]:
        """What one of the functions of `tests.spark.deliveries` answers. Raises Failed, its error's kind ahead."""
        return self._asked({"call": call, "arguments": arguments})

    def kill(self) -> None:
        """End its process at once, with Spark."""
        for child in psutil.Process(self._process.pid).children(recursive=True):
            child.kill()
        self._process.kill()

    def functions(self) -> list[str]:
        """Names of the functions that Spark has by itself, without its operators."""
        found: list[str] = self._asked({"functions": True})["functions"]
        return found

    def _asked(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        guard = threading.Timer(SECONDS, self._process.kill)
        guard.start()
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            lines = iter(self._process.stdout.readline, "")
            answer = next((line.removeprefix(MARK) for line in lines if line.startswith(MARK)), None)
        finally:
            guard.cancel()
        assert answer is not None, f"the notebook ended:\n{self.log()}"
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            raise Failed(found["error"])
        return found

    def log(self) -> str:
        """All that Spark has said."""
        return self._log.read_text(errors="replace")


@contextmanager
def notebook(log: Path, environment: Mapping[str, str]) -> Iterator[Notebook]:
    """Start one; it ends with the block."""
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.notebook"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env={**os.environ, **environment},
            cwd=ROOT,
        )
    with process:
        try:
            yield Notebook(process, log)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(2 * ANSWER_S)
            finally:
                process.kill()


def changed_alone(file: str, records: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """What Python makes of them, without Spark, by the only transform of the only flow, which has no SQL."""
    (flow,) = parse_settings(file, "f").flows
    steps = steps_of(flow.records.transforms[0], {row[0]: flow.first_name(row[0]) for row in records})
    # A slice, for offsets into the columns' buffers count then.
    whole = pa.Table.from_batches([_batch(records)] * 2).combine_chunks()
    found = steps(whole.to_batches()[0].slice(len(records)))
    found.validate(full=True)
    return [{**row, "headers": [(pair["key"], pair["value"]) for pair in row["headers"]]} for row in found.to_pylist()]


def _batch(records: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    schema = to_arrow_schema(SCHEMA, timezone="UTC")
    columns = [list(column) for column in zip(*records, strict=True)]
    columns[7] = [[{"key": name, "value": value} for name, value in pairs] for pairs in columns[7]]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{name: _value(value) for name, value in row.items()} for row in found["rows"]]


def _value(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"hex"}:
        return bytes.fromhex(value["hex"])
    if isinstance(value, list):
        return [tuple(_value(part) for part in pair) for pair in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, list):
        return [[_plain(part) for part in pair] for pair in value]
    return value


def _transformed(spark: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    from ferry.features.records.spark.transform import of_frame, prepare, transformed  # noqa: PLC0415 - in the notebook's own process only

    for name, value in question["settings"].items():
        spark.conf.set(name, value)
    prepare(spark)
    try:
        (flow,) = parse_settings(question["file"], "f").flows
        records = [tuple(_value(value) for value in row) for row in question["records"]]
        targets = {row[0]: flow.first_name(row[0]) for row in records}
        frame = transformed(of_frame(spark.createDataFrame(records, SCHEMA)), flow.records.transforms[0], targets)
        rows = frame.collect()
    except Exception as error:
        return {"error": str(error)}
    return {"rows": [{name: _plain(row[name]) for name in frame.columns} for row in rows]}


def _sampled(spark: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    from ferry.cli.output import Form  # noqa: PLC0415 - as above
    from ferry.commands.sampled import show_sample  # noqa: PLC0415 - as above
    from ferry.features.records.spark.sample import sampled  # noqa: PLC0415 - as above
    from ferry.features.records.spark.transform import prepare  # noqa: PLC0415 - as above

    prepare(spark)
    (flow,) = parse_settings(question["of"], "f").flows
    records = [tuple(_value(value) for value in row) for row in question["sample"]]
    tables = {
        topic: pa.Table.from_batches([_batch([row for row in records if row[0] == topic])])
        for topic in dict.fromkeys(row[0] for row in records)
    }
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            found = sampled(spark, flow, tables, clear=question["values"])
            form = Form.JSON if question["json"] else Form.TABLE
            code = show_sample(flow, found, values=question["values"], form=form)
        except FerryError as error:
            return {"code": error.exit_code, "out": out.getvalue(), "err": str(error)}
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def _examples(spark: Any) -> dict[str, Any]:
    found: list[str] = []
    for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        told = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{row[0]}`").collect()
        text = "\n".join(one[0] for one in told)
        shown = re.findall(r"> SELECT (.*?);\s*$", text, re.MULTILINE)
        found += [example for example in shown if " FROM " not in example.upper()]
    return {"examples": found}


def _delivered(spark: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    from tests.spark import deliveries  # noqa: PLC0415 - as above

    try:
        found: dict[str, Any] = getattr(deliveries, question["call"])(spark, **question["arguments"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return found


def _answer(spark: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    if "call" in question or "sample" in question:
        return (_delivered if "call" in question else _sampled)(spark, question)
    if "functions" in question:
        found = (row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())
        return {"functions": [name for name in found if name.isidentifier()]}
    if "examples" in question:
        return _examples(spark)
    if "file" in question:
        return _transformed(spark, question)
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - in the notebook's own process only

    from ferry.features.records.spark.selection import selected, selected_by  # noqa: PLC0415 - as above
    from tests.spark import functions  # noqa: PLC0415 - as above

    try:
        if question["topics"] == NO_RECORDS:
            frame = spark.createDataFrame([], SCHEMA)
        else:
            frame = spark.read.format("ferry").options(**question["options"]).load(question["topics"])
        for condition in question["where"]:
            frame = frame.where(condition)
        if question["sql"]:
            frame = selected(frame, question["sql"])
        if question["function"]:
            frame = selected_by(frame, getattr(functions, question["function"]))
        names = frame.columns
        rows: Sequence[Any] = frame.withColumn("task", F.spark_partition_id()).collect()
        classic = hasattr(frame, "_jdf")
        partitions = frame.rdd.getNumPartitions() if classic else 0
        plan = frame._jdf.queryExecution().toString() if classic else ""
    except Exception as error:
        return {"error": str(error)}
    return {
        "rows": [{name: _plain(row[name]) for name in names} for row in rows],
        "tasks": [row.task for row in rows],
        "partitions": partitions,
        "plan": plan,
    }


def main() -> None:
    """Answer until the input ends."""
    from ferry.features.records.spark.source import register  # noqa: PLC0415 - as above
    from ferry.run.spark.session import session  # noqa: PLC0415 - as above

    spark = session("notebook")
    register(spark)
    for line in sys.stdin:
        print(MARK + json.dumps(_answer(spark, json.loads(line))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
