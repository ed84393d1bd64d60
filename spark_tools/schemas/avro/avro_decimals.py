"""Decimals of Avro, converted in time that grows with their length alone.

Fastavro makes a number of bytes of any length, which takes 46 s for 400 kB: its own decimals are
not used, but a logical type of another name, which it hands to `read_decimal`.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from fastavro.read import LOGICAL_READERS

from rsm.segment.errors import CorruptError, UnsupportedError

Schema = Any

DECIMAL = "rlm-decimal"
"""The logical type in place of Avro's."""

_MAX_PRECISION = 38
_MAX_BYTES = 17  # of 38 digits and a sign
_EXACT = Context(prec=60)


def require_decimal(schema: Schema) -> None:
    """UnsupportedError for one that is not a decimal of Spark."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    is_whole = type(precision) is int and type(scale) is int
    if not is_whole or not 0 < precision <= _MAX_PRECISION or not 0 <= scale <= precision:
        raise UnsupportedError("not a decimal of Spark", precision=precision, scale=scale)


def read_decimal(data: bytes, schema: Schema, _: Schema = None) -> Decimal:
    """Two's complement, big endian, as a decimal of the writer's scale. CorruptError if too long.

    Bytes before the last 17 may only repeat the sign.
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
