"""The process that `guard` starts: waits for the end of its standard input, then deletes the clusters of a home."""

import os
import sys
from pathlib import Path

from ferry.dev.cluster import down


def main(home: Path) -> None:
    """Delete the clusters of `home` when standard input ends: the process at its other end is then gone."""
    while os.read(0, 1024):
        pass
    down(home, delete=True, grace_seconds=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
