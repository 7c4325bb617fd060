"""Client properties that do not show their secrets, and references to where those are: Kafka's config providers.

Sources: `ConfigTransformer`, `EnvVarConfigProvider`, `FileConfigProvider`, `DirectoryConfigProvider` (KIP-297, 421).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from ferry.config.text.secret_refs import LookedUp, without_values
from ferry.errors import BadInput
from ferry.messages.catalogue import sentence
from ferry.model import sentence_of, with_text

HIDDEN = "[hidden]"

_SECRET_WORDS = (
    "password",
    "secret",
    "jaas.config",
    "passphrase",
    "token",
    "credential",
    "keystore.key",
    "private.key",
)
_NOT_SECRET = ("token.endpoint.url",)
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PROVIDER = re.compile(r"\$\{([^}:]*):[^}]*\}")
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's `String.trim` takes away."""
NO_PROVIDER = re.compile(r"\$\{([^}:]*)\}")
"""Text in the form of a reference without the provider, which Kafka takes for plain text."""


def is_secret(key: str) -> bool:
    """Return whether the value under `key` must never be shown."""
    name = key.lower()
    return name.endswith(".salt") or (any(word in name for word in _SECRET_WORDS) and not name.endswith(_NOT_SECRET))


def shown_address(url: str) -> str:
    """Return an address without user, password and query: each may hold a secret.

    A text that is not an address is hidden.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no IPv6 address
        return HIDDEN
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def shown_host(url: str) -> str:
    """Return an address without user, password, query and path; gateways and webhooks keep tokens in the path."""
    try:
        parts = urlsplit(shown_address(url))
    except ValueError:
        return HIDDEN
    if not parts.netloc:
        return HIDDEN
    return f"{parts.scheme}://{parts.netloc}/{HIDDEN}" if parts.path.strip("/") or parts.fragment else parts.geturl()


def shown_command(command: str) -> str:
    """Return a command without its arguments, because each may hold a secret, as a token in a header does."""
    program, *arguments = command.split()[:2] or [""]
    return HIDDEN if "=" in program else f"{program} {HIDDEN}" if arguments else program


def has_reference(value: str) -> bool:
    """Return whether `value` holds a `${provider:…}` that is resolved at the time of use."""
    return _REFERENCE.search(value) is not None


def names_of_providers(value: str) -> frozenset[str]:
    """Return the providers that the references in `value` name."""
    return frozenset(_PROVIDER.findall(value))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClientProperties(Mapping[str, str]):
    """A read-only mapping of Java property names to values, whose repr hides the values of secret keys."""

    values_by_key: Mapping[str, str]
    looked_up: tuple[LookedUp, ...] = ()
    """The values, or parts of them, that came from references."""

    def __getitem__(self, key: str) -> str:
        return self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)

    def __repr__(self) -> str:
        return f"ClientProperties({self.shown()})"

    def redacted(self, words: object) -> str:
        """Return an error's sentence, or a text, about these properties, without resolved values.

        It keeps its code. Its facts may be such values, so it keeps them only if no reference was resolved.
        """
        message = sentence_of(words)
        return with_text(message, without_values(message, self.looked_up), () if self.looked_up else None)

    def shown(self) -> dict[str, str]:
        """Return the properties in key order, secrets hidden: fit for a screen or a digest."""
        return {key: HIDDEN if is_secret(key) else self[key] for key in sorted(self)}


class ProviderKind(Enum):
    """The three config providers that come with Kafka, by the class that implements them."""

    ENV = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    FILE = "org.apache.kafka.common.config.provider.FileConfigProvider"
    DIRECTORY = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a provider may read, by its parameters; None means no limit."""

    allowed_paths: tuple[Path, ...] | None = None
    """`allowed.paths`: folders and files, absolute; everything below a folder is allowed."""
    allowlist: re.Pattern[str] | None = None
    """`allowlist.pattern`: must match the whole name of an environment variable."""


LookUp = Callable[[str, ProviderKind, Limits, "re.Match[str]"], str]
"""Returns the text of a reference in the value of a key. Raises BadInput when it may or can not."""


def _nowhere(key: str, kind: ProviderKind, limits: Limits, reference: re.Match[str]) -> str:
    raise wrong_reference(key, f"{reference.group()} is not resolved here; write the value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """Providers by the name in references; `env`, `file` and `dir` need no declaration.

    `look_up` reads the text of a reference: `ferry.config.text.lookups.look_up` on this machine.
    """

    kinds: Mapping[str, ProviderKind] = field(
        default_factory=lambda: {
            "env": ProviderKind.ENV,
            "file": ProviderKind.FILE,
            "dir": ProviderKind.DIRECTORY,
            "directory": ProviderKind.DIRECTORY,
        }
    )

    limits: Mapping[str, Limits] = field(default_factory=dict)
    look_up: LookUp = field(default=_nowhere, repr=False, compare=False)

    def resolved(self, key: str, value: str, found: list[LookedUp] | None = None) -> str:
        """Return `value` with every reference replaced; text that names no known provider stays unchanged, as in Kafka.

        Resolved values are added to `found`. Raises BadInput, naming `key` and the reference, when a variable, file or
        entry is missing or not allowed. Also raises it when one holds a reference again: Kafka resolves once, and would
        take that text for the password.
        """

        def replacement(match: re.Match[str]) -> str:
            kind = self.kinds.get(match.group(1))
            if kind is None:
                return match.group()
            text = self.look_up(key, kind, self.limits.get(match.group(1), Limits()), match)
            again = next((other for other in _REFERENCE.finditer(text) if other.group(1) in self.kinds), None)
            if again is not None:
                raise wrong_reference(
                    key,
                    f"{match.group()} holds the reference {again.group()} again, but references are resolved only "
                    "once; write the value there",
                )
            texts.append(LookedUp(key=key, text=text, reference=match.group()))
            return text

        texts: list[LookedUp] = []
        whole = _REFERENCE.sub(replacement, value)
        if texts and found is not None:
            found += [LookedUp(key=key, text=whole, reference=value), *texts]
        return whole

    def variables(self, value: str) -> frozenset[str]:
        """Return the environment variables that `value` refers to. One after a path is refused, as in Kafka."""
        found = (match for match in _REFERENCE.finditer(value) if self.kinds.get(match.group(1)) is ProviderKind.ENV)
        return frozenset(match.group(3) for match in found if not match.group(2))

    def resolve_all(self, properties: Mapping[str, str]) -> ClientProperties:
        """Return all properties with their references resolved, and no blanks and ends of lines around a value.

        Kafka trims every value of a client (`ConfigDef.parseType`). Raises BadInput for a reference that cannot be
        resolved.
        """
        found = list(properties.looked_up) if isinstance(properties, ClientProperties) else []
        values = {key: self.resolved(key, value, found).strip(_BLANKS) for key, value in properties.items()}
        return ClientProperties(values_by_key=values, looked_up=tuple(found))


def wrong_reference(key: str, why: str) -> BadInput:
    """Return the error about a reference in the value of a key."""
    return BadInput(sentence("line.reference", key=key, why=why))
