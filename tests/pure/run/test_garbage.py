"""The collector of cycles is as it was after a block that left it out, however that ended."""

from __future__ import annotations

import gc

import pytest

from ferry.garbage import left_uncollected


def _fails_inside() -> None:
    with left_uncollected():
        raise RuntimeError("collected" if gc.isenabled() else "left")


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_before_also_after_an_error(enabled: bool) -> None:
    was = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(RuntimeError, match="left"):
            _fails_inside()
        assert gc.isenabled() is enabled
    finally:
        gc.enable() if was else gc.disable()
