"""Who runs a command, and the ids of what it starts, for those who read the ledger later."""

from __future__ import annotations

import os
import pwd
import secrets
import socket
from datetime import UTC, datetime


def person() -> str:
    """Return `user@host`: the user that the process runs as, whatever LOGNAME and USER are."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user need not have a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def new_run(verb: str) -> str:
    """Return an id under which a verb writes to the ledger; a drill's id also names its lane."""
    return f"{verb}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
