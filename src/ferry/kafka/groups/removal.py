"""Deletion of consumer groups, with all of their offsets."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DeleteGroupsRequest

from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.coordinators import Piece, settle_groups
from ferry.kafka.groups.listing import check_group


async def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a consumer group; one that is gone already is not an error.

    Raises Refused while it has members, or without DELETE on it; Unreachable when its coordinator does not answer.
    """

    async def ask(node: int, part: list[Piece[None]]) -> list[tuple[Piece[None], Any]]:
        answer = await cluster.ask(DeleteGroupsRequest(groups_names=[piece.group for piece in part]), node)
        by_name = {piece.group: piece for piece in part}
        return [(by_name[one.group_id], one) for one in answer.results]

    def judge(piece: Piece[None], answer: Any) -> None:
        if answer.error_code != codes.GROUP_ID_NOT_FOUND:
            check_group(cluster, piece.group, answer.error_code, "deleted", "DELETE")

    failed = await settle_groups(
        cluster, [Piece(group=group, size=1, payload=None)], ask, judge, room=1, operation="DELETE"
    )
    for error in failed.values():
        raise error
