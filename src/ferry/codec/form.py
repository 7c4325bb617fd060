"""A table of fields between a dataclass and a JSON object: writes it, reads it.

```
GAP = Form(Gap, F("topic", "source.topic"), F("how", kind=enum(Lifted), default=Lifted.SKIP), ...)
GAP.dump(gap), GAP.load(body)
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_type_hints

from ferry.codec.kinds import PLAIN, Kind

T = TypeVar("T")
Json = dict[str, Any]

REQUIRED = object()


@dataclass(frozen=True, slots=True)
class F:
    """A field. `name`: in the object; `path`: the attribute, by default of that name; `a.b` is in another dataclass.

    `default`: what it is where the object has no such field, as in those of earlier versions; without one it must be
    there. `omit`: of which whole values the field is left out; it has its default then.
    """

    name: str
    path: str = ""
    kind: Kind = PLAIN
    default: Any = REQUIRED
    omit: Callable[[Any], bool] | None = None

    @property
    def attribute(self) -> str:
        """Where it is in the value."""
        return self.path or self.name


class Form(Generic[T]):
    """The form of a dataclass on the wire. `closed`: a field that the table does not have is an error."""

    def __init__(self, of: type[T], *table: F, closed: bool = False) -> None:
        self._known = frozenset(one.name for one in table) if closed else None
        self._dumps = [(one.name, one.attribute.split("."), one.kind.dump, one.omit) for one in table]
        self._load = _reader(of, table)

    def dump(self, value: T) -> Json:
        """The value as an object, its fields in the order of the table."""
        body: Json = {}
        for name, path, dump, omit in self._dumps:
            if omit is not None and omit(value):
                continue
            found: Any = value
            for part in path:
                found = getattr(found, part)
            body[name] = found if dump is None else dump(found)
        return body

    def load(self, body: Json, **given: Any) -> T:
        """The value of an object; `given` are attributes that are not in it, but in its key.

        Fields that the table does not have are passed over, unless it is closed. Raises KeyError for a field that is
        missing; TypeError, ValueError or BadInput for one of another kind, and for what is no object.
        """
        if not isinstance(body, dict):
            raise TypeError(f"{body!r:.40} is no object")
        if self._known is not None and not body.keys() <= self._known:
            raise TypeError(f"fields that are not known: {', '.join(sorted(body.keys() - self._known))}")
        found: T = self._load(body, given)
        return found


def _reader(of: type[Any], table: tuple[F, ...]) -> Callable[[Json, Json], Any]:
    """What makes a value of an object: one expression, compiled once, because a loop takes half as long again."""
    names: dict[str, Any] = {"of": of}
    hints = get_type_hints(of)
    plain: list[str] = []
    nested: dict[str, list[str]] = {}
    for number, one in enumerate(table):
        names[f"load{number}"], names[f"default{number}"] = one.kind.load, one.default
        read = f"body[{one.name!r}]" if one.kind.load is None else f"load{number}(body[{one.name!r}])"
        if one.default is not REQUIRED:
            read = f"{read} if {one.name!r} in body else default{number}"
        outer, _, inner = one.attribute.partition(".")
        if inner:
            nested.setdefault(outer, []).append(f"{inner}={read}")
        else:
            plain.append(f"{outer}={read}")
    for outer, reads in nested.items():
        names[f"of_{outer}"] = hints[outer]
        plain.append(f"{outer}=of_{outer}({', '.join(reads)})")
    made: Callable[[Json, Json], Any] = eval(f"lambda body, given: of({', '.join(plain)}, **given)", names)
    return made
