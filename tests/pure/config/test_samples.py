"""Names that an expression may match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.text.filters import LEGAL_NAME
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.config.text.samples import samples


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "ordersany-topic"}),
        ("orders.+", {"ordersany-topic"}),
        ("a|b", {"a", "b"}),
        (r"a\.b", {"a.b"}),
        ("[x-z]", {"x", "y", "z"}),
        ("[^a-z]", {"0", "_"}),
        (r"\d{3}", {"000", "999"}),
        ("(?:a|b)c?", {"a", "bc"}),
        ("(?<word>ab){2}", {"abab"}),
        ("(?i)abc", {"abc"}),
        ("(?!secret).*", {"any-topic"}),
        ("^a$", {"a"}),
        (r"\Qa.b\E", {"a.b"}),
        ("a++", {"a"}),
        ("a{2,}", {"aa"}),
        ("", set()),
        ("#", set()),
        (r"(a)\1", set()),
        ("((((a{200}){200}){200}){200}){200}", set()),
        ("(" * 2000 + "a" + ")" * 2000, set()),
    ],
)
def test_names_are_those_that_the_expression_suggests(pattern: str, wanted: set[str]) -> None:
    assert wanted <= set(samples(pattern, 100))


def test_no_more_names_are_made_than_wanted() -> None:
    assert len(samples("|".join(f"t{n}" for n in range(5000)), 30)) == 30


ATOMS = st.sampled_from(["a", "x", ".", "[a-c]", "[^x]", r"\d", r"\.", "(a|b)", "(?:c)", "(b{2})", "_", "Z"])
SIGNS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "*?"])


@given(st.lists(st.tuples(ATOMS, SIGNS).map("".join), min_size=1, max_size=6).map("".join))
def test_without_lookarounds_every_name_matches(pattern: str) -> None:
    names = samples(pattern, 50)
    assert all(LEGAL_NAME.fullmatch(name) for name in names)
    assert all(compile_java(pattern).fullmatch(name) for name in names)
    assert names


@given(st.text("a(|)[]{}?*+^-\\.12,:=!<>iQE", max_size=12))
def test_any_text_is_read_without_harm(pattern: str) -> None:
    try:
        compile_java(pattern)
    except NotExpressible:
        return
    assert all(LEGAL_NAME.fullmatch(name) for name in samples(pattern, 50))
