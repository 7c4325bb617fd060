"""`sasl.jaas.config` as Java's clients read it: `module flag name="value" …;`.

Source: `org.apache.kafka.common.security.JaasConfig`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ferry.config.problem import BadValue

_TOKEN = re.compile(r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[^\s=;"']+)|(?P<mark>[=;]))""")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JaasLogin:
    """One login module with its options, some of which are passwords."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasLogin({self.module}, options {', '.join(self.options)})"


def parse_jaas(text: str) -> JaasLogin:
    """The one login module in `text`. Raises BadValue, which never repeats the text: it holds passwords."""
    tokens = _tokens(text)
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise BadValue("does not begin with a login module and 'required'; write module required name=\"value\";")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != ";":
        if tokens[at + 1 : at + 2] != ["="] or at + 2 >= len(tokens) or tokens[at + 2] == ";":
            raise BadValue(f'option {len(options) + 1} is not name="value"; put quotes around the value')
        options[tokens[at]] = tokens[at + 2]
        at += 3
    if at >= len(tokens):
        raise BadValue("does not end with a semicolon; append ;")
    if at + 1 < len(tokens):
        raise BadValue("holds more than one login module; Kafka clients allow one")
    return JaasLogin(module=tokens[0], options=options)


def _tokens(text: str) -> list[str]:
    tokens = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise BadValue('has a quote that is never closed; close it, and write a quote inside a value as \\"')
        quoted = match.group("quoted")
        if quoted is not None:
            tokens.append(_ESCAPE.sub(lambda escape: _ESCAPED.get(escape.group(1), escape.group(1)), quoted[1:-1]))
        else:
            tokens.append(match.group("word") or match.group("mark"))
        at = match.end()
    return tokens
