"""Every reader of records is bounded, knows all codecs without the tests' libraries, and names what it cannot read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferry.errors import BadInput
from ferry.model import Codec, Record
from ferry.wire import records as own
from ferry.wire.batch import Batch, batches
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.records import ProducerIdentity, build_batch, open_batch, record_digests
from tests.wire.captured import CODECS, captured
from tests.wire.hostile import packed, raw_batch, record

CHECKOUT = Path(__file__).parents[2]

BOMB = """
import sys
from ferry.wire.batch import batches
from ferry.wire.codecs import TooLong
from tests.memory import peak_mb
from tests.wire.readers import READERS

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
from tests.wire.captured import CODECS, captured
from tests.wire.readers import READERS

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


@pytest.mark.process
@pytest.mark.parametrize("reader", ["ledger", "digests", "committed"])
def test_a_small_batch_cannot_take_the_memory_of_a_large_one(bomb: str, reader: str) -> None:
    assert float(run(BOMB, bomb, reader)) < 200


@pytest.mark.process
def test_all_codecs_are_read_in_an_installation_without_the_libraries_of_the_tests() -> None:
    lines = [line.split() for line in run(BARE).splitlines()]
    assert {codec for codec, _, _ in lines} == set(CODECS)
    for codec, _, count in lines:
        assert int(count) == len(captured(f"codec-{codec}").uncommitted)


def test_many_small_records_are_bounded_in_a_topic_of_ours() -> None:
    count = own.MOST_RECORDS + 1
    batch = packed(Codec.ZSTD, b"".join(record(index, None, None) for index in range(count)), count=count)
    with pytest.raises(TooLong):
        open_batch(batch)


@pytest.mark.parametrize(
    "found",
    [[Record(key=b"k", value=bytes(own.MOST_BYTES))], [Record(key=b"k", value=None)] * (own.MOST_RECORDS + 1)],
    ids=["bytes", "records"],
)
def test_what_could_not_be_read_again_is_not_written(found: list[Record]) -> None:
    with pytest.raises(BadInput):
        build_batch(found, 0, ProducerIdentity())


def test_what_is_just_small_enough_is_written_and_read() -> None:
    (batch,) = batches(build_batch([Record(key=b"k", value=bytes(own.MOST_BYTES - 100))], 0, ProducerIdentity()))
    assert [len(value or b"") for _, _, value in open_batch(batch)] == [own.MOST_BYTES - 100]


def test_names_of_headers_may_be_any_bytes() -> None:
    one = packed(Codec.GZIP, record(0, b"k", b"v", [(b"\xff\xfe", b"1")]))
    other = packed(Codec.GZIP, record(0, b"k", b"v", [(b"\xff\xfd", b"1")]))
    digests = [digest for batch in (one, other) for _, _, digest in record_digests(batch, 1 << 20)]
    assert len(set(digests)) == 2


def damaged(codec: Codec) -> Batch:
    """Its checksum is right, its records are cut off."""
    (batch,) = batches(raw_batch(b"\x28\xb5\x2f\xfd\x1f\x8b\x08", codec=codec))
    return batch


@pytest.mark.parametrize("codec", list(Codec))
def test_a_damaged_payload_is_malformed_in_every_codec(codec: Codec) -> None:
    with pytest.raises(Malformed):
        list(open_batch(damaged(codec)))
    with pytest.raises(Malformed):
        list(record_digests(damaged(codec), 1 << 20))
