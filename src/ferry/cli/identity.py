"""Who runs a command, and the ids of what it starts, for those who read the ledger later."""

from __future__ import annotations

import os
import pwd
import secrets
import socket

from ferry.clock import wall_ms
from ferry.words import in_name


def person() -> str:
    """Return `user@host`: the user that the process runs as, whatever LOGNAME and USER are."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user need not have a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def new_run(verb: str) -> str:
    """Return an id under which a verb writes to the ledger; a drill's id also names its lane."""
    return f"{verb}-{in_name(wall_ms())}-{secrets.token_hex(2)}"
