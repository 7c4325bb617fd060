"""The description of a local cluster: the value that `up` turns into processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.errors import BadInput
from ferry.jvm import FAST_START

BROKER_COUNTS = (1, 3)
LEGAL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A named listener; `protocol` is Kafka's: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    name: str
    protocol: str


PLAINTEXT = Listener(name="PLAINTEXT", protocol="PLAINTEXT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A KRaft cluster of combined broker and controller nodes, listening on 127.0.0.1 only.

    - The first listener must be PLAINTEXT: brokers use it among themselves, and it is asked for readiness.
    - `properties` override what `ferry.dev.properties` chooses.
    - `format_arguments` go to Kafka's StorageTool, such as `("--feature", "transaction.version=1")`.
    - `heap_mb` is the maximum heap of each broker in MiB.
    - With `racks`, broker n is in `rack-n`, and consumers that name a rack are sent to the replica there (KIP-392).
    - `class_path` are folders and jars that come after Kafka's own, for a custom policy or authorizer.
    """

    name: str
    brokers: int = 1
    version: str = "4.3.0"
    properties: Mapping[str, str] = field(default_factory=dict)
    listeners: tuple[Listener, ...] = (PLAINTEXT,)
    format_arguments: tuple[str, ...] = ()
    java_options: tuple[str, ...] = FAST_START
    heap_mb: int = 512
    racks: bool = False
    class_path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what could not start.

        Raises:
            BadInput: a name that is not a folder name, brokers other than 1 or 3, or a bad list of listeners.
        """
        if not LEGAL_NAME.fullmatch(self.name):
            raise BadInput(f"cluster name {self.name!r} is not usable: take lower case letters, digits, '-' and '_'")
        if self.brokers not in BROKER_COUNTS:
            raise BadInput(f"cluster {self.name!r} cannot have {self.brokers} brokers: choose 1 or 3")
        names = [listener.name for listener in self.listeners]
        if not names or self.listeners[0].protocol != "PLAINTEXT":
            raise BadInput(f"cluster {self.name!r} needs a PLAINTEXT listener first, not {names}")
        if len(set(names)) != len(names) or "CONTROLLER" in names:
            raise BadInput(f"cluster {self.name!r} has listeners {names}: each name once, and CONTROLLER is taken")


_OPTIONS = {"brokers": "--brokers", "version": "--kafka"}
"""The options of `ferry dev up` for fields of a spec. Each of `properties` has `--property`; others have no option."""

_DEFAULT = "the default"


def differences(before: ClusterSpec, wanted: ClusterSpec) -> list[tuple[str, str, str]]:
    """Return the settings in which two specs of a name differ: the option or field, and the value in each as text."""
    found = []
    for name in ClusterSpec.__dataclass_fields__:
        one, other = getattr(before, name), getattr(wanted, name)
        if name == "properties":
            found += [
                (f"--property {key}", _text(one.get(key)), _text(other.get(key)))
                for key in sorted({*one, *other})
                if one.get(key) != other.get(key)
            ]
        elif one != other:
            found.append((_OPTIONS.get(name, name), _text(one), _text(other)))
    return found


def _text(value: object) -> str:
    if value is None:
        return _DEFAULT
    parts = value if isinstance(value, tuple) else (value,)
    texts = [f"{part.name}:{part.protocol}" if isinstance(part, Listener) else str(part) for part in parts]
    return " ".join(texts) or "''"
