"""What MirrorMaker's users write, by the examples they learn from: what works unchanged, and each slip's correction."""

import pytest

from ferry.config.reading.examine import examine
from ferry.config.reading.fix import fix
from ferry.config.settings import parse_settings
from ferry.config.text.problem import Severity
from ferry.model import Flow
from tests.kafka.config.java_oracle import as_mapping, ask, encoded
from tests.pure.config.test_examples import SLIPS, WORKING, Example


@pytest.mark.parametrize("example", WORKING, ids=lambda example: example.name)
def test_what_works_in_mirror_maker_works_unchanged(example: Example) -> None:
    source, _, target = example.flow.partition("->")
    examined = examine(example.text, "mm2.properties")
    assert [(one.key, one.severity) for one in examined.problems] == [(key, Severity.WARNING) for key in example.warned]
    assert len(examined.flows) == example.flows
    settings = {setting.name: setting for setting in examined.settings[parse_flow(example)]}
    for name, value in example.settings.items():
        assert ",".join(part.strip() for part in settings[name].value.split(",")) == value
        assert settings[name].line is not None
    assert tuple(one.key for one in examined.unneeded) == example.unneeded
    assert fix(example.text, "mm2.properties").text == example.text
    theirs = as_mapping(ask([f"flow {encoded(example.text)} {source} {target}"])[0])
    for name, value in example.settings.items():
        if name in theirs:
            assert theirs[name] == value


def parse_flow(example: Example) -> Flow:
    return parse_settings(example.text, "mm2.properties").flow(example.flow).flow


def test_java_takes_what_ferry_takes() -> None:
    examples = [(example.text, *example.flow.split("->")) for example in WORKING]
    fixed: list[tuple[str, ...]] = [
        (fix(slip.text, "f").text, "us-west", "us-east") for slip in SLIPS if "us-west" in slip.text
    ]
    answers = ask([f"flow {encoded(text)} {source} {target}" for text, source, target in examples + fixed])
    assert [text for (text, _, _), answer in zip(examples + fixed, answers, strict=True) if answer == "error"] == []
