"""Changes that a controller is asked for together and answers one by one: of topics, of settings, of ACLs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, TypeVar

from ferry.errors import Refused, Retryable, Unreachable
from ferry.kafka.connect.cluster import Cluster

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")


class OverQuota(Retryable):
    """The controller does not change it now: the login has used up its quota on changes."""


async def settle(
    cluster: Cluster,
    waiting: dict[Key, Entry],
    failed: dict[Key, Refused],
    ask: Callable[[list[Entry]], Awaitable[Iterable[tuple[Key, Any]]]],
    judge: Callable[[Key, Any], None],
    troubles: dict[Key, Retryable] | None = None,
) -> None:
    """Ask for all that is `waiting`, repeatedly. Take out what is done, and put what is refused into `failed`.

    `judge` raises what an answer means: Refused is kept in `failed`, Retryable is asked for again within the cluster's
    patience, and `troubles` gets the last such error of each. Raises Unreachable when that time is over, or when a
    broker asks for a longer pause. A quota is its cause only when nothing else is.
    """
    until = time.monotonic() + cluster.patience_s

    async def action() -> None:
        trouble: Retryable | None = None
        for key, outcome in await ask(list(waiting.values())):
            try:
                judge(key, outcome)
            except Refused as error:
                failed[key] = error
            except Retryable as error:
                if troubles is not None:
                    troubles[key] = error
                trouble = error if trouble is None or isinstance(trouble, OverQuota) else trouble
                continue
            del waiting[key]
        if isinstance(trouble, OverQuota) and time.monotonic() + cluster.pause_s > until:
            raise Unreachable(str(trouble)) from trouble
        if trouble is not None:
            raise trouble

    await cluster.retrying(action)
