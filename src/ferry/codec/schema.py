"""JSON Schema (draft 2020-12) of values, from their types."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Json = dict[str, Any]

_PLAIN: dict[Any, str] = {str: "string", bool: "boolean", float: "number", types.NoneType: "null"}


def of_type(hint: Any, least: int | None = 0) -> Json:
    """Return the schema of a value that is in JSON unchanged. Whole numbers are not below `least`; None: no minimum."""
    if hint is Any:
        return {}
    if hint is int:
        return {"type": "integer"} if least is None else {"type": "integer", "minimum": least}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [one.value for one in hint]}
    if dataclasses.is_dataclass(hint):
        return object_of({name: of_type(one, least) for name, one in get_type_hints(hint).items()})
    return _of_parts(get_origin(hint), get_args(hint), least)


def _of_parts(origin: Any, parts: tuple[Any, ...], least: int | None) -> Json:
    """Return the schema of a type that is made of other types."""
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        (only,) = (one for one in parts if one is not types.NoneType)
        return nullable(of_type(only, least))
    if issubclass(origin, Mapping):
        of = of_type(parts[1], least)
        return {"type": "object", **({"additionalProperties": of} if of else {})}
    if origin is tuple and parts[1:] != (...,):
        each = [of_type(one, least) for one in parts]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    return {"type": "array", "items": of_type(parts[0], least)}


def described(schema: Json, says: str | None) -> Json:
    """Return a schema with a description, if there is one."""
    return {**schema, "description": says} if says else schema


def nullable(schema: Json) -> Json:
    """Return the schema of a value or null."""
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "type" not in schema or "title" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def object_of(properties: Mapping[str, Json], left_out: frozenset[str] = frozenset()) -> Json:
    """Return the schema of an object; fields that are `left_out` at times are not required."""
    required = [name for name in properties if name not in left_out]
    return {"type": "object", "required": required, "properties": dict(properties)}


def type_at(of: Any, path: str) -> Any:
    """Return the type of an attribute, also of one in another value (`a.b`), or of a property."""
    for name in path.split("."):
        own = getattr(of, name, None)
        of = present(get_type_hints(own.fget)["return"] if isinstance(own, property) else get_type_hints(of)[name])
    return of


def present(hint: Any) -> Any:
    """Return the dataclass of a value that may be None; other types unchanged."""
    found = [one for one in get_args(hint) if one is not types.NoneType]
    return found[0] if len(found) == 1 and dataclasses.is_dataclass(found[0]) else hint
