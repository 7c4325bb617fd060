"""A replication policy of the user's own, by its import path."""

from pathlib import Path

import pytest

from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from tests.golden import Golden

TEXT = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
west->east.replication.policy.class = tests.pure.config.policies.Suffixed
"""


def test_it_names_topics_and_gets_its_own_keys() -> None:
    plain = parse_settings(TEXT, "f").flow("west->east")
    own = parse_settings(f"{TEXT}west->east.replication.policy.joint = --\n", "f").flow("west->east")
    assert plain.topics.policy_name == "tests.pure.config.policies.Suffixed"
    assert plain.topics.policy.format_remote_topic("west", "orders") == "orders_west"
    assert own.topics.policy.format_remote_topic("west", "orders") == "orders--west"
    assert plain.digest() != own.digest()
    assert plain.digest() == parse_settings(TEXT, "f").flow("west->east").digest()


JOINT = "west->east.replication.policy.joint = "


@pytest.mark.parametrize("provider", ["env", "file", "dir"])
def test_its_own_keys_may_be_looked_up(provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_OF_A_TEST", "__")
    (tmp_path / "held").write_text("it = __\n" if provider == "file" else "__")
    given = {
        "env": "${env:FERRY_OF_A_TEST}",
        "file": f"${{file:{tmp_path}/held:it}}",
        "dir": f"${{dir:{tmp_path}:held}}",
    }
    flow = parse_settings(f"{TEXT}{JOINT}{given[provider]}\n", "f").flow("west->east")
    assert flow.topics.policy.format_remote_topic("west", "orders") == "orders__west"
    assert flow.topics.policy_properties == {"replication.policy.joint": given[provider]}
    monkeypatch.setenv("FERRY_OF_A_TEST", "--")
    assert flow.digest() == parse_settings(f"{TEXT}{JOINT}{given[provider]}\n", "f").flow("west->east").digest()


def test_a_key_that_cannot_be_looked_up_is_the_only_problem() -> None:
    (problem,) = examine(f"{TEXT}{JOINT}${{env:NOT_SET_HERE}}\n", "f").problems
    assert (problem.line, problem.key) == (6, "west->east.replication.policy.joint")


def test_no_message_shows_what_was_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_OF_A_TEST", "hunter2")
    text = TEXT.replace("Suffixed", "ShowsAll") + JOINT + "${env:FERRY_OF_A_TEST}\n"
    examined = examine(text, "f")
    assert [problem.key for problem in examined.problems] == ["west->east.replication.policy.class"]
    assert "hunter2" not in repr(examined)


def test_keys_of_an_own_class_are_not_called_unknown() -> None:
    keys = "west->east.replication.policy.joint = --\nwest->east.example.colour = red\n"
    assert parse_settings(TEXT + keys, "f").problems == ()


def test_a_misspelt_key_is_named_beside_an_own_class_as_well(golden: Golden) -> None:
    problems = parse_settings(f"{TEXT}west->east.tasks.mx = 4\n", "f").problems
    golden("\n".join([problem.message for problem in problems]))


def test_without_an_own_class_they_are_unknown() -> None:
    without = TEXT.replace("tests.pure.config.policies.Suffixed", "IdentityReplicationPolicy")
    problems = parse_settings(f"{without}west->east.example.colour = red\n", "f").problems
    assert [problem.key for problem in problems] == ["west->east.example.colour"]
