"""What Ferry says of a property file, in the form that tests/pure/config/corpus keeps it."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from ferry.commands.config.explain import explanation_json
from ferry.commands.config.forms import check_json, problem_json
from ferry.config.account import LineAccount, account
from ferry.config.client_check import all_problems
from ferry.config.effective import Effective, effective
from ferry.config.explain import every_key, explain
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.config.reading.examine import Examined, examine
from ferry.config.reading.findings import Setting
from ferry.config.reading.fix import fix
from ferry.config.reasons import Why, why_group, why_topic
from ferry.config.settings import Settings, settings_of_file
from ferry.config.text.problem import Problem
from ferry.config.text.properties import parse_all
from ferry.errors import FerryError

Json = dict[str, Any]

CORPUS = Path(__file__).with_name("corpus")
DEFAULTS = CORPUS / "defaults.json"
EXPLAINED = CORPUS / "explained.json"
FILE = "mm2.properties"
"""What messages call each file."""

PLAIN = "clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\na->b.enabled = true\n"
"""Its one flow has every default."""

LANE = "drill-corpus"
GROUPS = ("billing", "console-consumer-7")


def said_of(text: str) -> Json:
    """All that is kept of a file; no variable of the environment is seen."""
    with mock.patch.dict(os.environ, clear=True):
        examined = examine(text, FILE)
        problems = all_problems(examined)
        lines = account(parse_all(text)[0], examined, problems)
        shown = {one.flow: one for one in effective(examined)}
        return {
            **_flows(examined, shown),
            "lines": [_line(one) for one in lines],
            "problems": [one for problem in problems for one in _problem(problem)],
            "fixed": list(_fixed(text)) if any(one.correction is not None for one in problems) else [],
            "check": _sha256(check_json(examined, lines, problems)),
        }


def defaults() -> Json:
    """Each setting of a flow whose file sets none, with its value."""
    (flow,) = effective(examine(PLAIN, FILE))
    return {one.name: one.value for one in flow.settings}


def explained() -> Json:
    """What becomes of each key, with the SHA-256 of its whole explanation."""
    return dict(sorted((key, _explanation(key)) for key in {one.name for one in every_key()}))


def files() -> list[Path]:
    """The property files of the corpus."""
    return sorted(CORPUS.glob("*/*.properties"))


def text_of(path: Path) -> str:
    """The text as it is, line ends and all."""
    return path.read_bytes().decode()


def answers() -> dict[Path, str]:
    """Each file of answers, with its text."""
    said = {DEFAULTS: defaults(), EXPLAINED: explained()}
    said |= {path.with_suffix(".json"): said_of(text_of(path)) for path in files()}
    return {path: render(one) for path, one in said.items()}


def render(said: Json) -> str:
    """A JSON text of many short lines."""
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def _flows(examined: Examined, shown: dict[Any, Effective]) -> Json:
    """As `parse_settings` would read them, without looking at the text again."""
    try:
        settings = settings_of_file(examined, Path(FILE), None)
    except FerryError as error:
        return {"refused": [type(error).__name__, str(error)], "flows": []}
    return {"refused": None, "flows": [_flow(settings, one, shown[one.flow]) for one in settings.flows]}


def _flow(settings: Settings, config: FlowConfig, shown: Effective) -> Json:
    origins = settings.origins[config.flow]
    source, target = config.flow.source, config.flow.target
    topics = ("orders", "payments.eu", f"{source}.orders", f"{target}.orders", "heartbeats", f"mm2-x.{source}.internal")
    return {
        "flow": str(config.flow),
        "digest": config.digest(),
        "digest of a drill": in_lane(config, LANE).digest(),
        "transforms": {one.name: _digest(one) for one in config.records.transforms},
        "settings": [_setting(one) for one in shown.settings if one.line is not None],
        "clients": [_setting(one) for one in shown.clients],
        "topics": {one: _topic(config, why_topic(config, origins, one), one) for one in topics},
        "groups": {one: _why(why_group(config, origins, one)) for one in GROUPS},
    }


def _digest(transform: Any) -> str:
    try:
        digest: str = transform.digest(spark_version="4.2.0")
    except FerryError as error:
        return f"{type(error).__name__}: {error}"
    return digest


def _topic(config: FlowConfig, why: Why, topic: str) -> str:
    if not why.taken:
        return _why(why)
    try:
        transform = config.transform_of(topic)
    except FerryError as error:
        return f"{_why(why)}; {type(error).__name__}: {error}"
    by = "" if transform is None else f" by {transform.name}"
    return f"{_why(why)}; {', '.join(config.copies_of(topic))}{by}"


def _why(why: Why) -> str:
    place = "" if why.setting is None else "default" if why.setting.line is None else f"line {why.setting.line}"
    decided = ": ".join(filter(None, (place, why.item)))
    return f"{'taken' if why.taken else 'left'}: {why.reason}{f' ({decided})' if decided else ''}"


def _setting(one: Setting) -> str:
    return f"{one.line} {one.name} = {one.value}"


def _line(one: LineAccount) -> str:
    return f"{one.line} {one.key}: {one.fate.value}{f': {one.why}' if one.why else ''}"


def _problem(problem: Problem) -> Iterator[str]:
    yield f"{problem.severity.value} {problem.line or '-'} {problem.key}: {problem.message}"
    yield from (f"  > {line}" for line in problem_json(problem)["correction"] or ())


def _fixed(text: str) -> Iterator[str]:
    """The lines by which the corrected text differs."""
    fixed = fix(text, FILE)
    yield "works" if fixed.works else "does not work"
    compared = difflib.unified_diff(text.splitlines(), fixed.text.splitlines(), lineterm="", n=0)
    yield from (line for line in compared if not line.startswith(("---", "+++", "@@")))


def _explanation(key: str) -> str:
    try:
        found = explain(key)
    except FerryError as error:
        return f"{type(error).__name__}: {error}"
    fates = ", ".join(dict.fromkeys(one.fate for one in found))
    return f"{fates}; {_sha256([explanation_json(one) for one in found])}"


def _sha256(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
