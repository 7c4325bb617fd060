"""The version of this machine's Java, and JVM options for a quick start.

The options choose the C1 compiler, one garbage collector thread, and a class-data archive. The archive (JEP 350,
AppCDS) is tied to the JVM and the class path with which it was made. A JVM that it does not fit starts as if there were
none.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

LEAST_JAVA = 17
"""The oldest Java on which Spark 4 runs."""

FAST_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options for a short start-up at the price of peak speed; a bench gives its own."""
ARCHIVE = "ferry.jsa"
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""A stale archive costs seconds, and its warning would be in the log of every broker and the output of every job."""


_ANSWERS_S = 30.0


def java_version() -> int | None:
    """Return the major version of the java command that Spark starts; None if none starts, or none is shown."""
    home = os.environ.get("JAVA_HOME")
    try:
        # The version is on standard error.
        done = subprocess.run(
            [f"{home}/bin/java" if home else "java", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWERS_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)  # Java 8 calls itself 1.8
    return int(found.group(1)) if found and not done.returncode else None


def archive_options(folder: Path) -> tuple[str, ...]:
    """Return the JVM options that name the class-data archive in a `folder`; none when `make` made none there."""
    archive = folder / ARCHIVE
    return (f"-XX:SharedArchiveFile={archive}", *QUIET) if archive.exists() else ()
