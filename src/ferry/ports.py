"""Free TCP ports on 127.0.0.1."""

import random
import socket
from contextlib import ExitStack

from ferry.errors import Refused

LOOPBACK = "127.0.0.1"
# Below the range that Linux, macOS and IANA give to outgoing connections (from 32768). A broker that is killed and
# started again keeps its ports. From that range, a client could own one meanwhile, or could even reach itself while it
# reconnects to the dead broker.
FIRST, LAST = 20_000, 32_000
TRIES = 1_000


def free_ports(count: int) -> list[int]:
    """Return `count` distinct ports on which no process listens now; another process may still take one before its use.

    Raises Refused when nearly all ports of the range are taken.
    """
    ports: list[int] = []
    with ExitStack() as held:
        for port in random.sample(range(FIRST, LAST), TRIES):
            if len(ports) == count:
                return ports
            candidate = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                candidate.bind((LOOPBACK, port))
            except OSError:
                continue
            ports.append(port)
    raise Refused(f"Found {len(ports)} of {count} free ports between {FIRST} and {LAST}: end what listens there.")
