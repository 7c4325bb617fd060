"""The codecs of record batches, in the framings of Java's clients: cramjam's, and libdeflate's gzip.

Sources: Kafka's `CompressionType`, `Lz4BlockInputStream` (frames of independent blocks), `SnappyFactory` (the blocks of
snappy-java's `SnappyOutputStream`; librdkafka writes one block without them). Sizes are bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import cramjam
import deflate

from ferry.model import Codec, Compression

Buffer = bytes | bytearray | memoryview

_LEAST_ROOM = 64 << 10
_KEPT_ROOM = 8 << 20

_GZIP_LEVEL = 5
"""The level of libdeflate: about the size of Java's result (zlib's 6), in a third of its time."""

_JAVA_LZ4_FAST = 9
"""The `compression.lz4.level` at which Java compresses fast and not hard; its default."""

_GZIP_MEMBER = b"\x1f\x8b\x08"
"""The first bytes of each member of a stream (RFC 1952)."""

_GZIP_SIZE = struct.Struct("<I")
"""The last bytes of a member: the number of bytes that were compressed."""

_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_MAGIC = _XERIAL_HEADER[:8]
_XERIAL_BLOCK = 32 << 10
_XERIAL_SIZE = struct.Struct(">i")

_LZ4_SIZE = struct.Struct("<I")
_LZ4_STORED = 0x8000_0000
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")
"""Magic, independent blocks without checksums, 64 KiB at most in each, and the checksum of these two bytes."""
_LZ4_BLOCK = 64 << 10
_LZ4_BLOCK_MOST = _LZ4_BLOCK + _LZ4_BLOCK // 255 + 16  # of what cannot be compressed (LZ4_COMPRESSBOUND)
_LZ4_BLOCK_ROOM = _LZ4_SIZE.size + _LZ4_BLOCK_MOST - _LZ4_BLOCK
_LZ4_BLOCK_BYTES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}


class Malformed(Exception):
    """Bytes that are not what their header describes; half a sentence about the difference."""


class TooLong(Exception):
    """The bytes are more, when decompressed, than the memory allows; half a sentence."""


class Room:
    """Memory into which one payload after the other is decompressed, `most` bytes of each.

    It is used again, because fresh pages for each payload would cost as much as the codec.
    """

    __slots__ = ("data", "most")

    def __init__(self, most: int) -> None:
        self.data = bytearray()
        self.most = most

    def make(self, size: int, most: int | None = None) -> None:
        """Have room for `size` bytes, or for as many as are allowed; the content is lost."""
        size = min(size, self.most if most is None else most)
        if len(self.data) < size or len(self.data) > max(size, _KEPT_ROOM):
            self.data = bytearray(size)


def decompress(codec: int, data: Buffer, room: Room) -> int:
    """Decompress `data` into the beginning of `room`; return the number of bytes.

    Raises Malformed when that fails or the codec does not exist, TooLong when there are more bytes than `room` takes.
    """
    match codec:
        case Codec.NONE:
            room.make(len(data), len(data))
            room.data[: len(data)] = data
            return len(data)
        case Codec.GZIP:
            return _one_member(data, room) or _whole(cramjam.gzip.decompress_into, data, room)
        case Codec.SNAPPY:
            return _snappy(memoryview(data), room)
        case Codec.LZ4:
            return _whole(cramjam.lz4.decompress_into, data, room)
        case Codec.ZSTD:
            return _whole(cramjam.zstd.decompress_into, data, room)
    raise Malformed(f"it names compression {codec}, which does not exist")


def decompressed(codec: int, data: Buffer, most: int) -> bytearray:
    """Decompress `data` into new memory, `most` bytes at most.

    Raises Malformed when that fails or the codec does not exist, TooLong when there are more bytes.
    """
    room = Room(most)
    size = decompress(codec, data, room)
    del room.data[size:]
    return room.data


def compressed(compression: Compression, data: Buffer) -> Buffer:
    """Return `data` as a batch's payload."""
    level = compression.level
    match compression.codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return deflate.gzip_compress(data, _GZIP_LEVEL if level is None or level < 0 else level)
        case Codec.SNAPPY:
            view = memoryview(data)
            out = bytearray(_XERIAL_HEADER)
            for at in range(0, len(view), _XERIAL_BLOCK):
                block = memoryview(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK]))
                out += _XERIAL_SIZE.pack(len(block))
                out += block
            return out
        case Codec.LZ4:
            if level in (None, _JAVA_LZ4_FAST):
                return _lz4_frame(memoryview(data))
            encoder = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
            encoder.compress(bytes(data))
            return memoryview(encoder.finish())
        case Codec.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=3 if level is None else level))


def _lz4_frame(view: memoryview) -> memoryview:
    """Compress block by block into one frame; cramjam's own encoder costs a quarter more, because of its buffers."""
    out = bytearray(len(_LZ4_HEADER) + len(view) + (len(view) // _LZ4_BLOCK + 2) * _LZ4_BLOCK_ROOM)
    into = memoryview(out)
    out[: len(_LZ4_HEADER)] = _LZ4_HEADER
    at = len(_LZ4_HEADER)
    for begin in range(0, len(view), _LZ4_BLOCK):
        block = view[begin : begin + _LZ4_BLOCK]
        behind = at + _LZ4_SIZE.size
        size = cramjam.lz4.compress_block_into(block, into[behind : behind + _LZ4_BLOCK_MOST], store_size=False)
        marked = size
        if size >= len(block):
            size = len(block)
            into[behind : behind + size] = block
            marked = size | _LZ4_STORED
        _LZ4_SIZE.pack_into(out, at, marked)
        at = behind + size
    _LZ4_SIZE.pack_into(out, at, 0)
    return into[: at + _LZ4_SIZE.size]


def decompressed_lz4_of_magic_0(data: Buffer, most: int) -> bytearray:
    """Decompress lz4 of messages of format v0, whose frames have a wrong header checksum (KAFKA-3160).

    Raises Malformed when the frame cannot be read, TooLong when there are more than `most` bytes.
    """
    view = memoryview(data)
    try:
        flags, block_bytes = view[4], _LZ4_BLOCK_BYTES[view[5] >> 4 & 7]
        at = 7 + (8 if flags & _LZ4_CONTENT_SIZE else 0)
        out = bytearray()
        while size := _LZ4_SIZE.unpack_from(view, at)[0]:
            at += 4
            stored, size = size & _LZ4_STORED, size & ~_LZ4_STORED
            block = view[at : at + size]
            at += size + (4 if flags & _LZ4_BLOCK_CHECKSUM else 0)
            if stored:
                out += block
            else:
                room = bytearray(block_bytes)
                out += memoryview(room)[: cramjam.lz4.decompress_block_into(block, room)]
            if len(out) > most:
                raise TooLong(f"decompressed it has more than {most} bytes")
    except (KeyError, IndexError, struct.error, cramjam.DecompressionError) as error:
        raise Malformed(f"its lz4 frame cannot be read ({error})") from error
    return out


def _whole(into: Callable[[Buffer, bytearray], int], data: Buffer, room: Room) -> int:
    """Decompress into the room, and into a larger one when it is too small."""
    room.make(max(_LEAST_ROOM, 4 * len(data)))
    while True:
        try:
            return into(data, room.data)
        except cramjam.DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise Malformed(f"it cannot be decompressed ({error})") from error
            if len(room.data) >= room.most:
                raise TooLong(f"decompressed it has more than {room.most} bytes") from error
            room.make(4 * len(room.data))


def _one_member(data: Buffer, room: Room) -> int:
    """Decompress a gzip stream of one member with libdeflate, in half the time; return the number of bytes.

    0 when libdeflate cannot: the stream has several members, or is damaged.
    """
    held = bytes(data)
    if len(held) < _GZIP_SIZE.size or held.find(_GZIP_MEMBER, 1) >= 0:
        return 0
    (size,) = _GZIP_SIZE.unpack_from(held, len(held) - _GZIP_SIZE.size)
    if not 0 < size <= room.most:
        return 0
    try:
        found = deflate.gzip_decompress(held, size)
    except deflate.DeflateError:  # the other decoder raises what is wrong
        return 0
    if len(found) != size:
        return 0
    room.data = found
    return len(found)


def _snappy(view: memoryview, room: Room) -> int:
    try:
        blocks = list(_snappy_blocks(view))
        sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
        if sum(sizes) > room.most:
            raise TooLong(f"decompressed it has more than {room.most} bytes")
        room.make(sum(sizes))
        at = 0
        with memoryview(room.data) as into:
            for block, size in zip(blocks, sizes, strict=True):
                cramjam.snappy.decompress_raw_into(block, into[at : at + size])
                at += size
    except (struct.error, cramjam.DecompressionError) as error:
        raise Malformed(f"it cannot be decompressed ({error})") from error
    return at


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield view
        return
    at = len(_XERIAL_HEADER)
    while at < len(view):
        size = _XERIAL_SIZE.unpack_from(view, at)[0]
        at += _XERIAL_SIZE.size
        if not 0 <= size <= len(view) - at:
            raise Malformed(f"a snappy block says that it has {size} bytes")
        yield view[at : at + size]
        at += size
