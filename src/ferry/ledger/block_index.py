"""The parts of a ledger that memory holds in short: receipts as blocks of offset maps, and the offsets of records.

Records of which only the offset is kept are read when they are needed.
"""

from __future__ import annotations

from array import array
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

from ferry.ledger.map_block import BLOCK_ROWS, MapEntry, ReceiptChain, columns_of, cut, pack, packed_columns, unpack

_BLOCK_COLUMNS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows of a chain: source offsets `[start, end)`, target offsets `[target_start, target_next)`.

    `at` is the ledger offset of its record, -1 while it has none; then `data` is what the record will hold. Target
    offsets are -1 where no record was copied yet.
    """

    start: int
    end: int
    target_start: int
    target_next: int
    rows: int
    at: int = -1
    data: bytes = b""

    @classmethod
    def of(cls, rows: Sequence[MapEntry]) -> Block:
        """Make a block that is not written yet."""
        first, nexts = rows[0], [-1 if row.target_next is None else row.target_next for row in (rows[0], rows[-1])]
        return cls(
            start=first.start,
            end=rows[-1].end,
            target_start=first.segments[0].target_start if first.segments else nexts[0],
            target_next=nexts[1],
            rows=len(rows),
            data=pack(rows),
        )


class BlockIndex(Sequence[Block]):
    """A chain's blocks as a summary has them, unpacked at the first access: a run reads few chains, or none."""

    __slots__ = ("_blocks", "_parts", "_where")

    def __init__(self, parts: Sequence[str], where: str) -> None:
        """Take `parts`, lines of `packed_blocks` in base64; `where` names them. Reading raises BadInput on damage."""
        self._parts = tuple(parts)
        self._where = where
        self._blocks: list[Block] | None = None

    def and_then(self, part: str) -> BlockIndex:
        """Return an index with one more part."""
        return BlockIndex((*self._parts, part), self._where)

    def _unpacked(self) -> list[Block]:
        if self._blocks is None:
            self._blocks = [block for part in self._parts for block in parse_blocks(b64decode(part), self._where)]
        return self._blocks

    def __len__(self) -> int:
        return len(self._unpacked())

    def __iter__(self) -> Iterator[Block]:
        return iter(self._unpacked())

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        return self._unpacked()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # how Python says so (object.__hash__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """A chain's receipts in ledger order: `blocks`, and after them `rest`, packed, too few for a block yet.

    Rows that end at the source offset `pruned` or before are pruned, and do not count.
    """

    blocks: Sequence[Block] = ()
    rest: bytes = b""
    pruned: int = -1

    def counting(self, rows: Iterable[MapEntry]) -> list[MapEntry]:
        """Return the rows that are not pruned."""
        return [row for row in rows if row.end > self.pruned]

    def first_for(self, offset: int, *, backward: bool = False) -> int:
        """Return the index of the block that holds a source offset (`backward`: target offset), or that ends before it.

        -1 when the offset is before all blocks.
        """
        return bisect_right(self.blocks, offset, key=lambda block: block.target_start if backward else block.start) - 1


NO_LINKS = Links()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDigest:
    """What is in the ledger before `upto` and is not in a view's records.

    `chains` replace all receipts there. `left` are the ledger offsets of other records, by key: plans and outcomes of
    runs, what snapshots hold of groups, and the parts of summaries. `summarised` is the offset up to which the summary
    reaches from which the view was read.
    """

    upto: int = 0
    summarised: int = 0
    chains: Mapping[ReceiptChain, Links] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)

    def without(
        self, keys: Iterable[str], topics: Iterable[tuple[object, ...]], lanes: Iterable[object] = ()
    ) -> LedgerDigest:
        """Return the digest without records whose keys (`keys`) were written again since.

        Copies (`topics`: lane, target topic) that were deleted, and lanes that were dropped, are left out, too.
        """
        again, gone, dropped = frozenset(keys), frozenset(topics), frozenset(lanes)
        return replace(
            self,
            chains={
                of: links
                for of, links in self.chains.items()
                if (of.lane, of.target.topic) not in gone and of.lane not in dropped
            },
            left={key: at for key, at in self.left.items() if key not in again},
        )


NOTHING_ROLLED = LedgerDigest()


def rest_of(of: ReceiptChain, links: Links) -> list[MapEntry]:
    """Return the rows of a chain that are in no block."""
    return links.counting(unpack(links.rest, of)) if links.rest else []


def grown(of: ReceiptChain, links: Links, rows: Sequence[MapEntry]) -> Links:
    """Return a chain with more rows; rows that fill a block become one."""
    blocks, rest = cut([*rest_of(of, links), *rows], BLOCK_ROWS)
    return Links(
        blocks=(*links.blocks, *(Block.of(full) for full in blocks)),
        rest=pack(rest) if rest else b"",
    )


def packed_blocks(blocks: Sequence[Block]) -> bytes:
    """Pack the written blocks of one chain as a directory, a few bytes each."""
    columns = [array("q") for _ in range(_BLOCK_COLUMNS)]
    end = target_next = at = 0
    for block in blocks:
        numbers = (
            block.start - end,
            block.end - block.start,
            block.target_start - target_next,
            block.target_next - block.target_start,
            block.rows,
            block.at - at,
        )
        for column, number in zip(columns, numbers, strict=True):
            column.append(number)
        end, target_next, at = block.end, block.target_next, block.at
    return packed_columns(columns)


def parse_blocks(data: bytes, where: str) -> list[Block]:
    """Return the blocks that `packed_blocks` packed. Raises BadInput when the directory is damaged."""
    columns = columns_of(data, _BLOCK_COLUMNS, where)
    found = []
    end = target_next = at = 0
    for starts, size, targets, target_size, rows, ats in zip(*columns, strict=True):
        start, target_start = end + starts, target_next + targets
        end, target_next, at = start + size, target_start + target_size, at + ats
        found.append(Block(start=start, end=end, target_start=target_start, target_next=target_next, rows=rows, at=at))
    return found


def written(rolled: LedgerDigest, offsets: Mapping[Block, int]) -> LedgerDigest:
    """Return the digest with the ledger offsets at which blocks were written."""
    chains = {
        of: replace(
            links,
            blocks=tuple(
                replace(block, at=offsets[block], data=b"") if block.at < 0 else block for block in links.blocks
            ),
        )
        for of, links in rolled.chains.items()
    }
    return replace(rolled, chains=chains)


def unwritten(rolled: LedgerDigest) -> list[tuple[ReceiptChain, Block]]:
    """Return the blocks that are in no record yet."""
    return [(of, block) for of, links in rolled.chains.items() for block in links.blocks if block.at < 0]
