"""The settings of a feature: declared in its folder, read with the flow, part of its digest when they change copies."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys import feature, values
from ferry.config.keys.feature import FeatureSettings, feature_keys, setting
from ferry.config.keys.key import FerryKey
from ferry.config.keys.own import FERRY_KEYS_BY_NAME
from ferry.config.reading.examine import examine
from ferry.features.lanes.settings import BackfillSettings
from ferry.registry import FEATURES, parts_of

FILE = """clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
topics = orders
"""
COLOUR = FerryKey(name="ferry.colour", default="red", values="a name", meaning="for the test")
DEEP = FerryKey(name="ferry.colour.depth", default="8", values="bits, at least 1", meaning="for the test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours(FeatureSettings):
    """Settings of a feature that does not exist."""

    colour: str = setting(COLOUR, values.name)
    depth: int = setting(DEEP, values.integer(1))

    def digested(self) -> object | None:
        return None if self.colour == COLOUR.default else self.colour


@pytest.fixture
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may have the keys of Colours."""
    real = feature.feature_settings()
    for module in ("ferry.config.flow.flow", "ferry.config.reading.flow"):
        monkeypatch.setattr(f"{module}.feature_settings", lambda: {**real, "colours": Colours})
    for key in Colours.own_keys():
        monkeypatch.setitem(FERRY_KEYS_BY_NAME, key.name, key)


def flow_of(text: str) -> FlowConfig:
    examined = examine(text, "f")
    assert [str(problem) for problem in examined.problems] == []
    return examined.flows[0]


def test_each_feature_has_its_keys_among_ferrys_own() -> None:
    assert {key.name for key in feature_keys()} <= FERRY_KEYS_BY_NAME.keys()
    assert [name for name, one in FEATURES.items() if one.settings] == list(parts_of("settings"))


@pytest.mark.usefixtures("_colours")
def test_values_are_read_per_flow_and_at_the_top_level() -> None:
    assert flow_of(FILE).of(Colours) == Colours(colour="red", depth=8)
    assert flow_of(f"{FILE}ferry.colour = blue\na->b.ferry.colour = green\n").of(Colours).colour == "green"


@pytest.mark.usefixtures("_colours")
def test_a_wrong_value_is_named_with_its_line() -> None:
    (problem,) = examine(f"{FILE}ferry.colour.depth = many\n", "f").problems
    assert (problem.line, problem.key) == (6, "ferry.colour.depth")


@pytest.mark.usefixtures("_colours")
def test_the_digest_has_what_changes_copies_and_nothing_at_the_defaults() -> None:
    plain, blue, deep = (flow_of(f"{FILE}{line}") for line in ("", "ferry.colour = blue\n", "ferry.colour.depth = 9\n"))
    assert plain.digest() == deep.digest() != blue.digest()


def test_a_feature_without_lines_leaves_the_digest_of_a_file_as_it_was(request: pytest.FixtureRequest) -> None:
    before = flow_of(FILE).digest()
    request.getfixturevalue("_colours")
    assert flow_of(FILE).digest() == before


def test_settings_that_were_not_read_are_at_their_defaults() -> None:
    bare = replace(flow_of(FILE), features={})
    assert bare.of(BackfillSettings) == BackfillSettings()


def test_they_travel_to_other_processes() -> None:
    flow = flow_of(f"{FILE}ferry.backfill.windows = @hourly\n")
    assert pickle.loads(pickle.dumps(flow.of(BackfillSettings))) == flow.of(BackfillSettings)
