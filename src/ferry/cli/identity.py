"""Who is at the keyboard, and the ids of what they start, for whoever reads the ledger later."""

from __future__ import annotations

import os
import pwd
import secrets
import socket
from datetime import UTC, datetime


def person() -> str:
    """`user@host`: whom the system runs the process as, whatever LOGNAME and USER say."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user need not have a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def new_run(verb: str) -> str:
    """The id under which a verb writes to the ledger; of a drill it names the lane, too."""
    return f"{verb}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
