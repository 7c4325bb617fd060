"""Each writer of a run gives the broker the transaction timeout of the file."""

from __future__ import annotations

from pathlib import Path

from tests.pure.answers.stories import begun
from tests.pure.answers.world import world


def test_slots_and_driver_have_the_timeout_of_the_file(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        begun(made, "ferry.transaction.timeout.ms = 45000")
        assert made.ask("run", "a->b", "--id", "r1").code == 0
        asked = [one.request for one in made.b.asked if one.api == "InitProducerId"]
        found = {(one.transactional_id, one.transaction_timeout_ms) for one in asked if one.transactional_id}
        assert found == {("ferry.a->b.live.0", 45_000), ("ferry.a->b.live.driver", 45_000)}
