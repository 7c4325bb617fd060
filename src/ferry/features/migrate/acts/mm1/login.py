"""The JAAS file of MirrorMaker 1, which both of its clients shared, as the `sasl.jaas.config` of each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from ferry.config.login.jaas import JaasLogin, parse_jaas
from ferry.features.migrate.acts.mm1.side import reference


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Login:
    """The login module of the file's KafkaClient section. `path` is absolute; `file` is its name as given."""

    jaas: JaasLogin
    file: str
    path: PurePath

    def __repr__(self) -> str:
        return f"Login({self.file})"

    def text(self) -> str:
        """Return the value of `sasl.jaas.config`, with passwords."""
        options = "".join(f' {name}="{_quoted(value)}"' for name, value in self.jaas.options.items())
        return f"{self.jaas.module} required{options};"

    def reference(self) -> str:
        """Return a value of `sasl.jaas.config` with which the file is read when a client logs in. Raises BadInput."""
        return reference("dir", self.path.parent, self.path.name, self.file)


def read_login(text: str, file: str, path: PurePath) -> Login:
    """Read the login in a JAAS file. Raises BadValue, which never repeats the text."""
    return Login(jaas=parse_jaas(text), file=file, path=path)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
