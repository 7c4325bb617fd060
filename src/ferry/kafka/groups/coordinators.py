"""Many groups at once: each is asked at its coordinator, several in a request, and an error of one is its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest

from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import GROUP, Cluster, TooOld

Payload = TypeVar("Payload")
Answer = TypeVar("Answer")

AT_ONCE = 16
"""Requests that are under way to one broker, at most."""
ANSWER_SECONDS = 20.0
"""After this time a coordinator is located again: another broker may have its groups by now."""
_KEYS = 1_000
_BATCHED_SINCE = 4  # FindCoordinator, KIP-699: Kafka 3.0


class NotPermittedGroup(Refused):
    """The cluster's ACLs forbid what was asked of a group."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece(Generic[Payload]):
    """What is asked of one group, or a part of that; `size` is its share of a request's `room`."""

    group: str
    size: int
    payload: Payload


async def settle_groups(
    cluster: Cluster,
    pieces: Iterable[Piece[Payload]],
    ask: Callable[[int, list[Piece[Payload]]], Awaitable[Iterable[tuple[Piece[Payload], Answer]]]],
    judge: Callable[[Piece[Payload], Answer], None],
    *,
    room: int,
    operation: str = "DESCRIBE",
) -> dict[str, FerryError]:
    """Ask the coordinators of all groups, again where that helps; return by group the error that remained.

    `ask` sends pieces to a broker whose sizes sum up to `room` at most, or a single piece. `judge` takes an answer in,
    or raises: Refused is final, Retryable asks again at the coordinator that the group has then. Groups whose
    coordinator did not answer within the cluster's patience return as Unreachable; the others are done. `operation` is
    the permission that is needed.
    """
    work = _Work(cluster, pieces, ask, judge, room, operation)
    try:
        await cluster.retrying(work.round)
    except Unreachable as error:
        work.give_up(error)
    return work.failed


class _Work(Generic[Payload, Answer]):
    """The pieces that are not answered yet, asked for round by round."""

    def __init__(
        self,
        cluster: Cluster,
        pieces: Iterable[Piece[Payload]],
        ask: Callable[[int, list[Piece[Payload]]], Awaitable[Iterable[tuple[Piece[Payload], Answer]]]],
        judge: Callable[[Piece[Payload], Answer], None],
        room: int,
        operation: str,
    ) -> None:
        self.failed: dict[str, FerryError] = {}
        self._cluster = cluster
        self._waiting = dict.fromkeys(pieces)
        self._trouble: dict[str, Retryable] = {}
        self._ask = ask
        self._judge = judge
        self._room = room
        self._operation = operation

    async def round(self) -> None:
        """Ask for all pieces that wait; raise Retryable when some of them still do."""
        if not self._waiting:
            return
        found = await coordinators(self._cluster, {piece.group for piece in self._waiting}, self._operation)
        self.failed |= found.denied
        self._trouble |= found.failed
        by_node: dict[int, list[Piece[Payload]]] = {}
        for piece in list(self._waiting):
            if piece.group in self.failed:
                del self._waiting[piece]
            elif piece.group in found.nodes:
                by_node.setdefault(found.nodes[piece.group], []).append(piece)
        senders = []
        for node, pieces in by_node.items():
            portions = deque(_portions(pieces, self._room))
            senders += [
                self._cluster.loop.call_soon_with_future(partial(self._send, node, portions))
                for _ in range(min(AT_ONCE, len(portions)))
            ]
        for sender in senders:
            await sender
        if self._waiting:
            group = next(iter(self._waiting)).group
            await self._cluster.refresh(())  # a broker that is gone has no groups any more
            raise self._trouble.get(group) or Retryable(f"group {group} on cluster {self._cluster.alias}: no answer")

    async def _send(self, node: int, portions: deque[list[Piece[Payload]]]) -> None:
        while portions:
            portion = portions.popleft()
            try:
                answers = await self._cluster.within(ANSWER_SECONDS, partial(self._ask, node, portion))
            except (Retryable, Unreachable) as error:
                self._trouble |= {piece.group: Retryable(str(error)) for piece in portion}
                portions.clear()  # the broker is not asked for more before its groups have been located again
                return
            for piece, answer in answers:
                self._take_in(piece, answer)

    def _take_in(self, piece: Piece[Payload], answer: Answer) -> None:
        try:
            self._judge(piece, answer)
        except Refused as error:
            self.failed[piece.group] = error
        except Retryable as error:
            self._trouble[piece.group] = error
            return
        del self._waiting[piece]

    def give_up(self, error: Unreachable) -> None:
        """Fail the pieces that still wait, each with its own reason."""
        for piece in self._waiting:
            why = self._trouble.get(piece.group)
            self.failed[piece.group] = error if why is None else Unreachable(f"{why}: look at that broker, then again")


def _portions(pieces: list[Piece[Payload]], room: int) -> Iterable[list[Piece[Payload]]]:
    portion: list[Piece[Payload]] = []
    filled = 0
    for piece in pieces:
        if portion and filled + piece.size > room:
            yield portion
            portion, filled = [], 0
        portion.append(piece)
        filled += piece.size
    if portion:
        yield portion


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinators:
    """The broker that coordinates each group, and why those of the other groups are not known."""

    nodes: Mapping[str, int]
    denied: Mapping[str, FerryError]
    failed: Mapping[str, Retryable]


async def coordinators(cluster: Cluster, groups: Iterable[str], operation: str = "DESCRIBE") -> Coordinators:
    """Look up the coordinators of groups, many in a request; one by one before Kafka 3.0. Raises Retryable."""
    nodes: dict[str, int] = {}
    denied: dict[str, FerryError] = {}
    failed: dict[str, Retryable] = {}
    names = sorted(groups)
    for at in range(0, len(names), _KEYS):
        for group, answer in await _looked_up(cluster, names[at : at + _KEYS]):
            if answer.error_code == codes.NONE:
                nodes[group] = answer.node_id
            elif answer.error_code in codes.UNAUTHORIZED:
                denied[group] = NotPermittedGroup(
                    f"group {group} may not be seen on cluster {cluster.alias}: grant {operation} on it"
                )
            else:
                why = codes.describe(answer.error_code)
                failed[group] = Retryable(f"coordinator of group {group} on cluster {cluster.alias}: {why}")
    if not set(nodes.values()) <= set(cluster.brokers):
        await cluster.refresh(())
    return Coordinators(nodes=nodes, denied=denied, failed=failed)


async def _looked_up(cluster: Cluster, groups: list[str]) -> list[tuple[str, Any]]:
    try:
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=groups, min_version=_BATCHED_SINCE)
        return [(found.key, found) for found in (await cluster.ask(request)).coordinators]
    except TooOld:
        answers = [
            await cluster.submit(FindCoordinatorRequest(key=group, key_type=GROUP, max_version=_BATCHED_SINCE - 1))
            for group in groups
        ]
        return [(group, await cluster.answered(answer)) for group, answer in zip(groups, answers, strict=True)]
