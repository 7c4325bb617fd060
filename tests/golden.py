"""Sentences that tests read are in text files, one for each file of tests, which `make sentences` writes.

A test asserts the kind and the fields of what it provokes, and gives the prose to `golden`:

    with pytest.raises(Refused) as refused:
        plan(...)
    golden(refused.value)

`tests/pure/decide/test_guards.py` has its sentences in `tests/sentences/pure/decide/guards.txt`, under the test's name.
Where a test has parameters, or more than one sentence, each has a title: the parameters' id, the case that the test
names, or both.
"""

import difflib
from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

FOLDER = Path("tests/sentences")
FIXTURE = "golden"
OPTION = "--write-sentences"
REMEDY = "if that is right, `make sentences` writes it"


class Key(NamedTuple):
    """Whose sentence it is."""

    function: str
    title: str

    def __str__(self) -> str:
        return f"{self.function}[{self.title}]" if self.title else self.function


def file_of(test_file: Path) -> Path:
    """Where the sentences of a file of tests stand; both paths begin with tests/pure/."""
    return FOLDER.joinpath(*test_file.parts[1:-1], f"{test_file.stem.removeprefix('test_')}.txt")


def render(entries: dict[Key, str]) -> str:
    """The text of a file: a heading for each function, a title for each case, and the sentences indented."""
    lines = []
    function = ""
    for key in sorted(entries):
        if key.function != function:
            function = key.function
            lines += [f"== {function}", ""]
        lines += [key.title] if key.title else []
        lines += [f"    {line}" if line.strip() else "" for line in entries[key].split("\n")]
        lines.append("")
    return "\n".join(lines)


def parse(text: str) -> dict[Key, str]:
    """What `render` made a text of."""
    entries: dict[Key, list[str]] = defaultdict(list)
    key = Key("", "")
    for line in text.split("\n"):
        if line.startswith("== "):
            key = Key(line.removeprefix("== "), "")
        elif line and not line.startswith("    "):
            key = Key(key.function, line)
        else:
            entries[key].append(line[4:])
    return {key: "\n".join(lines).strip("\n") for key, lines in entries.items() if any(lines)}


@dataclass
class Book:
    """The sentences of one file of tests: those that are written, and those that its tests have given so far."""

    path: Path
    written: dict[Key, str] = field(init=False)
    given: dict[Key, str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    """Tests of the file that have not passed yet; none is left when all of the file has run."""

    def __post_init__(self) -> None:
        self.written = parse(self.path.read_text("utf-8")) if self.path.exists() else {}

    def give(self, key: Key, text: str) -> None:
        """Note a sentence; one case says one thing."""
        if not text:
            raise AssertionError(f"{key} gives no sentence")
        if self.given.setdefault(key, text) != text:
            raise AssertionError(f"{key} gives two sentences: name a case for each\n{diff(self.given[key], text)}")

    def compare(self, key: Key) -> None:
        """Fail if a sentence is not the written one."""
        if key not in self.written:
            raise AssertionError(f"{key} is not in {self.path}; {REMEDY}:\n+ {self.given[key]}")
        if self.written[key] != self.given[key]:
            change = diff(self.written[key], self.given[key])
            raise AssertionError(f"{key} reads otherwise in {self.path}; {REMEDY}:\n{change}")

    def left(self) -> list[Key]:
        """Entries that no test asked for."""
        return sorted(self.written.keys() - self.given.keys())

    def write(self, *, whole: bool) -> None:
        """Write what was given; what is left stays, unless all of the file has run."""
        entries = self.given if whole else self.written | self.given
        if entries:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(render(entries), "utf-8")
        else:
            self.path.unlink(missing_ok=True)


def diff(old: str, new: str) -> str:
    """Two sentences, with marks below what differs."""
    return "\n".join(line.rstrip("\n") for line in difflib.ndiff(old.split("\n"), new.split("\n")))


@dataclass
class Golden:
    """What a test gives its sentences to."""

    book: Book
    function: str
    parameters: str
    writes: bool
    fixtures: dict[str, object]

    def __call__(self, said: str | Exception | None, case: str = "") -> None:
        """Compare a sentence with the written one; `case` where a test has more than one. Its `tmp_path` is FOLDER."""
        __tracebackhide__ = True
        key = Key(self.function, ": ".join(filter(None, (self.parameters, case))).strip())
        text = "" if said is None else str(said).replace(str(self.fixtures.get("tmp_path", "\0")), "FOLDER")
        self.book.give(key, "\n".join(line.rstrip() for line in text.strip("\n").split("\n")))
        if not self.writes:
            self.book.compare(key)


BOOKS = pytest.StashKey[dict[Path, Book]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make sentences` uses."""
    parser.addoption(OPTION, action="store_true", help="write what tests give `golden` into tests/sentences")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no books, and name the mark that tests with sentences have."""
    config.stash[BOOKS] = {}
    config.addinivalue_line("markers", f"{FIXTURE}: gives sentences that are in {FOLDER} (`make sentences`)")


def book_of(item: pytest.Item) -> Book:
    """The book of a test's file."""
    books = item.config.stash[BOOKS]
    if item.path not in books:
        root = item.config.rootpath
        books[item.path] = Book(root / file_of(item.path.relative_to(root)))
    return books[item.path]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark and note each test that has sentences, before -k and -m choose among them."""
    if FIXTURE in getattr(item, "fixturenames", ()):
        item.add_marker(FIXTURE)
        book_of(item).waiting.add(item.nodeid)


def collects_whole_files(config: pytest.Config) -> bool:
    """Whether a file that is collected is collected with all of its tests."""
    return not config.getoption("lf", default=False) and not any("::" in argument for argument in config.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail the last test of a file if an entry is left that none of its tests asked for."""
    result = yield
    if FIXTURE in getattr(item, "fixturenames", ()):
        book = book_of(item)
        book.waiting.discard(item.nodeid)
        writes = item.config.getoption(OPTION)
        if not book.waiting and not writes and collects_whole_files(item.config) and book.left():
            left = "\n".join(f"- {key}" for key in book.left())
            pytest.fail(f"no test asks for these entries of {book.path}; {REMEDY}:\n{left}", pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was given. With `pytest -n` all tests of a file are in one process, so no two write the same file."""
    if not session.config.getoption(OPTION):
        return
    whole = collects_whole_files(session.config)
    for book in session.config.stash[BOOKS].values():
        if book.given:
            book.write(whole=whole and not book.waiting)


def brief(value: object) -> str | None:
    """A parameter's id, for `ids=brief`: it says what the value is, where pytest would number it."""
    match value:
        case str():
            text = " | ".join(value.split("\n")).strip(" |")
        case Mapping():
            text = ", ".join(f"{key}={brief(inner) or inner}" for key, inner in value.items())
        case list() | tuple() | set() | frozenset():
            text = " ".join(brief(inner) or str(inner) for inner in value)
        case _:
            return None
    return f"...{text[-120:]}" if len(text) > 120 else text or "nothing"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares sentences with the written ones."""
    item = request.node
    parameters = getattr(item, "callspec", None)
    return Golden(
        book=book_of(item),
        function=getattr(item, "originalname", item.name),
        parameters="" if parameters is None else parameters.id,
        writes=item.config.getoption(OPTION),
        fixtures=item.funcargs,
    )
