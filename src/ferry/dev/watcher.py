"""The process behind `guard`: waits for the end of its standard input, then deletes the clusters of a home."""

import os
import sys
from pathlib import Path

from ferry.dev.cluster import down


def main(home: Path) -> None:
    """Whoever holds the other end of the pipe is gone when it ends, however that came."""
    while os.read(0, 1024):
        pass
    down(home, delete=True, grace_seconds=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
