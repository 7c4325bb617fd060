"""A transform as text, for the ledger: it finishes what its era has begun, even when the file now has another one.

A salt is a secret. A reference to one is kept, and resolved again; a salt that is written out stays in the file alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ferry.config.flow import steps
from ferry.config.flow.transforms import Poison, TransformSpec
from ferry.config.text.filters import PatternList
from ferry.config.text.lookups import look_up
from ferry.config.text.secrets import Providers
from ferry.errors import MALFORMED, Refused

_STEPS: dict[str, type[Any]] = {
    one.__name__: one
    for one in (
        *(steps.Drop, steps.Keep, steps.Sample, steps.AddHeader, steps.DropHeaders, steps.Provenance, steps.Json),
        *(steps.OnlyFields, steps.Cast, steps.HashKey, steps.Route, steps.RouteByTime, steps.Rename),
        *(steps.When, steps.TopicMatches, steps.HasHeader, steps.IsTombstone),
    )
}


def rule_text(spec: TransformSpec, spark_version: str = "") -> str:
    """Return the transform as JSON, without a salt that is written out, and with the version of Spark that runs it."""
    body = {
        "name": spec.name,
        "topics": list(spec.topics.items),
        "sql": spec.sql,
        "function": spec.function,
        "steps": [_plain(step) for step in spec.steps],
        "partitions": spec.partitions,
        "poison": spec.poison.value,
        "salt": spec.salt if "${" in spec.salt else "",
        "salted": bool(spec.salt),
        "spark": spark_version,
    }
    if spec.targets:
        body["targets"] = list(spec.targets)
    return json.dumps(body, sort_keys=True, ensure_ascii=False)


def parse_rule(text: str, now: Sequence[TransformSpec]) -> TransformSpec:
    """Return the transform of a text that `rule_text` made.

    A salt that the text lacks, and how secrets are resolved, come from the file's `now`. Raises Refused for text that
    this Ferry does not know: a newer one has written it.
    """
    try:
        body = json.loads(text)
        same = next((spec for spec in now if spec.name == body["name"]), None)
        some = same or (now[0] if now else None)
        salt = body["salt"] or (same.salt if same is not None and body["salted"] else "")
        return TransformSpec(
            name=body["name"],
            topics=PatternList(items=tuple(body["topics"])),
            sql=body["sql"],
            function=body["function"],
            steps=tuple(_parsed(step) for step in body["steps"]),
            partitions=body["partitions"],
            targets=tuple(body.get("targets", ())),
            poison=Poison(body["poison"]),
            salt=salt,
            timeout_ms=0 if same is None else same.timeout_ms,
            providers=Providers(look_up=look_up) if some is None else some.providers,
        )
    except MALFORMED as error:
        raise Refused(
            f"the ledger has a transform that this Ferry cannot read ({type(error).__name__}: {error}): use the Ferry "
            "that wrote it, or a newer one"
        ) from None


def spark_of(text: str) -> str:
    """Return the version of PySpark that ran a rule, as ` (PySpark 4.2.0)`; empty where the text does not have it."""
    found = json.loads(text).get("spark", "")
    return f" (PySpark {found})" if found else ""


def _plain(value: object) -> object:
    """Return a step, or a value in one: dataclasses by the name of their class."""
    if is_dataclass(value) and not isinstance(value, type):
        inside = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
        return {"is": type(value).__name__, **inside}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _parsed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_parsed(one) for one in value)
    if not isinstance(value, dict):
        return value
    inside = {name: _parsed(one) for name, one in value.items() if name != "is"}
    if value["is"] == steps.Json.__name__:
        inside["change"] = steps.Change(inside["change"])
    return _STEPS[value["is"]](**inside)
