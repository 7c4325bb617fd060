"""Records that a report may show: their sizes and digests, and their values only if the operator asked for them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from ferry.model import RecordContent, RecordSample
from ferry.words import visible

SHOWN_BYTES = 200
"""How much of a key, a value or headers is shown if values are asked for."""

_DIGEST_BYTES = 8


def record_samples(secret: bytes, *, values: bool) -> Callable[[RecordContent], RecordSample]:
    """Return a function that makes of a record what a report shows of it.

    `secret` keys the digests: without it, short keys or values cannot be found by trial.
    """

    def digest(field: bytes | None) -> str:
        return "" if field is None else blake2b(field, digest_size=_DIGEST_BYTES, key=secret).hexdigest()

    def text(field: bytes | None) -> str:
        return _shown(field) if values and field is not None else ""

    def see(content: RecordContent) -> RecordSample:
        key, value, headers = content.key, content.value, content.headers
        return RecordSample(
            offset=content.offset,
            timestamp_ms=content.timestamp,
            key_size=None if key is None else len(key),
            value_size=None if value is None else len(value),
            headers_size=len(headers),
            key_digest=digest(key),
            value_digest=digest(value),
            headers_digest=digest(headers),
            key_text=text(key),
            value_text=text(value),
            headers_text=text(headers),
        )

    return see


def _shown(field: bytes) -> str:
    """Return the beginning of some bytes as text; what is not text, or not safe to show, is escaped."""
    begin = field[:SHOWN_BYTES].decode(errors="backslashreplace")
    return visible(begin) + ("…" if len(field) > SHOWN_BYTES else "")
