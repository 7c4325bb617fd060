"""Every reader of records is bounded, knows all codecs without the tests' libraries, and names what it cannot read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferry.model import Codec
from tests.pure.wire.captured import CODECS, captured
from tests.pure.wire.hostile import packed, record

CHECKOUT = Path(__file__).parents[3]

BOMB = """
import sys
from ferry.wire.batch import batches
from ferry.wire.codecs import TooLong
from tests.memory import peak_mb
from tests.pure.wire.readers import READERS

(batch,) = batches(open(sys.argv[1], "rb").read())
read = READERS[sys.argv[2]]
before = peak_mb()
try:
    read(batch)
except TooLong:
    print(peak_mb() - before)
"""

BARE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"lz4", "snappy", "zstandard", "zstd", "backports", "brotli"}:
            raise ImportError(f"{name} comes with the extra test alone")

sys.meta_path.insert(0, Blocked())
from tests.pure.wire.captured import CODECS, captured
from tests.pure.wire.readers import READERS

for codec in CODECS:
    for name, read in READERS.items():
        print(codec, name, sum(read(batch) for batch in captured(f"codec-{codec}").batches))
"""


def run(script: str, *arguments: str) -> str:
    """What a new interpreter prints that has Ferry and its tests."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a batch: 400 MB of zeros in 13 kB of zstd. A reader without a bound takes three times as much."""
    file = tmp_path_factory.mktemp("bomb") / "batch"
    file.write_bytes(packed(Codec.ZSTD, record(0, b"k", bytes(400 << 20))).data)
    assert file.stat().st_size < 100_000
    return str(file)


@pytest.mark.parametrize("reader", ["ledger", "digests", "committed"])
def test_a_small_batch_cannot_take_the_memory_of_a_large_one(bomb: str, reader: str) -> None:
    assert float(run(BOMB, bomb, reader)) < 200


def test_all_codecs_are_read_in_an_installation_without_the_libraries_of_the_tests() -> None:
    lines = [line.split() for line in run(BARE).splitlines()]
    assert {codec for codec, _, _ in lines} == set(CODECS)
    for codec, _, count in lines:
        assert int(count) == len(captured(f"codec-{codec}").uncommitted)
