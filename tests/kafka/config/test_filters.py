"""Topic filters: Java's regular expressions, MirrorMaker 2's lists, and what is never copied."""

import random

from ferry.config.text.regex import NotExpressible, compile_java
from tests.kafka.config.java_oracle import ask, encoded

NAMES = ["", "foo", "Foo", "foo-1", "foo.bar", "bar", "b.internal", "a_b", "__x", "foobar", "f", "]", "a&b", "aa", "12"]


ACCEPTED = (
    "foo.*", "foo|bar", "(?i)foo|BAR", "x(?i)y|Foo", "(?i:F)oo", "((?i)F|b)oo", "[a-c]+", "[^a-c]*", "[]a]", "[a-]+",
    r"[\w-]+", r"[\w-.]+", r"\Qfoo.bar\E", r"\Qa\E+", r"foo\.bar", r"\d+", r"(a)\1", r"(?<x>f)o+", "f.?o{1,2}", "a}",
    "f++oo", "(?>f)oo", r"\w+\z", "^foo$", "(?!foo).*", "(?<=f)oo", r"\bfoo\b", "foo-\\d", r"[^\d.]+", r"\x66oo", "}",
    r"\u0066oo", "", "a|", "[a&b]+", r"[\]]", ".{3}", ".{2,}?", r"\D+", r"\S*", "(?-i)foo", "(?i)(?-i)foo",
)  # fmt: skip


def test_accepted_expressions_mean_what_java_means() -> None:
    questions = [(pattern, name) for pattern in ACCEPTED for name in NAMES]
    answers = ask([f"regex {encoded(pattern)} {encoded(name)}" for pattern, name in questions])
    for (pattern, name), answer in zip(questions, answers, strict=True):
        assert answer == str(compile_java(pattern).fullmatch(name) is not None).lower(), (pattern, name)


def test_java_agrees_on_generated_expressions(rng: random.Random) -> None:
    pieces = [
        *"abf.o*+?|()[]{}^$-\\,12&",
        "(?i)",
        "(?:",
        "(?!",
        "[a-c]",
        "[^b]",
        "\\.",
        "\\w",
        "\\Q",
        "\\E",
        "{1,2}",
        "foo",
    ]
    questions = []
    for _ in range(6000):
        pattern = "".join(rng.choices(pieces, k=rng.randrange(1, 9)))
        questions += [(pattern, name) for name in rng.sample(NAMES, 3)]
    answers = ask([f"regex {encoded(pattern)} {encoded(name)}" for pattern, name in questions])
    for (pattern, name), answer in zip(questions, answers, strict=True):
        try:
            compiled = compile_java(pattern)
        except NotExpressible:
            continue  # Refusing more than Java does is allowed; meaning something else is not.
        assert answer != "error", f"Java refuses {pattern!r}"
        assert (compiled.fullmatch(name) is not None) == (answer == "true"), (pattern, name)
