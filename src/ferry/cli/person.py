"""Who is at the keyboard, for whoever reads the ledger later."""

from __future__ import annotations

import getpass
import os
import socket


def person() -> str:
    """`user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
