"""`ferry config policy` as a user starts it."""

import os
from pathlib import Path

import pytest

from tests.golden import Golden, brief
from tests.program import ferry

CLASS = """
from ferry.policy import DefaultReplicationPolicy

class Lower(DefaultReplicationPolicy):
    def __init__(self, properties):
        super().__init__()

    def format_remote_topic(self, source_alias, topic):
        return f"{source_alias}.{topic.lower()}"
"""


def test_a_policy_is_shown_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    (tmp_path / "mine.py").write_text(CLASS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    answer = ferry("config", "policy", "mine.Lower", "--source", "west")
    assert answer.code == 1
    golden(answer.out)
    fine = ferry("config", "policy", "mine.Lower", "--source", "west", "--topic", "orders", "--json")
    assert (fine.code, fine.json("policy")["topics"]) == (
        0,
        [{"topic": "orders", "target": "west.orders", "source": "west", "upstream": "orders"}],
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("com.example.Mine",),
        ("DefaultReplicationPolicy", "--set", "separator=_"),
    ],
    ids=brief,
)
def test_what_cannot_be_tried_is_one_sentence(arguments: tuple[str, ...], golden: Golden) -> None:
    answer = ferry("config", "policy", *arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    golden(answer.err)


def test_a_separator_can_be_tried() -> None:
    arguments = ("--set", "replication.policy.separator=_", "--topic", "orders", "--json")
    answer = ferry("config", "policy", "DefaultReplicationPolicy", *arguments)
    assert answer.json("policy")["topics"][0]["target"] == "a_orders"
