"""Connection data for the driver, from the task that started it: through a named pipe that only their user may open.

A pipe's content is in memory until the driver reads it, once. Nothing of it is in a file, an argument, a Spark property
or the driver's environment.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import CLIENTS
from ferry.config.text.secret_refs import LookedUp
from ferry.config.text.secrets import ClientProperties, Providers, is_secret
from ferry.errors import BadInput

JOIN_SECONDS = 0.05
CONNECTION_VARIABLES = "AIRFLOW_CONN_"


@contextmanager
def offered(flow: FlowConfig, path: Path) -> Iterator[Path]:
    """Offer the resolved properties of the flow's clients in a pipe at `path` to one reader, while the block runs.

    Raises BadInput, before anything is offered, when a secret cannot be resolved.
    """
    clients = [(side, role, flow.client(side, role)) for side, role in CLIENTS]
    content = json.dumps(
        [[side, role, dict(had), [asdict(one) for one in had.looked_up]] for side, role, had in clients]
    )
    os.mkfifo(path, 0o600)
    writer = threading.Thread(target=_write, args=(path, content.encode()), name="ferry-handover", daemon=True)
    writer.start()
    try:
        yield path
    finally:
        # Perhaps no process has read: a reader that opens and closes the pipe ends the wait, wherever the writer is.
        while writer.is_alive():
            with suppress(OSError):
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            writer.join(JOIN_SECONDS)
        path.unlink(missing_ok=True)


def taken(flow: FlowConfig, path: Path) -> FlowConfig:
    """Return the flow with the properties that `offered` has put into the pipe; all are resolved, ready for use.

    Raises BadInput when there is no pipe, or when the pipe holds no such properties.
    """
    try:
        if not stat.S_ISFIFO(path.stat().st_mode):
            raise BadInput(f"{path} is not a pipe; connection data is passed by a pipe, never by a file")
        rows = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} passes no connection data ({type(error).__name__}); start the task again") from None
    clients = {
        (side, role): ClientProperties(values_by_key=properties, looked_up=tuple(LookedUp(**one) for one in looked_up))
        for side, role, properties, looked_up in rows
    }
    return replace(
        flow, clients=replace(flow.clients, properties=clients, providers=Providers(kinds={}), unknown=frozenset())
    )


def emptied(flow: FlowConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environment` that hold secrets which the driver does not need, emptied.

    These are an Airflow connection, secrets of the flow's clients, and the key that signs reports. The driver would
    pass them on to the JVM and to every worker. It keeps the salts of transforms: it makes hashes with them.
    """
    names = {name for name in environment if name.startswith(CONNECTION_VARIABLES)}
    for properties in (*flow.clients.properties.values(), flow.report.signing):
        for key, value in properties.items():
            if is_secret(key):
                names |= flow.clients.providers.variables(value) & environment.keys()
    salts = {name for spec in flow.records.transforms for name in spec.providers.variables(spec.salt)}
    return dict.fromkeys(sorted(names - salts), "")


def _write(path: Path, content: bytes) -> None:
    with suppress(BrokenPipeError), path.open("wb") as pipe:
        pipe.write(content)
