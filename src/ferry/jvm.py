"""JVM options for a quick start: the C1 compiler, one garbage collector thread, and a class-data archive.

The archive (JEP 350, AppCDS) is tied to the JVM and the class path with which it was made. A JVM that it does not fit
starts as if there were none.
"""

from __future__ import annotations

from pathlib import Path

FAST_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options for a short start-up at the price of peak speed; a bench gives its own."""
ARCHIVE = "ferry.jsa"
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""A stale archive costs seconds, and its warning would be in the log of every broker and the output of every job."""


def archive_options(folder: Path) -> tuple[str, ...]:
    """Return the JVM options that name the class-data archive in a `folder`; none when `make` made none there."""
    archive = folder / ARCHIVE
    return (f"-XX:SharedArchiveFile={archive}", *QUIET) if archive.exists() else ()
