"""Which deployment a run belongs to: `ferry.deployment`, else FERRY_DEPLOYMENT, else where the file is used from.

A deployment is one file and all that runs by it, be it on many machines. Two that work on one lane by different files
would each undo what the other means; `ferry.ledger.deployments` refuses that.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ferry.config.keys import values
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput

DEPLOYMENT_VARIABLE = "FERRY_DEPLOYMENT"

_EXECUTION_PATH = "/execution"


def deployment_id(given: str, environment: Mapping[str, str], default: str) -> str:
    """The id: what the file gives, else the variable, else `default`; BadInput for a variable that holds no name."""
    text = environment.get(DEPLOYMENT_VARIABLE, "").strip()
    if given or not text:
        return given or default
    try:
        return values.name(text)
    except BadValue as error:
        raise BadInput(f"{DEPLOYMENT_VARIABLE}: {error}") from None


def of_file(path: Path) -> str:
    """The default on a command line: this host and the file's true path."""
    return f"{socket.gethostname()}:{path.resolve()}"


def of_airflow(base_url: str, execution_url: str) -> str:
    """The default in Airflow: the address of its API server, which all of its workers are told and no other's are.

    Of `[api] base_url` and `[core] execution_api_server_url` the first that leads to another host; workers may then
    come and go under any host name. An Airflow whose addresses are all loopback is on this one host, whose name joins.
    """
    places = [_place(base_url), _place(execution_url)]
    for place in places:
        if place is not None and not _is_loopback(place):
            return f"airflow:{place}"
    near = next((place for place in places if place is not None), "localhost:8080")
    return f"airflow:{near}@{socket.gethostname()}"


def _place(url: str) -> str | None:
    """Host, port and path of an URL; without a login that it may hold."""
    parts = urlsplit(url.strip())
    if not parts.hostname:
        return None
    path = parts.path.rstrip("/").removesuffix(_EXECUTION_PATH)
    return f"{parts.netloc.rpartition('@')[2].lower()}{path}"


def _is_loopback(place: str) -> bool:
    host = urlsplit(f"//{place}").hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
