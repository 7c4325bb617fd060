"""What does not go together with identical offsets is refused: by the file's line, and by each command that begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.reading.examine import Examined, examine
from ferry.config.settings import Settings, parse_settings
from ferry.config.text.problem import Severity
from ferry.errors import Refused
from ferry.features.drill.acts.full import FullDrill
from ferry.features.drill.acts.tabletop import tabletop
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.migrate.acts.adopting import adopt, preview_adoption
from ferry.features.migrate.acts.hand_back import hand_back, preview_hand_back
from ferry.features.switch.acts.sides import refuse_identical, refuse_reverse, sides_of
from ferry.features.switch.acts.switcher import Switcher
from ferry.model.switch import SwitchOptions, Verb
from ferry.program import main
from ferry.reader.answering import handlers
from ferry.reader.questions import Begin

FILE = """clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
b->a.enabled = true
topics = orders
"""
KEPT = "a->b.ferry.offsets = identical"
Act = Callable[[Settings, FlowConfig], object]


def read(*lines: str) -> Examined:
    return examine(FILE + "".join(f"{line}\n" for line in lines), "mm2.properties")


def kept() -> tuple[Settings, FlowConfig]:
    settings = parse_settings(FILE + KEPT + "\n", "mm2.properties")
    return settings, next(one for one in settings.flows if one.flow.source == "a")


def with_kept(*lines: str) -> tuple[Settings, FlowConfig]:
    """Flows that keep offsets; a line with a colon has the topics of one."""
    text = FILE
    for flow, _, topics in (one.partition(": ") for one in lines):
        text += f"{flow}.ferry.offsets.topics = {topics}\n" if topics else f"{flow}.ferry.offsets = identical\n"
    settings = parse_settings(text, "mm2.properties")
    return settings, next(one for one in settings.flows if one.flow.source == "a")


@pytest.mark.parametrize(
    "lines",
    [
        ("ferry.transforms = one", "ferry.transform.one.topics = orders", "ferry.transform.one.where = TRUE"),
        ("ferry.merge.topics = orders",),
        ("ferry.guard.retention.passed = skip",),
        ("ferry.guard.topic.recreated = restart:orders",),
        ("a->b.ferry.guard.foreign.writer = skip",),
        ("ferry.sync.topic.deletes.enabled = true",),
    ],
    ids=[
        "transforms",
        "merged topics",
        "a guard that skips",
        "a guard of some topics",
        "a guard of the flow",
        "deletes",
    ],
)
def test_lines_that_do_not_go_together_are_an_error_of_the_line_of_offsets(lines: tuple[str, ...]) -> None:
    assert [one for one in read(*lines).problems if one.severity is Severity.ERROR] == []
    (problem,) = read(KEPT, *lines).problems
    assert (problem.line, problem.key, problem.severity) == (7, "a->b.ferry.offsets", Severity.ERROR)


def test_guards_that_pass_no_offset_are_permitted() -> None:
    assert read(KEPT, "ferry.guard.topic.gone = skip", "ferry.guard.clock.skew = skip").problems == ()


ACTS: dict[str, Act] = {
    "ferry migrate": lambda _, flow: preview_adoption(runs(flow), cast("Any", None), cast("Any", None)),
    "ferry migrate mm2": lambda _, flow: adopt(runs(flow), *[cast("Any", None)] * 4),
    "ferry migrate hand-back": lambda _, flow: hand_back(runs(flow), *[cast("Any", None)] * 4),
    "ferry migrate hand-back --dry-run": lambda _, flow: preview_hand_back(runs(flow), *[cast("Any", None)] * 2),
}
MOVING: dict[str, Act] = {
    **{
        f"ferry {verb}": lambda settings, flow, verb=verb: Switcher(settings, flow, verb, who="me")  # type: ignore[misc]
        for verb in (Verb.SWITCHOVER, Verb.FAILOVER)
    },
    "ferry drills tabletop": lambda settings, flow: tabletop(settings, flow, "d", "me", cast("Any", None)),
    "the readiness for a switchover": lambda settings, flow: of_the_page(settings, flow, Verb.SWITCHOVER),
}
"""What is about moving clients along the flow."""
RETURNING: dict[str, Act] = {
    "ferry failback": lambda settings, flow: Switcher(settings, flow, Verb.FAILBACK, who="me"),
    "ferry drills full": lambda settings, flow: FullDrill(settings, flow, cast("Any", None)),
    "the readiness for a failback": lambda settings, flow: of_the_page(settings, flow, Verb.FAILBACK),
}


def of_the_page(settings: Settings, flow: FlowConfig, verb: Verb) -> object:
    """What the page's reader does when readiness is asked for, without its thread."""
    watch = SimpleNamespace(flow=flow, settings=lambda: settings, patience_s=1.0)
    watcher = SimpleNamespace(ask=lambda who, event, work: work(watch))
    asked = Begin(what="readiness", who="me", event="", verb=verb)
    return handlers()[Begin](flow, cast("Any", watcher), asked)


def runs(flow: FlowConfig) -> Any:
    """Micro-runs that ask no cluster."""
    return SimpleNamespace(flow=flow)


@pytest.mark.parametrize("act", ACTS)
def test_what_does_not_support_them_ends_before_a_cluster_is_asked(act: str) -> None:
    with pytest.raises(Refused) as caught:
        ACTS[act](*kept())
    said = caught.value.args[0]
    assert said.code == "identical.command"
    assert dict(said.facts)["where"] == "mm2.properties:7: a->b.ferry.offsets"
    assert act.startswith(str(dict(said.facts)["act"]))


@pytest.mark.parametrize(
    "words",
    [
        ("skip", "a->b", "orders", "0", "--to", "5", "--reason", "r"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_is_refused_with_the_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + KEPT + "\n")
    with pytest.raises(SystemExit) as ended:
        main([*words, "--config", str(file)])
    assert ended.value.code == Refused.exit_code
    err = capsys.readouterr().err
    assert f"{file}:7: a->b.ferry.offsets" in err
    assert f"ferry {words[0]}" in err


def test_topics_are_listed_and_heartbeats_never_keep_their_offsets() -> None:
    settings, flow = kept()
    every = flow.of(IdenticalSettings)
    listed = parse_settings(f"{FILE}{KEPT}\na->b.ferry.offsets.topics = orders, pay.*\n", "mm2.properties")
    some = next(one for one in listed.flows if one.flow.source == "a").of(IdenticalSettings)
    policy = flow.topics.policy
    names = ("orders", "payments", "users", "heartbeats")
    assert [every.keeps_topic(policy, one) for one in names] == [True, True, True, False]
    assert [some.keeps_topic(policy, one) for one in names] == [True, True, False, False]
    assert some.digested() not in (None, every.digested())
    translated = replace(some, offsets="translated")
    assert (translated.keeps_topic(policy, "orders"), translated.digested()) == (False, None)
    assert not settings.problems


def test_an_empty_list_of_topics_is_refused() -> None:
    (problem,) = read(KEPT, "ferry.offsets.topics =").problems
    assert (problem.severity, problem.line, problem.key) == (Severity.ERROR, 8, "ferry.offsets.topics")
    assert read("ferry.offsets.topics =").problems == ()


def test_a_run_of_such_a_flow_has_a_slot_for_heartbeats_too() -> None:
    settings, flow = kept()
    back = next(one for one in settings.flows if one.flow.source == "b")
    assert (flow.slots, back.slots) == (2, 1)
    many = parse_settings(FILE + KEPT + "\ntasks.max = 5\n", "mm2.properties")
    assert {one.slots for one in many.flows} == {5}


@pytest.mark.parametrize("act", MOVING)
def test_clients_are_not_moved_where_the_flow_back_could_not_move_them_home(act: str) -> None:
    settings = parse_settings(FILE + KEPT.replace("a->b", "b->a") + "\n", "mm2.properties")
    with pytest.raises(Refused) as caught:
        MOVING[act](settings, settings.flows[0])
    said = caught.value.args[0]
    facts = dict(said.facts)
    assert (said.code, facts["flow"], facts["back"]) == ("identical.back", "a->b", "b->a")
    assert facts["where"] == "mm2.properties:7: b->a.ferry.offsets"
    assert act.startswith(str(facts["act"]))


@pytest.mark.parametrize("act", RETURNING)
def test_a_way_back_is_refused_with_its_reason(act: str) -> None:
    with pytest.raises(Refused) as caught:
        RETURNING[act](*kept())
    assert caught.value.args[0].code == "identical.return"


def test_a_full_drill_is_refused_because_it_also_brings_clients_back() -> None:
    with pytest.raises(Refused) as caught:
        RETURNING["ferry drills full"](*kept())
    said = caught.value.args[0]
    facts = dict(said.facts)
    assert (said.code, facts["flow"], facts["back"]) == ("identical.return", "a->b", "b->a")
    assert facts["where"] == "mm2.properties:7: a->b.ferry.offsets"


@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILOVER])
def test_a_switch_starts_no_flow_back_with_other_offsets(verb: Verb) -> None:
    sides = sides_of(*kept(), verb)
    with pytest.raises(Refused) as caught:
        refuse_reverse(sides, SwitchOptions())
    assert caught.value.args[0].code == "identical.reverse"
    refuse_reverse(sides, SwitchOptions(reverse=False))
    refuse_reverse(replace(sides, back=None), SwitchOptions())


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("a->b", "b->a"), None),
        (("a->b", "b->a", "a->b: orders, pay.*", "b->a: pay.*, orders"), None),
        (("a->b", "b->a", "a->b: orders"), "identical.back"),
        (("a->b", "b->a", "b->a: orders"), "identical.back"),
        (("a->b", "b->a", "a->b: orders", "b->a: orders, users"), "identical.back"),
        (("b->a",), "identical.back"),
        ((), None),
    ],
    ids=["all", "the same list", "a list of the flow", "a list of the flow back", "others", "the flow back", "none"],
)
def test_clients_move_and_return_between_flows_that_keep_offsets_of_the_same_topics(
    verb: Verb, lines: tuple[str, ...], code: str | None
) -> None:
    if verb is Verb.FAILBACK and code and "a->b" in lines:
        code = "identical.return"
    settings, flow = with_kept(*lines)
    if code is None:
        refuse_identical(settings, flow, "it", verb)
        refuse_reverse(sides_of(settings, flow, verb), SwitchOptions())
        return
    with pytest.raises(Refused) as caught:
        refuse_identical(settings, flow, "it", verb)
    assert caught.value.args[0].code == code


def test_readiness_is_refused_where_the_flow_back_could_not_move_clients_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + KEPT.replace("a->b", "b->a") + "\n")
    with pytest.raises(SystemExit) as ended:
        main(["readiness", "a->b", "--config", str(file)])
    assert ended.value.code == Refused.exit_code
    assert f"{file}:7: b->a.ferry.offsets" in capsys.readouterr().err


def test_without_the_line_nothing_is_refused() -> None:
    flow = parse_settings(FILE, "mm2.properties").flows[0]
    flow.of(IdenticalSettings).refuse(flow, "ferry skip")
    assert (flow.of(IdenticalSettings).where, flow.of(IdenticalSettings).digested()) == ("", None)
