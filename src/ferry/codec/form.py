"""A table of fields between a dataclass and a JSON object: writes it, reads it, makes its JSON Schema.

```
GAP = Form(Gap, F("topic", "source.topic"), F("how", kind=enum(Resolution), default=Resolution.SKIP), ...)
GAP.dump(gap), GAP.load(body), GAP.schema()
```
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeVar, get_type_hints

from ferry.codec.kinds import PLAIN, Kind
from ferry.codec.schema import described, object_of, of_type, present, type_at

T = TypeVar("T")
Json = dict[str, Any]

REQUIRED = object()


@dataclass(frozen=True, slots=True)
class F:
    """A field. `name` is its name in the object; `path` is the attribute, by default of the same name.

    A path `a.b` is an attribute of another dataclass. If that dataclass may be None, the form is for values that have
    it. A function in place of a path makes a field of the whole value, which is only written. `default` is the value
    where the object lacks the field, as kept objects may; a field without a default is required. `omit`
    decides for which whole values the field is left out; it has its default then. `says` is its description in the
    schema, and `least` its minimum there if it is a whole number.
    """

    name: str
    path: str | Callable[[Any], Any] = ""
    kind: Kind = PLAIN
    default: Any = REQUIRED
    omit: Callable[[Any], bool] | None = None
    says: str = ""
    least: int | None = 0

    @property
    def attribute(self) -> str:
        """The attribute of the value; empty where a function makes the field."""
        return "" if callable(self.path) else self.path or self.name

    def schema(self, of: type[Any]) -> Json:
        """Return its JSON Schema in a dataclass."""
        found = self.kind.schema() if self.kind.schema else of_type(type_at(of, self.attribute), self.least)
        return described(found, self.says)


class Form(Generic[T]):
    """The form of a dataclass on the wire. `closed`: a field that the table does not have is an error.

    `name` is its name in schemas, by default that of the dataclass.
    """

    def __init__(self, of: type[T], *table: F, closed: bool = False, name: str = "") -> None:
        self._of, self.table, self._name = of, table, name or re.sub(r"(?<!^)(?=[A-Z])", "_", of.__name__).lower()
        self._known = frozenset(one.name for one in table) if closed else None
        self._dumps = [
            (one.name, one.path if callable(one.path) else attrgetter(one.attribute), one.kind.dump, one.omit)
            for one in table
        ]

    def dump(self, value: T) -> Json:
        """Return the value as an object, its fields in the order of the table."""
        body: Json = {}
        for name, get, dump, omit in self._dumps:
            if omit is None or not omit(value):
                found = get(value)
                body[name] = found if dump is None else dump(found)
        return body

    def load(self, body: Json, **given: Any) -> T:
        """Return the value of an object; `given` are attributes that are not in it, but in its key.

        Fields that the table does not have are skipped, unless it is closed. Raises KeyError for a field that is
        missing. Raises TypeError, ValueError or BadInput for one of another kind, and for a body that is not an object.
        """
        if not isinstance(body, dict):
            raise TypeError(f"{body!r:.40} is not an object")
        if self._known is not None and not body.keys() <= self._known:
            raise TypeError(f"fields that are not known: {', '.join(sorted(body.keys() - self._known))}")
        found: T = self._load(body, given)
        return found

    @cached_property
    def _load(self) -> Callable[[Json, Json], Any]:
        """The function that makes a value: one expression, compiled once, because a loop takes half as long again."""
        names: dict[str, Any] = {"of": self._of}
        hints = get_type_hints(self._of)
        plain: list[str] = []
        nested: dict[str, list[str]] = {}
        for number, one in enumerate(self.table):
            if callable(one.path):
                continue
            names[f"load{number}"], names[f"default{number}"] = one.kind.load, one.default
            read = f"body[{one.name!r}]" if one.kind.load is None else f"load{number}(body[{one.name!r}])"
            if one.kind.none is not None:
                read = f"(None if (value := body[{one.name!r}]) == {one.kind.none} else value)"
            if one.default is not REQUIRED:
                read = f"{read} if {one.name!r} in body else default{number}"
            outer, _, inner = one.attribute.partition(".")
            if inner:
                nested.setdefault(outer, []).append(f"{inner}={read}")
            else:
                plain.append(f"{outer}={read}")
        for outer, reads in nested.items():
            names[f"of_{outer}"] = present(hints[outer])
            plain.append(f"{outer}=of_{outer}({', '.join(reads)})")
        made: Callable[[Json, Json], Any] = eval(f"lambda body, given: of({', '.join(plain)}, **given)", names)
        return made

    @cached_property
    def kind(self) -> Kind:
        """The kind of a value of this form as a field of another one."""
        return Kind(self.dump, self.load, self.schema)

    def within(self, path: str) -> tuple[F, ...]:
        """Return its fields, for the form of a dataclass that has such a value as attribute `path`."""
        value = attrgetter(path)

        def of(made: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda whole: made(value(whole))

        return tuple(
            replace(
                one,
                path=of(one.path) if callable(one.path) else f"{path}.{one.attribute}",
                omit=of(one.omit) if one.omit else None,
            )
            for one in self.table
        )

    def schema(self) -> Json:
        """Return the JSON Schema of the objects, with the name of the form as title."""
        optional = frozenset(one.name for one in self.table if one.omit)
        return {"title": self._name, **object_of({one.name: one.schema(self._of) for one in self.table}, optional)}
