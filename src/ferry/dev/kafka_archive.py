"""A class-data archive (JEP 350, AppCDS) of Kafka's broker: with it a broker starts in two thirds of the CPU time.

A broker 4.3.0 and the StorageTool before it took 4.2 CPU-seconds, and 2.7 with the archive; most of the difference is
loading and verifying classes. The archive is tied to the JVM and to the jars it was made with; a JVM that it does not
fit starts without it.
"""

import sys
import tempfile
from pathlib import Path

from ferry.dev.cluster import down, up
from ferry.dev.jars import jars
from ferry.dev.spec import ClusterSpec
from ferry.errors import FerryError, Refused
from ferry.jvm import ARCHIVE, FAST_START, QUIET

WRITING_SECONDS = 120.0
"""A JVM writes the archive when it ends, which takes seconds."""


def build(version: str) -> Path:
    """Run a broker of Kafka `version` once and archive the classes that it loaded, next to its jars; return the path.

    Raises:
        BadInput: there are no such jars.
        Refused: the broker wrote no archive.
        Unreachable: the broker did not start; the sentence carries the end of its log.
    """
    archive = jars(version).resolve() / ARCHIVE
    archive.unlink(missing_ok=True)
    draft = archive.with_suffix(".new.jsa")
    with tempfile.TemporaryDirectory() as home:
        options = (*FAST_START, f"-XX:ArchiveClassesAtExit={draft}", *QUIET)
        cluster = up(ClusterSpec(name="archive", version=version, java_options=options), home=Path(home))
        draft.unlink(missing_ok=True)  # written by the StorageTool, which has loaded fewer classes
        down(Path(home), grace_seconds=WRITING_SECONDS)
        if not draft.exists():
            raise Refused(
                f"The class-data archive of Kafka {version} was not made; the broker's log ends with:\n"
                f"{cluster.brokers[0].tail()}"
            )
    draft.replace(archive)
    return archive


def main(arguments: list[str]) -> int:
    """`python -m ferry.dev.kafka_archive VERSION` builds the archive."""
    try:
        archive = build(arguments[0])
    except FerryError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{archive.name}: {archive.stat().st_size >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
