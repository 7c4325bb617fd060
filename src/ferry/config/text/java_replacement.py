"""Replacements in the form of Java's `Matcher.replaceFirst`, as those of Python."""

from __future__ import annotations


def java_replacement(text: str) -> str:
    """Return a replacement of Java's `Matcher` as one of Python's `Match.expand`.

    Raises ValueError for what Java refuses.
    """
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            if at + 1 == len(text):
                raise ValueError("a backslash stands alone at the end")
            out.append(_literal(text[at + 1]))
            at += 2
        elif char != "$":
            out.append(_literal(char))
            at += 1
        elif text[at + 1 : at + 2] == "{":
            end = text.find("}", at)
            if end < 0:
                raise ValueError("${ has no }")
            out.append(f"\\g<{text[at + 2 : end]}>")
            at = end + 1
        elif text[at + 1 : at + 2].isdecimal():
            if text[at + 2 : at + 3].isdecimal():
                raise ValueError("$ is followed by two digits; name the group, (?<name>...) and ${name}")
            out.append(f"\\g<{text[at + 1]}>")
            at += 2
        else:
            raise ValueError("$ is followed by neither a digit nor {name}; write \\$ for the character")
    return "".join(out)


def _literal(char: str) -> str:
    return "\\\\" if char == "\\" else char
