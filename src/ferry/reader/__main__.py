"""`python -m ferry.reader PATH`: the reader of the page, at the Unix socket PATH.

The page starts one itself, which ends with it. With `--stay` it is a program of its own, for pages whose API servers
have FERRY_READER=unix:PATH in their environment.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ferry.reader.server import run


def main() -> int:
    """Answer until no page asks any more."""
    parser = argparse.ArgumentParser(prog="python -m ferry.reader", description=__doc__)
    parser.add_argument("path", type=Path, help="where the socket is to be")
    parser.add_argument("--stay", action="store_true", help="stay when no page asks")
    asked = parser.parse_args()
    return run(asked.path.absolute(), stays=asked.stay)


if __name__ == "__main__":
    raise SystemExit(main())
