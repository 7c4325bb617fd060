"""What an Airflow needs before a flow's DAG can run: a pool per flow, Spark and Kafka connections. Safe to run again.

`ferry airflow setup` does this for the Airflow of AIRFLOW_HOME; `python -m ferry_airflow.setup --local HOME` first
makes HOME a local Airflow (SQLite, LocalExecutor), and names what is missing without failing.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.config.login.connection import TYPES as KAFKA_TYPES
from ferry.config.settings import load
from ferry.errors import FerryError, Refused
from ferry_airflow.home import prepare
from ferry_airflow.naming import CONFIG_VARIABLE

DEFAULT_SPARK = "spark_default"
HOME = "AIRFLOW_HOME"
HOME_IS_UNSET = (
    f"{HOME} is not set here, so pools and connections were not checked: set it to the home of the Airflow that runs "
    "the flows, and ask again"
)
LOCAL_SPARK = "local[*,4]"
"""All cores, and four attempts of a task whose worker died; plain `local[*]` would allow one."""
SPARK_TYPES = ("spark", "spark_connect")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupResult:
    """What existed or was made; `missing` are sentences about connections that an operator has to create."""

    pools: tuple[str, ...]
    connections: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What exists now, as a sentence."""
        return f"pools: {', '.join(self.pools) or 'none'}; connections: {', '.join(self.connections)}"


def setup(config: Path | None, *, create_spark: bool = False, dry_run: bool = False) -> SetupResult:
    """Create the one-slot pools of the file's flows and check the Spark connections that they name.

    `create_spark` makes a missing `spark_default` a connection to Spark in local mode. Without a file only that one is
    checked. A `dry_run` makes nothing. Raises Refused when Airflow's database cannot be used.
    """
    flows: Sequence[FlowConfig] = load(config).flows if config else ()
    with _database():
        return _set_up(flows, create_spark=create_spark, dry_run=dry_run)


def missing_parts(flows: Sequence[FlowConfig]) -> list[str]:
    """Return a sentence for each pool and connection of the flows that is missing or wrong; makes nothing.

    Raises Refused when Airflow's database cannot be used.
    """
    with _database():
        pools = [sentence for pool in sorted({flow.airflow.pool for flow in flows}) if (sentence := _wrong_pool(pool))]
        return [*pools, *_set_up(flows, create_spark=False, dry_run=True).missing]


@contextmanager
def _database() -> Iterator[None]:
    """Raise Refused for an error of Airflow's database."""
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - it comes with Airflow

    try:
        yield
    except SQLAlchemyError as error:
        why = str(error).partition("\n")[0]
        raise Refused(
            f"Airflow's database cannot be used ({why}): check AIRFLOW_HOME, run `airflow db migrate`"
        ) from error


def _set_up(flows: Sequence[FlowConfig], *, create_spark: bool, dry_run: bool) -> SetupResult:
    pools = sorted({flow.airflow.pool for flow in flows})
    conn_ids = sorted({flow.airflow.spark_conn_id for flow in flows} or {DEFAULT_SPARK})
    for pool in () if dry_run else pools:
        _ensure_pool(pool)
    missing = [
        sentence
        for conn_id in conn_ids
        if (sentence := _ensure_connection(conn_id, create=create_spark and not dry_run and conn_id == DEFAULT_SPARK))
    ]
    kafka_ids = sorted({conn_id for flow in flows for conn_id in flow.clients.connections.values()})
    missing += [sentence for conn_id in kafka_ids if (sentence := _kafka_connection(conn_id))]
    return SetupResult(pools=tuple(pools), connections=(*conn_ids, *kafka_ids), missing=tuple(missing))


def _ensure_pool(name: str) -> None:
    from airflow.models.pool import Pool  # noqa: PLC0415 - Airflow reads its configuration when it is imported

    if _wrong_pool(name) is not None:
        Pool.create_or_update_pool(name, slots=1, description="Keeps the runs of a flow apart", include_deferred=True)


def _wrong_pool(name: str) -> str | None:
    """Return None when the pool is there with one slot, which waiting tasks keep; else what an operator has to do."""
    from airflow.models.pool import Pool  # noqa: PLC0415 - as above
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above

    with create_session() as session:
        pool = session.query(Pool).filter(Pool.pool == name).one_or_none()
        if pool is None:
            found = "is missing"
        elif pool.slots != 1:
            found = f"has {pool.slots} slots, so that two runs of a flow may compete"
        elif not pool.include_deferred:
            found = "does not count deferred tasks, which wait in the triggerer, so that two runs of a flow may compete"
        else:
            return None
    return f"pool {name!r} {found}: run ferry airflow setup, which gives it one slot, and counts deferred tasks"


def _connection(conn_id: str) -> Any:
    """Return a connection of Airflow; None when it does not exist."""
    from airflow.models.connection import Connection  # noqa: PLC0415 - as above
    from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: PLC0415 - as above

    try:
        return Connection.get_connection_from_secrets(conn_id)
    except AirflowNotFoundException:
        return None


def _ensure_connection(conn_id: str, *, create: bool) -> str | None:
    """Return None when the connection exists by now; else what an operator has to do."""
    connection = _connection(conn_id)
    if connection is None and create:
        _create_spark(conn_id)
        return None
    if connection is None:
        return (
            f"Spark connection {conn_id!r} is missing: "
            f"airflow connections add {conn_id} --conn-type spark --conn-host 'spark://HOST:7077'"
        )
    if connection.conn_type not in SPARK_TYPES:
        return f"connection {conn_id!r} is of type {connection.conn_type!r}: make it 'spark' or 'spark_connect'"
    return None


def _create_spark(conn_id: str) -> None:
    from airflow.models.connection import Connection  # noqa: PLC0415 - as above
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above

    with create_session() as session:
        session.add(Connection(conn_id=conn_id, conn_type="spark", host=LOCAL_SPARK))


def _kafka_connection(conn_id: str) -> str | None:
    """Return None when the connection exists; else what an operator has to do. The Test button checks its settings."""
    connection = _connection(conn_id)
    if connection is None:
        return f"Kafka connection {conn_id!r} is missing: create it with the type Kafka cluster"
    kind = connection.conn_type
    if kind in KAFKA_TYPES:
        return None
    return f"connection {conn_id!r} is of type {kind!r}: make it {' or '.join(map(repr, KAFKA_TYPES))}"


def main(arguments: Sequence[str]) -> int:
    """Make HOME a local Airflow that is set up; return 2 when the file is wrong."""
    parser = argparse.ArgumentParser(prog="python -m ferry_airflow.setup", description=__doc__)
    parser.add_argument("--config", type=Path, default=os.environ.get(CONFIG_VARIABLE) or None)
    parser.add_argument("--local", type=Path, metavar="HOME", required=True, help="the folder of the Airflow")
    given = parser.parse_args(arguments)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        os.environ.update(prepare(given.local, config=given.config).environment)
        _migrate()
        result = setup(given.config, create_spark=True)
    except FerryError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for sentence in result.missing:
        print(sentence, file=sys.stderr)
    print(result.sentence)
    return 0


def _migrate() -> None:
    from airflow.utils.db import upgradedb  # noqa: PLC0415 - as above

    upgradedb()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
