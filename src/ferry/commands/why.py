"""The answer of `ferry plan --explain`: which line takes or leaves out a name."""

from __future__ import annotations

from ferry.cli.output import Form, echo, print_answer
from ferry.commands.forms import why_json
from ferry.config.flow.flow import FlowConfig
from ferry.config.reasons import Why, why_group, why_topic
from ferry.config.settings import Settings


def show_why(flow: FlowConfig, settings: Settings, name: str, *, form: Form) -> None:
    """Print what the flow makes of a topic and of a consumer group of that name."""
    origins = settings.origins[flow.flow]
    verdicts = {"topic": why_topic(flow, origins, name), "group": why_group(flow, origins, name)}
    print_answer(
        lambda: {"flow": str(flow.flow), "name": name, **{kind: why_json(why) for kind, why in verdicts.items()}},
        lambda: echo(*(_sentence(flow, settings, name, kind, why) for kind, why in verdicts.items()), sep="\n"),
        form=form,
    )


def _sentence(flow: FlowConfig, settings: Settings, name: str, kind: str, why: Why) -> str:
    took = "takes" if why.taken else "leaves out"
    return f"{flow.flow} {took} {kind} {name}: it {why.reason}{_where(settings, why)}"


def _where(settings: Settings, why: Why) -> str:
    if why.setting is None:
        return ""
    item = "" if why.item is None else f", by its item {why.item}"
    line = "default" if why.setting.line is None else f"{settings.path}:{why.setting.line}"
    return f" ({line}: {why.setting.key or why.setting.name} = {why.setting.value}{item})"
