"""Values of properties as Python values. Each function raises BadValue with the remedy in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from ferry.config.keys.layers import Side
from ferry.config.text.filters import PatternList
from ferry.config.text.problem import BadValue
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.messages.catalogue import sentence
from ferry.model import lane_kind
from ferry.units import LONG_MAX, Duration, OutOfRange, Size, Unreadable

SCHEDULE_PRESETS = (
    "@continuous",
    "@once",
    "@hourly",
    "@daily",
    "@weekly",
    "@monthly",
    "@quarterly",
    "@yearly",
)
_CRON_RANGES = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_CRON_NAMES = {
    "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "weekday": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}
_CRON_ITEM = re.compile(r"(\*|[0-9a-z]{1,9})(?:-([0-9a-z]{1,9}))?(?:/([1-9][0-9]{0,8}))?")
_SERVER = re.compile(r"(?:[A-Za-z0-9_+.-]*://)?(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_UNSENT = re.compile(r"[\x00-\x20\x7f]")
"""Characters that no HTTP client sends in an address."""
_MAX_PORT = 65535
_MAX_REPLICAS = 32767


def boolean(text: str) -> bool:
    """Read `true` or `false` in any case."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise BadValue(sentence("value.boolean", value=text))


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a reader of whole numbers from `low` to `high`."""
    # A limit that no sensible value comes near would only hide the one that matters.
    named = high if high is not None and high < LONG_MAX else None
    bounds = f" from {low} to {named}" if named is not None else f" of at least {low}" if low > -LONG_MAX else ""

    def read(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,100}", text.strip(), re.ASCII):
            raise BadValue(sentence("value.number", value=text, bounds=bounds))
        number = int(text)
        if number < low or (named is not None and number > named):
            raise BadValue(sentence("value.number.range", number=number, bounds=bounds))
        if high is not None and number > high:
            raise BadValue(sentence("value.number.large", number=number))
        return number

    return read


def size(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a reader of sizes in bytes, with or without a unit."""
    return _measure(Size(least=low, most=LONG_MAX if high is None else high))


def optional_size(low: int) -> Callable[[str], int | None]:
    """Return a reader of sizes in bytes; no text means None."""
    read = size(low)
    return lambda text: read(text) if text.strip() else None


def seconds(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a reader of durations in whole seconds, with or without a unit."""
    return _measure(Duration("s", least=low, most=LONG_MAX if high is None else high, whole=True))


def optional_seconds(low: int) -> Callable[[str], int | None]:
    """Return a reader of durations in whole seconds; no text means None."""
    read = seconds(low)
    return lambda text: read(text) if text.strip() else None


def milliseconds(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a reader of durations in whole milliseconds, with or without a unit."""
    return _measure(Duration("ms", least=low, most=LONG_MAX if high is None else high, whole=True))


def _measure(reader: Size | Duration) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            return int(reader(text))
        except (Unreadable, OutOfRange) as error:
            raise BadValue(sentence("value.measure", error=str(error))) from None

    return read


def interval(text: str) -> int | None:
    """Read the seconds of an interval; a negative number means never, and is None."""
    try:
        seconds = integer(-LONG_MAX - 1, LONG_MAX)(text)
    except BadValue as error:
        raise BadValue(sentence("value.interval", error=str(error))) from None
    if seconds == 0:
        raise BadValue(sentence("value.interval.zero"))
    return seconds if seconds > 0 else None


def replication_factor(text: str) -> int:
    """Read the replicas of a topic, or -1 for the broker's default."""
    number = integer(-1, _MAX_REPLICAS)(text)
    if number == 0:
        raise BadValue(sentence("value.replicas.zero"))
    return number


def side(text: str) -> Side:
    """Read `source` or `target`."""
    match text.strip():
        case "source":
            return "source"
        case "target":
            return "target"
    raise BadValue(sentence("value.side", value=text))


def java_class(known: str) -> Callable[[str], str]:
    """Return a reader of the one class that Ferry accepts."""

    def read(text: str) -> str:
        if text.strip() != known:
            raise BadValue(sentence("value.java-class", value=text.strip(), known=known))
        return known

    return read


def optional_integer(low: int, high: int | None = None) -> Callable[[str], int | None]:
    """Return a reader of whole numbers from `low` to `high`; no text means None."""
    read = integer(low, high)
    return lambda text: read(text) if text.strip() else None


def optional_percent(low: int, high: int) -> Callable[[str], int | None]:
    """Return a reader of whole percentages, with or without `%`; no text means None."""
    read = integer(low, high)
    return lambda text: read(text.strip().removesuffix("%").rstrip()) if text.strip() else None


def optional_name(text: str) -> str:
    """Read a word of letters, digits, dot, underscore and hyphen; no text is the empty name."""
    return name(text) if text.strip() else ""


def location(text: str) -> str:
    """Read a folder, or the URL of one."""
    if not text.strip() or "\0" in text:
        raise BadValue(sentence("value.folder", value=text))
    return text.strip()


def locations(text: str) -> tuple[str, ...]:
    """Read folders by full paths, or URLs of some, with commas between."""
    found = tuple(location(item) for item in items(text))
    for one in found:
        if "://" not in one and not one.startswith("/"):
            raise BadValue(sentence("value.path", value=one))
    return found


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Return a reader of one word of `choices`."""

    def read(text: str) -> str:
        if text.strip() not in choices:
            raise BadValue(sentence("value.choice", value=text, choices=", ".join(choices)))
        return text.strip()

    return read


def optional_one_of(choices: Sequence[str]) -> Callable[[str], str | None]:
    """Return a reader of one word of `choices`; no text means None."""
    read = one_of(choices)
    return lambda text: read(text) if text.strip() else None


def items(text: str) -> tuple[str, ...]:
    """Read a list: items between commas, without the blanks around them; empty items are dropped."""
    return tuple(item for item in re.split(r"\s*,\s*", text.strip()) if item)


def pattern_list(text: str) -> PatternList:
    """Read a list of Java regular expressions."""
    listed = items(text)
    try:
        return PatternList(items=listed)
    except NotExpressible as error:
        wrong = next((item for item in listed if not _is_pattern(item)), ", ".join(listed))
        raise BadValue(sentence("value.pattern", pattern=wrong, error=str(error))) from None


def _is_pattern(item: str) -> bool:
    try:
        compile_java(item)
    except NotExpressible:
        return False
    return True


def name(text: str) -> str:
    """Read a word of letters, digits, dot, underscore and hyphen."""
    if not _NAME.fullmatch(text.strip()):
        raise BadValue(sentence("value.name", value=text))
    return text.strip()


def live_lane(text: str) -> str:
    """Read the name of a lane of scheduled runs."""
    kind = lane_kind(name(text))
    if kind is not None:
        raise BadValue(sentence("value.lane", value=text, lane=kind))
    return name(text)


def text(value: str) -> str:
    """Read any text that is not empty."""
    if not value.strip():
        raise BadValue(sentence("value.empty"))
    return value.strip()


def optional_text(value: str) -> str | None:
    """Read any text; None where there is none."""
    return value.strip() or None


def optional_url(value: str) -> str | None:
    """Read an `http` or `https` address with a host; None where there is none."""
    url = value.strip()
    if not url:
        return None
    try:
        address = urlsplit(url)
        reachable = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
        sent = f"{address.path}{address.query}".isascii() and not _UNSENT.search(url)
    except ValueError:  # an odd bracket, or a port that is not a number
        reachable = sent = False
    if not (reachable and sent):
        raise BadValue(sentence("value.address"))
    return url


def separator(value: str) -> str:
    """Read the separator between alias and topic; it must be legal in a topic name."""
    if not _NAME.fullmatch(value):
        raise BadValue(sentence("value.separator", value=value))
    return value


def bootstrap_servers(value: str) -> str:
    """Read comma-separated `host:port`."""
    servers = items(value)
    if not servers:
        raise BadValue(sentence("value.servers.none"))
    for server in servers:
        match = _SERVER.fullmatch(server)
        if match is None:
            if re.fullmatch(r"[.\u2026]+", server):
                raise BadValue(sentence("value.server.placeholder", server=server))
            if re.fullmatch(r"[A-Za-z0-9._-]+", server):
                guess = re.fullmatch(r"(.*?[^\d._-])[._-]?(\d{4,5})", server) or re.fullmatch(
                    r"(.*?)[._-](\d{4,5})", server
                )
                example = f"{guess.group(1)}:{guess.group(2)}" if guess else f"{server}:9092"
                instead = None
                if guess is not None:
                    instead = ",".join(example if one == server else one for one in servers)
                raise BadValue(sentence("value.server.no-port", server=server, example=example), instead=instead)
            raise BadValue(sentence("value.server", server=server))
        if not 0 < int(match.group(2)) <= _MAX_PORT:
            raise BadValue(sentence("value.server.port", port=match.group(2), server=server, most=_MAX_PORT))
    return ",".join(servers)


def schedule(value: str) -> str | None:
    """Read a cron expression of five fields, one of Airflow's presets, or `none` (runs are started by hand)."""
    expression = " ".join(value.split())
    if expression.lower() == "none":
        return None
    if expression in SCHEDULE_PRESETS:
        return expression
    fields = expression.split(" ")
    if len(fields) != len(_CRON_RANGES):
        raise BadValue(sentence("value.schedule", value=value, presets=", ".join(SCHEDULE_PRESETS)))
    for field, (unit, low, high) in zip(fields, _CRON_RANGES, strict=True):
        if not all(_cron_item_fits(item, unit, low, high) for item in field.lower().split(",")):
            raise BadValue(sentence("value.schedule.field", value=value, unit=unit, field=field, low=low, high=high))
    return expression


def windows(value: str) -> str | None:
    """Read a cron expression, a preset or `none`, without the presets that have no second tick."""
    found = schedule(value)
    if found in ("@continuous", "@once"):
        raise BadValue(sentence("value.schedule.no-windows", value=value))
    return found


def _cron_item_fits(item: str, unit: str, low: int, high: int) -> bool:
    match = _CRON_ITEM.fullmatch(item)
    if match is None:
        return False
    begin, end, _ = match.groups()
    if begin == "*":
        return end is None
    numbers = [_cron_number(part, unit, low) for part in (begin, end) if part is not None]
    return all(number is not None and low <= number <= high for number in numbers)


def _cron_number(part: str, unit: str, low: int) -> int | None:
    if part.isdigit():
        return int(part)
    names = _CRON_NAMES.get(unit, [])
    return names.index(part) + low if part in names else None
