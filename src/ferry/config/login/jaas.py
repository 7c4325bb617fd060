"""Java's login configuration: `sasl.jaas.config`, and the `KafkaClient` section of a JAAS file.

Sources: `org.apache.kafka.common.security.JaasConfig`, `sun.security.provider.ConfigFile`, `java.io.StreamTokenizer`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ferry.config.text.problem import BadValue
from ferry.files import read_bounded
from ferry.messages.catalogue import sentence

SECTION = "KafkaClient"
KAFKA_OPTS = "KAFKA_OPTS"
"""The variable from which Kafka's scripts take JVM options; it may name a JAAS file."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[^\s=;{}"']+)
      | (?P<mark>[=;{}])
    )""",
    re.VERBOSE | re.DOTALL,
)
_WITH_LINE_BREAK = re.compile(r"""\s*(["'])[^"']*[\r\n]+\1""")
"""A value of which only the line break before its closing quote is wrong."""
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")
_EXPANSION = re.compile(r"\$\{([^}]*)\}")
_JAVA_PROPERTIES = {"user.home": "HOME", "user.name": "USER"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JaasLogin:
    """One login module with its options, some of which are passwords."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasLogin({self.module}, options {', '.join(self.options)})"

    def is_on(self, option: str) -> bool:
        """Return whether a switch such as `useKeyTab` is true."""
        return self.options.get(option, "false").strip().lower() == "true"


def parse_jaas(text: str, *, may_be_file: bool = True) -> JaasLogin:
    """Parse the one login module in `text`: `module required name="value" ...;`, or a file with a KafkaClient section.

    `may_be_file` is False where a file is not allowed, because `${name}` in a file is a Java property of this machine.

    Raises BadValue, which never repeats the text: it holds passwords.
    """
    tokens = _tokens(text, quote='\\\\" (as \\" in a value from ${...})')
    if tokens[1:2] == ["{"]:
        if not may_be_file:
            raise BadValue(sentence("login.jaas.file-text"))
        return _one_module(_sections(tokens))
    module, at = _module(tokens, 0)
    if at < len(tokens):
        raise BadValue(sentence("login.jaas.several"))
    return module


def jaas_file() -> Path | None:
    """Return the JAAS file that KAFKA_OPTS names as Java's `java.security.auth.login.config`.

    None when it names none.
    """
    # A second "=" means "this file and no other" in Java, which is what happens here anyway.
    path = jvm_property("java.security.auth.login.config").removeprefix("=").removeprefix("file:")
    return Path(path) if path else None


def read_jaas_file(path: Path) -> JaasLogin:
    """Return the login module of the file's KafkaClient section. Raises BadValue, which names the file."""
    try:
        text = read_bounded(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        named = f"JAAS file {path} of {KAFKA_OPTS}"
        raise BadValue(sentence("login.jaas.unreadable", named=named, reason=str(reason))) from None
    try:
        return _one_module(_sections(_tokens(text, quote='\\"')))
    except BadValue as error:
        raise BadValue(sentence("login.jaas.file", path=str(path), kafka_opts=KAFKA_OPTS, error=str(error))) from None


def jvm_property(name: str) -> str:
    """Return the value of `-Dname=value` in KAFKA_OPTS, the last one; empty when there is none."""
    try:
        words = shlex.split(os.environ.get(KAFKA_OPTS, ""))
    except ValueError:
        return ""
    found = [word.partition("=")[2] for word in words if word.startswith(f"-D{name}=")]
    return found[-1].strip() if found else ""


def _one_module(sections: Mapping[str, list[JaasLogin]]) -> JaasLogin:
    modules = sections.get(SECTION)
    if modules is None:
        named = ", ".join(sections) or "none"
        raise BadValue(sentence("login.jaas.no-section", section=SECTION, named=named))
    if len(modules) != 1:
        raise BadValue(sentence("login.jaas.several-in-section", modules=len(modules), section=SECTION))
    options = {name: _EXPANSION.sub(_expanded, value) for name, value in modules[0].options.items()}
    return JaasLogin(module=modules[0].module, options=options)


def _expanded(reference: re.Match[str]) -> str:
    """Return a Java system property, which JAAS files may name; `${/}` is the path separator."""
    name = reference.group(1)
    if name == "/":
        return "/"
    value = os.environ.get(_JAVA_PROPERTIES[name]) if name in _JAVA_PROPERTIES else jvm_property(name)
    if not value:
        raise BadValue(sentence("login.jaas.java-property", name=name))
    return value


def _sections(tokens: list[str]) -> dict[str, list[JaasLogin]]:
    sections: dict[str, list[JaasLogin]] = {}
    at = 0
    while at < len(tokens):
        name = tokens[at]
        if tokens[at + 1 : at + 2] != ["{"]:
            raise BadValue(sentence("login.jaas.section", number=len(sections) + 1, section=SECTION))
        at += 2
        modules = sections.setdefault(name, [])
        while tokens[at : at + 1] != ["}"]:
            module, at = _module(tokens, at)
            modules.append(module)
        if tokens[at + 1 : at + 2] != [";"]:
            raise BadValue(sentence("login.jaas.section-end", name=name))
        at += 2
    return sections


def _module(tokens: list[str], at: int) -> tuple[JaasLogin, int]:
    """Return the module that begins at `at`, and where the next one would begin."""
    if len(tokens) < at + 2 or tokens[at + 1].lower() not in _FLAGS:
        raise BadValue(sentence("login.jaas.no-module"))
    name = tokens[at]
    options: dict[str, str] = {}
    at += 2
    while at < len(tokens) and tokens[at] not in (";", "}"):
        if tokens[at + 1 : at + 2] != ["="] or at + 2 >= len(tokens) or tokens[at + 2] == ";":
            raise BadValue(sentence("login.jaas.option", number=len(options) + 1))
        options[tokens[at]] = tokens[at + 2]
        at += 3
    if tokens[at : at + 1] != [";"]:
        raise BadValue(sentence("login.jaas.no-end"))
    return JaasLogin(module=name, options=options), at + 1


def _tokens(text: str, *, quote: str) -> list[str]:
    """Return the words and marks of `text`; `quote` is how a quote inside a value is written there."""
    tokens = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None and _WITH_LINE_BREAK.match(stripped, at):
            raise BadValue(sentence("login.jaas.line-break"))
        if match is None:
            raise BadValue(sentence("login.jaas.quote", quote=quote))
        quoted = match.group("quoted")
        if quoted is not None:
            tokens.append(_ESCAPE.sub(_unescaped, quoted[1:-1]))
        elif match.group("comment") is None:
            tokens.append(match.group("word") or match.group("mark"))
        at = match.end()
    return tokens


def _unescaped(escape: re.Match[str]) -> str:
    """Return what StreamTokenizer reads for a backslash and what follows.

    It is a control character, an octal code, or the character itself.
    """
    code = escape.group(1)
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
