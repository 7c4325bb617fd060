"""The page about configuration says what the reader does."""

import re
from pathlib import Path

import pytest

from ferry.config.keys.key import FerryKey
from ferry.config.keys.own import FERRY_KEYS, TRANSFORM_KEYS
from ferry.config.settings import parse_settings

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def row(key: FerryKey) -> str:
    default = f"`{key.default}`" if key.default else ""
    return f"| `{key.name}` | {default} | {key.values} | {key.meaning} |"


@pytest.mark.parametrize("key", FERRY_KEYS, ids=lambda key: key.name)
def test_every_key_of_ferry_is_in_the_table(key: FerryKey) -> None:
    assert row(key) in PAGE.read_text()


@pytest.mark.parametrize("key", TRANSFORM_KEYS, ids=lambda key: key.name)
def test_every_key_of_a_transform_is_in_its_table(key: FerryKey) -> None:
    assert row(key) in PAGE.with_name("transforms.md").read_text()
    assert f"`{key.name.removeprefix('ferry.transform.{name}.')}`" in PAGE.read_text()


def test_every_variable_of_ferry_is_in_its_table() -> None:
    root = PAGE.parents[1]
    files = [path for folder in ("src", "plugins", "jobs") for path in (root / folder).rglob("*.py")]
    read = {name for path in files for name in re.findall(r'f?"(FERRY_[A-Z_]+)["{]', path.read_text())}
    read |= set(re.findall(r"\$\{(FERRY_\w+)", (root / "docker" / "compose.yaml").read_text()))
    assert {"FERRY_CONFIG", "FERRY_SWITCH_"} <= read
    table = PAGE.read_text().partition("## Variables of the environment")[2].partition("\n## ")[0]
    named = [name for row in re.findall(r"^\|([^|]*)\|", table, re.MULTILINE) for name in re.findall(r"FERRY_\w+", row)]
    assert sorted(named) == sorted(read)


def test_the_example_works() -> None:
    example = PAGE.read_text().partition("```properties\n")[2].partition("```")[0]
    read = parse_settings(example, "example.properties")
    assert read.problems == ()
    assert read.flow("primary->backup").airflow.schedule == "*/10 * * * *"
