"""Policies of the user's own: what is loaded, what is refused, and the documented example under its own contract."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from ferry.errors import BadInput
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy, load_policy
from ferry.policy.conformance import findings
from ferry.testing.policy import PolicyContract, assert_policy

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
MODULE = "a_users_policies"


def documented() -> ModuleType:
    """The page's example as a module."""
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "upstream" in block
    )
    module = ModuleType(MODULE)
    exec(code, module.__dict__)
    return module


def renaming(source_alias: str) -> ReplicationPolicy:
    made: ReplicationPolicy = documented().Renaming({"source.cluster.alias": source_alias})
    return made


@pytest.fixture(autouse=True)
def module() -> Iterator[ModuleType]:
    """A module of the user's that can be imported by its name."""
    sys.modules[MODULE] = documented()
    yield sys.modules[MODULE]
    del sys.modules[MODULE]


class TestRenaming(PolicyContract):
    """The documented example."""

    def policy(self, source_alias: str) -> ReplicationPolicy:
        return renaming(source_alias)


class TestDefault(PolicyContract):
    """MirrorMaker 2's own, under the contract for everybody's."""

    def policy(self, source_alias: str) -> ReplicationPolicy:
        return DefaultReplicationPolicy()


class TestIdentity(PolicyContract):
    """The same; what it does not show is no breach."""

    def policy(self, source_alias: str) -> ReplicationPolicy:
        return IdentityReplicationPolicy(source_alias=source_alias)


def test_a_class_is_loaded_with_the_flows_properties() -> None:
    policy = load_policy(f"{MODULE}.Renaming", {"replication.policy.renaming.mark": "-of-"})
    assert policy.format_remote_topic("a", "orders") == "orders-of-a"
    assert policy.upstream_topic("orders-of-a") == "orders"
    assert policy.original_topic("orders-of-a-of-b") == "orders"
    assert policy.is_internal_topic("__consumer_offsets")


@pytest.mark.parametrize("base", [DefaultReplicationPolicy, IdentityReplicationPolicy])
def test_who_derives_from_a_known_policy_keeps_attributes_of_his_own(module: ModuleType, base: type) -> None:
    class Mine(base):  # type: ignore[misc]  # mypy knows no class that is a value
        def __init__(self, properties: Mapping[str, str]) -> None:
            super().__init__(**({"source_alias": "a"} if base is IdentityReplicationPolicy else {}))
            self.mark = properties["replication.policy.mark"]

        def format_remote_topic(self, source_alias: str, topic: str) -> str:
            return f"{super().format_remote_topic(source_alias, topic)}{self.mark}"

    module.__dict__["Mine"] = Mine
    policy = load_policy(f"{MODULE}.Mine", {"replication.policy.mark": "-x"})
    assert policy.format_remote_topic("a", "orders").endswith("orders-x")


class Odd:
    """Each method as a test wants it."""

    def __init__(self, **answers: Callable[..., object]) -> None:
        base = DefaultReplicationPolicy()
        for name in ("format_remote_topic", "topic_source", "upstream_topic", "original_topic", "is_internal_topic"):
            setattr(self, name, answers.get(name, getattr(base, name)))


def boom(*_: object) -> None:
    raise KeyError("boom")


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"format_remote_topic": boom}, "raises KeyError in format_remote_topic for topic 'orders' ('boom'): correct"),
        ({"format_remote_topic": lambda *_: ""}, "names topic 'orders' '' on the target, which is empty"),
        ({"format_remote_topic": lambda *_: "a b"}, "which has other characters than letters"),
        ({"format_remote_topic": lambda *_: "x" * 250}, "which has 250 characters, Kafka allows 249"),
        ({"format_remote_topic": lambda *_: None}, "answers format_remote_topic for topic 'orders' with None"),
        ({"topic_source": lambda _: 1}, "answers topic_source for topic 'orders' with 1, which is no str or None"),
        ({"is_internal_topic": lambda _: "no"}, "answers is_internal_topic for topic 'orders' with 'no'"),
        ({"upstream_topic": lambda topic: f"x{topic}"}, "finds no end in upstream_topic from topic 'orders' on"),
        ({"original_topic": boom}, "raises KeyError in original_topic"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(
    module: ModuleType, answers: Mapping[str, Callable[..., object]], told: str
) -> None:
    module.__dict__["Made"] = lambda _: Odd(**answers)
    with pytest.raises(BadInput) as refused:
        load_policy(f"{MODULE}.Made", {})
    assert told in str(refused.value)
    assert f"{MODULE}.Made" in str(refused.value)


def leave(*_: object) -> None:
    sys.exit(0)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_policy_that_exits_ends_nothing(module: ModuleType) -> None:
    module.__dict__.update(Leaves=lambda _: Odd(topic_source=leave), leaves=leave)
    with pytest.raises(BadInput, match=r"raises SystemExit in topic_source for topic 'orders' \(0\): correct"):
        load_policy(f"{MODULE}.Leaves", {})
    with pytest.raises(BadInput, match="cannot be made: SystemExit: 0; correct the class"):
        load_policy(f"{MODULE}.leaves", {})


def test_a_module_that_exits_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaves_at_once.py").write_text("import sys\nprint('bye')\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match=r"'leaves_at_once\.Renaming' cannot be made: SystemExit: 3; correct the class"):
        load_policy("leaves_at_once.Renaming", {})


def test_a_persons_interrupt_passes(module: ModuleType) -> None:
    module.__dict__["Made"] = lambda _: Odd(topic_source=interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_policy(f"{MODULE}.Made", {})


def test_what_a_policy_prints_is_no_answer(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def talk(topic: str) -> None:
        print("looking at", topic)

    module.__dict__["Made"] = lambda _: Odd(topic_source=talk, upstream_topic=lambda _: None)
    load_policy(f"{MODULE}.Made", {}).topic_source("mine")
    out, err = capsys.readouterr()
    assert out == ""
    assert "looking at mine\n" in err


@pytest.mark.parametrize("secret", ["hunter2", 'hun"t\\er2\n'])
@pytest.mark.parametrize("when", ["made", "asked", "answered"])
def test_no_message_shows_a_secret_property(module: ModuleType, secret: str, when: str) -> None:
    key = "replication.policy.my.password"

    def made(properties: Mapping[str, str]) -> Odd:
        def show(_: str) -> None:
            raise ValueError(str(properties))

        if when == "made":
            show("")
        return Odd(topic_source=show if when == "asked" else lambda _: properties)

    module.__dict__["Made"] = made
    with pytest.raises(BadInput) as refused:
        load_policy(f"{MODULE}.Made", {key: secret}, [secret])
    chained = "".join(traceback.format_exception(refused.value))
    assert f"{MODULE}.Made" in str(refused.value)
    assert secret not in chained
    assert repr(secret)[1:-1] not in chained


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("com.example.Policy", "there is no module com; write org.apache"),
        (f"{MODULE}.Missing", f"module {MODULE} has no Missing; correct the name"),
        ("Renaming", "is not known; write"),
        ("my company.Renaming", "is not known; write"),
        (f"{MODULE}.PLAIN", "has no method format_remote_topic; derive it"),
        (f"{MODULE}.broken", "cannot be made: KeyError: 'boom'; correct the class"),
    ],
)
def test_a_class_that_is_not_there_is_named_with_the_remedy(module: ModuleType, path: str, told: str) -> None:
    module.__dict__.update(PLAIN=lambda _: object(), broken=boom)
    with pytest.raises(BadInput) as refused:
        load_policy(path, {})
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_module_that_lacks_another_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match="it needs module no_such_library; install it beside Ferry"):
        load_policy("needs_more.Renaming", {})


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"format_remote_topic": lambda _, topic: topic.lower()}, "two topics would become one"),
        ({"topic_source": lambda _: "other"}, "came from 'other', but 'a' was its source"),
        ({"upstream_topic": lambda _: "orders"}, "was 'orders' at its source, but it was"),
        ({"topic_source": lambda _: None}, "either both are known or none is"),
        ({"original_topic": lambda topic: topic}, "finds another origin"),
        ({"is_internal_topic": lambda _: False}, "does not call __consumer_offsets internal"),
        ({"is_internal_topic": lambda _: True}, "calls 'orders' internal: it would never be copied"),
        ({"format_remote_topic": lambda *_: "no name"}, "which has other characters"),
        ({"upstream_topic": boom}, "raises KeyError in upstream_topic"),
    ],
)
def test_each_breach_of_the_contract_is_found(answers: Mapping[str, Callable[..., object]], told: str) -> None:
    odd = cast("ReplicationPolicy", Odd(**answers))
    found = findings(odd)
    assert any(told in sentence for sentence in found), found
    with pytest.raises(AssertionError):
        assert_policy(odd)


def test_a_name_that_changes_is_found() -> None:
    counter = iter(range(1000))
    odd = cast("ReplicationPolicy", Odd(format_remote_topic=lambda a, t: f"{a}.{next(counter)}{t}"))
    assert any("differently each time" in sentence for sentence in findings(odd))
