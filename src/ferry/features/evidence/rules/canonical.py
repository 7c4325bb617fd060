"""Canonical JSON: the same value always gives the same bytes, so a signature or digest of the bytes covers the value.

It follows RFC 8785 (JCS): no spaces, keys in the order of their UTF-16 code units, UTF-8, and only the escapes that
JSON needs. Numbers are integers, or fractions with at most three digits: Python and ECMAScript write their shortest
form alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_DIGITS = 3
_LARGEST = 2**53 - 1


def canonical(body: Any) -> bytes:
    """Return the bytes of a value made of dict, list, str, int, float, bool and None. Raises ValueError for others.

    Raises ValueError, too, for a float that is not finite, and for an integer beyond 2^53 - 1.
    """
    return json.dumps(
        _ordered(body), ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True
    ).encode()


def _ordered(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _ordered(value[key]) for key in sorted(value, key=lambda key: key.encode("utf-16-be"))}
        case str() | bool() | None:
            return value
        case int():
            if abs(value) > _LARGEST:
                raise ValueError(f"{value} is larger than a number of JSON may be (2^53 - 1, RFC 8785)")
            return value
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} is not a number of JSON")
            rounded = round(value, _DIGITS)
            return int(rounded) if rounded.is_integer() else rounded
        case list() | tuple():
            return [_ordered(item) for item in value]
    raise ValueError(f"{type(value).__name__} is not a value of JSON")
