"""The codecs of batches, against Python's own libraries where there is one."""

import gzip
import random
import struct

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ferry.model import Codec, Compression
from ferry.wire.codecs import Malformed, TooLong, compressed, decompressed
from tests.golden import Golden

MOST = 1 << 24
TEXT = b"".join(b"%d," % number for number in range(50_000))
payloads = st.binary(max_size=200) | st.builds(
    lambda seed, size: random.Random(seed).randbytes(size // 9) * 9, st.integers(), st.integers(0, 300_000)
)
packed = pytest.mark.parametrize("codec", [codec for codec in Codec if codec], ids=lambda codec: codec.name)


@given(payloads, st.sampled_from(Codec), st.sampled_from([None, 1, 9]))
def test_what_was_compressed_comes_back(data: bytes, codec: Codec, level: int | None) -> None:
    assert decompressed(codec, compressed(Compression(codec=codec, level=level), data), MOST) == data


@given(payloads)
def test_other_libraries_read_what_is_written(data: bytes) -> None:
    def written(codec: Codec) -> bytes:
        return bytes(compressed(Compression(codec=codec), data))

    assert gzip.decompress(written(Codec.GZIP)) == data
    assert lz4.frame.decompress(written(Codec.LZ4)) == data
    with zstandard.ZstdDecompressor().stream_reader(written(Codec.ZSTD)) as reader:
        assert reader.read() == data


@given(payloads)
def test_what_other_libraries_write_is_read(data: bytes) -> None:
    assert decompressed(Codec.GZIP, gzip.compress(data), MOST) == data
    assert decompressed(Codec.LZ4, lz4.frame.compress(data, block_linked=False), MOST) == data
    assert decompressed(Codec.LZ4, lz4.frame.compress(data, content_checksum=True, store_size=False), MOST) == data
    assert decompressed(Codec.ZSTD, zstandard.ZstdCompressor().compress(data), MOST) == data


@pytest.mark.parametrize("second", [TEXT, TEXT[:7], b""])
def test_gzip_streams_of_several_members_are_read(second: bytes) -> None:
    both = gzip.compress(TEXT) + gzip.compress(second)
    assert decompressed(Codec.GZIP, both, MOST) == TEXT + second
    with pytest.raises(TooLong):
        decompressed(Codec.GZIP, both, len(TEXT + second) - 1)


def test_a_gzip_stream_that_says_another_size_is_malformed() -> None:
    data = bytearray(gzip.compress(TEXT))
    for size in (0, 5, len(TEXT) - 1, len(TEXT) + 1, 2**32 - 1):
        data[-4:] = struct.pack("<I", size)
        with pytest.raises(Malformed):
            decompressed(Codec.GZIP, data, MOST)


def test_lz4_frames_have_independent_blocks_or_java_does_not_read_them() -> None:
    flags = compressed(Compression(codec=Codec.LZ4), TEXT)[4]
    assert flags >> 6 == 1  # version
    assert flags & 0x20  # block independence


def test_snappy_is_in_blocks_of_32_kib_as_java_writes_it() -> None:
    found = bytes(compressed(Compression(codec=Codec.SNAPPY), TEXT))
    assert found[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    at, blocks = 16, 0
    while at < len(found):
        at += 4 + struct.unpack_from(">i", found, at)[0]
        blocks += 1
    assert (at, blocks) == (len(found), -(-len(TEXT) // (32 << 10)))


@packed
def test_what_is_longer_than_allowed_is_not_held(codec: Codec, golden: Golden) -> None:
    data = compressed(Compression(codec=codec), bytes(1_000_000))
    assert len(decompressed(codec, data, 1_000_000)) == 1_000_000
    with pytest.raises(TooLong) as caught:
        decompressed(codec, data, 999_999)
    golden(caught.value)


@packed
def test_what_compresses_a_thousandfold_is_read(codec: Codec) -> None:
    assert decompressed(codec, compressed(Compression(codec=codec), bytes(10_000_000)), MOST) == bytes(10_000_000)


@packed
@pytest.mark.parametrize("keep", [0, 1, 20, 0.5, 0.99])
def test_what_is_cut_is_malformed(codec: Codec, keep: float) -> None:
    data = bytes(compressed(Compression(codec=codec), TEXT))
    with pytest.raises(Malformed):
        decompressed(codec, data[: keep if isinstance(keep, int) else int(len(data) * keep)], MOST)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_named(codec: int, golden: Golden) -> None:
    with pytest.raises(Malformed) as caught:
        decompressed(codec, b"", MOST)
    golden(caught.value)
