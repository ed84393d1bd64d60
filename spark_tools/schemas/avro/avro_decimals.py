"""Converts Avro decimals in time proportional to their length.

Fastavro converts bytes of any length to a number, which takes 46 s for 400 kB. So schemas get
another logical type instead of decimal, for which fastavro calls `read_decimal`.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from fastavro.read import LOGICAL_READERS

from rsm.segment.errors import CorruptError, UnsupportedError

Schema = Any

DECIMAL = "rlm-decimal"
"""The logical type instead of Avro's decimal."""

_MAX_PRECISION = 38
_MAX_BYTES = 17  # 38 digits and a sign
_EXACT = Context(prec=60)


def require_decimal(schema: Schema) -> None:
    """Raise UnsupportedError for a decimal that Spark does not have."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    is_whole = type(precision) is int and type(scale) is int
    if not is_whole or not 0 < precision <= _MAX_PRECISION or not 0 <= scale <= precision:
        raise UnsupportedError(
            "the decimal type does not fit Spark's", precision=precision, scale=scale
        )


def read_decimal(data: bytes, schema: Schema, _: Schema = None) -> Decimal:
    """Convert big-endian two's complement to a decimal of the writer's scale.

    Raises CorruptError if bytes before the last 17 do more than repeat the sign.
    """
    if len(data) > _MAX_BYTES:
        sign = b"\xff" if data[-_MAX_BYTES] & 0x80 else b"\x00"
        if data[:-_MAX_BYTES].strip(sign):
            raise CorruptError("a decimal is too long", size_bytes=len(data), most=_MAX_BYTES)
        data = data[-_MAX_BYTES:]
    unscaled = Decimal(int.from_bytes(data, "big", signed=True))
    return _EXACT.scaleb(unscaled, -schema.get("scale", 0))


for _kind in ("bytes", "fixed"):
    LOGICAL_READERS[f"{_kind}-{DECIMAL}"] = read_decimal
