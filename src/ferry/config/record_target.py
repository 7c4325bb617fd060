"""Where to write a DataFrame of the user, in options as those of `ferry.config.record_source`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.client_options import ConnectionOptions
from ferry.config.flow.clients import kafka_python_options, produce_options
from ferry.config.keys import values
from ferry.config.record_source import check_names, cluster_of, read_option
from ferry.errors import BadInput, Refused
from ferry.model import Compression, located

_OPTIONS = ("config", "cluster", "ledger.replication.factor", "transaction.timeout.ms")
_OWN = ("transactional.id", "enable.idempotence", "acks")
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,150}")
"""The form of the names of topics and transactional ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTarget:
    """A cluster that records are written to."""

    alias: str
    connection: ConnectionOptions = field(repr=False)
    compression: Compression | None
    ledger_replicas: int
    transaction_timeout_ms: int


def record_target(options: Mapping[str, str]) -> RecordTarget:
    """Read the options; their names are in lower case. Raises BadInput, or Refused for what is not supported."""
    check_names(options, _OPTIONS, "producer")
    for name in _OWN:
        if f"kafka.{name}" in options:
            raise Refused(f"option kafka.{name}: what makes records arrive exactly once is not to be set; remove it")
    alias, properties = cluster_of(options, "producer")
    try:
        connection = kafka_python_options({"client.id": "ferry-delivery", **properties})
        compression = produce_options(properties).compression
    except (BadInput, Refused) as error:
        raise type(error)(located(f"cluster {alias}", properties.redacted(error))) from None
    return RecordTarget(
        alias=alias,
        connection=connection,
        compression=compression,
        ledger_replicas=read_option(options, "ledger.replication.factor", "3", values.integer(1, 32767)),
        transaction_timeout_ms=read_option(options, "transaction.timeout.ms", "60000", values.integer(10_000, 900_000)),
    )


def check_application(application: object, batch: object) -> None:
    """Raise BadInput for an application name, or a batch number, that is not allowed."""
    if not isinstance(application, str) or _NAME.fullmatch(application) is None:
        raise BadInput(f"application is {application!r}: write letters, digits, dots, dashes, underscores; 150 at most")
    if not isinstance(batch, int) or isinstance(batch, bool) or not 0 <= batch < 2**63:
        raise BadInput(f"batch is {batch!r}: write a number from 0 on, as foreachBatch hands it over")
