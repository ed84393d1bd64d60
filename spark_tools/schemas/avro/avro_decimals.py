"""Converts Avro decimals in time proportional to their length.

Fastavro converts bytes of any length to a number; 400 kB take 46 s. So rlm replaces the logical
type `decimal` in schemas with another one, for which fastavro calls `read_decimal`.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from fastavro.read import LOGICAL_READERS

from rsm.segment.errors import CorruptError, UnsupportedError

Schema = Any

DECIMAL = "rlm-decimal"
"""The logical type that replaces Avro's `decimal`."""

_MAX_PRECISION = 38
_MAX_BYTES = 17  # This is enough for 38 digits and a sign.
_EXACT = Context(prec=60)


def require_decimal(schema: Schema) -> None:
    """Raise UnsupportedError for a decimal schema that Spark's decimal type cannot represent."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    is_whole = type(precision) is int and type(scale) is int
    if not is_whole or not 0 < precision <= _MAX_PRECISION or not 0 <= scale <= precision:
        raise UnsupportedError(
            "cannot decode the decimal: Spark cannot represent its type",
            precision=precision,
            scale=scale,
            expected=f"a precision from 1 to {_MAX_PRECISION}, a scale from 0 to the precision",
        )


def read_decimal(data: bytes, schema: Schema, _: Schema = None) -> Decimal:
    """Convert big-endian two's complement to a decimal of the writer's scale.

    Raises CorruptError if bytes before the last 17 do more than repeat the sign.
    """
    if len(data) > _MAX_BYTES:
        sign = b"\xff" if data[-_MAX_BYTES] & 0x80 else b"\x00"
        if data[:-_MAX_BYTES].strip(sign):
            raise CorruptError(
                "cannot decode a decimal: it is too long", size_bytes=len(data), max=_MAX_BYTES
            )
        data = data[-_MAX_BYTES:]
    unscaled = Decimal(int.from_bytes(data, "big", signed=True))
    return _EXACT.scaleb(unscaled, -schema.get("scale", 0))


for _kind in ("bytes", "fixed"):
    LOGICAL_READERS[f"{_kind}-{DECIMAL}"] = read_decimal
