"""Words of a command line with bytes that are not UTF-8: Python makes half surrogate pairs of them."""

from __future__ import annotations

import pytest

from tests.golden import Golden
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World

REASON = "W\udce4hrung"
LINES = {
    "pause": ("pause", "a->b", "--reason", REASON),
    "pause with =": ("pause", "a->b", f"--reason={REASON}"),
    "skip": ("skip", "a->b", "orders", "0", "--to", "12", "--reason", REASON),
    "run": ("run", "a->b", "--id", "r\udce4"),
    "failover": ("failover", "a->b", "--no-reverse", "--approve-by", "J\udce4ger"),
    "a word": ("plan", "\udce4->b"),
}


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_such_a_word_is_refused_before_any_cluster_is_asked(line: tuple[str, ...], made: World, golden: Golden) -> None:
    begun(made)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.kept()  # forgets the requests so far
    answer = made.ask(*line)
    assert (answer.code, answer.body["error"]["kind"]) == (2, "bad-input")
    assert [one.asked for one in (made.a, made.b)] == [[], []]
    golden(answer.body["error"]["message"])
    assert made.ask("ledger", "a->b", "--pauses").body == {"pauses": []}
