"""The page about MirrorMaker 1's options has what the command does with each."""

from pathlib import Path

import pytest

from ferry.features.migrate.acts.mm1.arguments import OPTIONS, Option
from ferry.features.migrate.acts.mm1.keys import CONSUMER_KEYS, PRODUCER_KEYS, KeyRule

PAGE = (Path(__file__).parents[3] / "docs" / "mm1-options.md").read_text()


def listed(names: tuple[str, ...], before: str = "") -> str:
    return ", ".join(f"`{before}{name}`" for name in names)


@pytest.mark.parametrize("rule", [*CONSUMER_KEYS, *PRODUCER_KEYS], ids=lambda rule: rule.names[0])
def test_every_key_is_in_a_table(rule: KeyRule) -> None:
    becomes = f"`{rule.becomes}`" if rule.becomes else ""
    assert f"\n| {listed(rule.names)} | {rule.fate.value} | {becomes} | {rule.why} |\n" in PAGE


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_in_the_table(option: Option) -> None:
    spelled = listed((option.name, *option.spellings), "--")
    assert f"\n| {spelled} | {option.fate.value} | {option.why} |\n" in PAGE
