"""The group with which a switch or a drill measures is deleted when its member has left."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.errors import FerryError, Refused, Unreachable
from ferry.features.switch.acts import application
from ferry.kafka.groups.coordinators import NotPermittedGroup

CLUSTER: Any = SimpleNamespace(loop=SimpleNamespace(sleep=lambda _: asyncio.sleep(0)))


def deleted(monkeypatch: pytest.MonkeyPatch, *answers: FerryError | None) -> int:
    """Delete a group whose coordinator answers so, and return how often it was asked."""
    left = list(answers)

    async def delete(cluster: Any, group: str) -> None:
        answer = left.pop(0)
        if answer is not None:
            raise answer

    monkeypatch.setattr(application, "delete_group", delete)
    try:
        asyncio.run(application.delete_when_left(CLUSTER, "g"))
    finally:
        asked = len(answers) - len(left)
    return asked


def test_a_member_that_has_just_left_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert deleted(monkeypatch, Refused("it has members"), Refused("it has members"), None) == 3


@pytest.mark.parametrize("error", [NotPermittedGroup("no DELETE"), Unreachable("no answer")])
def test_what_no_waiting_changes_is_raised_at_once(monkeypatch: pytest.MonkeyPatch, error: FerryError) -> None:
    with pytest.raises(type(error)):
        deleted(monkeypatch, error, None)


def test_a_member_that_stays_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "LEAVING_SECONDS", -1.0)
    with pytest.raises(Refused):
        deleted(monkeypatch, Refused("it has members"), None)
