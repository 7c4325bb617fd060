"""The `KafkaClient` section of a JAAS file, as the `sasl.jaas.config` of one cluster.

Source: `com.sun.security.auth.login.ConfigFile` of Java 17 and `org.apache.kafka.common.security.JaasContext`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ferry.config.jaas import JaasLogin, parse_jaas
from ferry.config.problem import BadValue

SECTION = "KafkaClient"

_SKIPPED = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?P<comment>//[^\n]*|/\*.*?\*/|^\s*#[^\n]*)',
    re.DOTALL | re.MULTILINE,
)
_SECTION = re.compile(r'\bKafkaClient\s*\{((?:"(?:[^"\\]|\\.)*"|[^"}])*)\}\s*;', re.DOTALL)
_SECRETS = ("password", "secret", "token")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Login:
    """The login both clients of MirrorMaker 1 used."""

    jaas: JaasLogin
    file: str

    def __repr__(self) -> str:
        return f"Login({self.file})"

    def has_secret(self) -> bool:
        """Whether an option is a password or the like; a keytab's path is none."""
        return any(word in option.lower() for option in self.jaas.options for word in _SECRETS)

    def text(self) -> str:
        """The value of `sasl.jaas.config`."""
        options = "".join(f' {name}="{_quoted(value)}"' for name, value in self.jaas.options.items())
        return f"{self.jaas.module} required{options};"


def read_login(text: str, file: str) -> Login:
    """The login in a JAAS file's `KafkaClient` section. Raises BadValue, which never repeats the text."""
    section = _SECTION.search(_SKIPPED.sub(lambda found: "" if found.group("comment") else found.group(), text))
    if section is None:
        raise BadValue(f"has no section {SECTION} {{ ... }}; that is the one MirrorMaker 1 read, add it")
    try:
        return Login(jaas=parse_jaas(section.group(1).strip()), file=file)
    except BadValue as error:
        raise BadValue(f"section {SECTION} {error}") from None


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
