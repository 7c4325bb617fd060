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
from tests.golden import Golden

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"
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
    "answers",
    [
        pytest.param({"format_remote_topic": boom}, id="format_remote_topic raises"),
        pytest.param({"format_remote_topic": lambda *_: ""}, id="format_remote_topic gives ''"),
        pytest.param({"format_remote_topic": lambda *_: "a b"}, id="format_remote_topic gives 'a b'"),
        pytest.param({"format_remote_topic": lambda *_: "x" * 250}, id="format_remote_topic gives 'x' * 250"),
        pytest.param({"format_remote_topic": lambda *_: None}, id="format_remote_topic gives None"),
        pytest.param({"topic_source": lambda _: 1}, id="topic_source gives 1"),
        pytest.param({"is_internal_topic": lambda _: "no"}, id="is_internal_topic gives 'no'"),
        pytest.param({"upstream_topic": lambda topic: f"x{topic}"}, id="upstream_topic gives f'x{topic}'"),
        pytest.param({"original_topic": boom}, id="original_topic raises"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(
    module: ModuleType, answers: Mapping[str, Callable[..., object]], golden: Golden
) -> None:
    module.__dict__["Made"] = lambda _: Odd(**answers)
    with pytest.raises(BadInput) as refused:
        load_policy(f"{MODULE}.Made", {})
    golden(refused.value)
    assert f"{MODULE}.Made" in str(refused.value)


def leave(*_: object) -> None:
    sys.exit(0)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_policy_that_exits_ends_nothing(module: ModuleType, golden: Golden) -> None:
    module.__dict__.update(Leaves=lambda _: Odd(topic_source=leave), leaves=leave)
    with pytest.raises(BadInput) as caught:
        load_policy(f"{MODULE}.Leaves", {})
    golden(caught.value, "in a method")
    with pytest.raises(BadInput) as caught:
        load_policy(f"{MODULE}.leaves", {})
    golden(caught.value, "when it is made")


def test_a_module_that_exits_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    (tmp_path / "leaves_at_once.py").write_text("import sys\nprint('bye')\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput) as caught:
        load_policy("leaves_at_once.Renaming", {})
    golden(caught.value)


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
    "path",
    [
        "com.example.Policy",
        f"{MODULE}.Missing",
        "Renaming",
        "my company.Renaming",
        f"{MODULE}.PLAIN",
        f"{MODULE}.broken",
    ],
)
def test_a_class_that_is_not_there_is_named_with_the_remedy(module: ModuleType, path: str, golden: Golden) -> None:
    module.__dict__.update(PLAIN=lambda _: object(), broken=boom)
    with pytest.raises(BadInput) as refused:
        load_policy(path, {})
    golden(refused.value)
    assert "\n" not in str(refused.value)


def test_a_module_that_lacks_another_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput) as caught:
        load_policy("needs_more.Renaming", {})
    golden(caught.value)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(
            {"format_remote_topic": lambda _, topic: topic.lower()},
            id="format_remote_topic gives topic.lower()",
        ),
        pytest.param({"topic_source": lambda _: "other"}, id="topic_source gives 'other'"),
        pytest.param({"upstream_topic": lambda _: "orders"}, id="upstream_topic gives 'orders'"),
        pytest.param({"topic_source": lambda _: None}, id="topic_source gives None"),
        pytest.param({"original_topic": lambda topic: topic}, id="original_topic gives topic"),
        pytest.param({"is_internal_topic": lambda _: False}, id="is_internal_topic gives False"),
        pytest.param({"is_internal_topic": lambda _: True}, id="is_internal_topic gives True"),
        pytest.param({"format_remote_topic": lambda *_: "no name"}, id="format_remote_topic gives 'no name'"),
        pytest.param({"upstream_topic": boom}, id="upstream_topic raises"),
    ],
)
def test_each_breach_of_the_contract_is_found(answers: Mapping[str, Callable[..., object]], golden: Golden) -> None:
    odd = cast("ReplicationPolicy", Odd(**answers))
    found = findings(odd)
    golden("\n".join(found))
    with pytest.raises(AssertionError):
        assert_policy(odd)


def test_a_name_that_changes_is_found() -> None:
    counter = iter(range(1000))
    odd = cast("ReplicationPolicy", Odd(format_remote_topic=lambda a, t: f"{a}.{next(counter)}{t}"))
    assert any("differently each time" in sentence for sentence in findings(odd))
