"""Canonical JSON: the same value gives the same bytes, so that a signature and a digest mean the value.

As RFC 8785 (JCS): no space, keys in the order of their UTF-16 code units, UTF-8 without escapes beyond the needed.
Numbers are integers, or fractions with at most three digits, whose shortest form Python and ECMAScript write alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_DIGITS = 3
_LARGEST = 2**53 - 1


def canonical(body: Any) -> bytes:
    """The bytes of a value made of dict, list, str, int, float, bool and None; ValueError for any other number."""
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
                raise ValueError(f"{value} is no number of JSON")
            rounded = round(value, _DIGITS)
            return int(rounded) if rounded.is_integer() else rounded
        case list() | tuple():
            return [_ordered(item) for item in value]
    raise ValueError(f"{type(value).__name__} is no value of JSON")
