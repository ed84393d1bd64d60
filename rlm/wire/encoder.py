"""Compiles an encoder for one version of a message. rlm.wire.decoder is its counterpart.

A field that the version does not carry must have its default value, so that the encoder never
silently drops a value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from rlm.wire import writing
from rlm.wire.function_source import FunctionSource
from rlm.wire.layout import FieldPlan, MessagePlan, plan
from rlm.wire.schema import ArrayOf, Message, WireType
from rsm.segment.errors import UnsupportedError

Encoder = Callable[[bytearray, Message], None]


def compile_encoder(message_type: type[Message], version: int, *, flexible: bool) -> Encoder:
    """Compile the function (out, message) that appends the message's bytes to `out`.

    The function raises UnsupportedError if this version cannot carry a value, and struct.error if a
    value does not fit its width.
    """
    source = _EncoderSource(plan(message_type, version, flexible=flexible))
    encoder: Encoder = source.compile("encode")
    return encoder


class _EncoderSource(FunctionSource):
    def __init__(self, message_plan: MessagePlan) -> None:
        names = {**vars(writing), "not_carried": self._not_carried}
        super().__init__(message_plan, verb="write", head="def encode(out, m):", names=names)

    def _write(self) -> None:
        for field in self._plan.absent:
            self._absent(field.name, field.default)
        for step in self._plan.steps:
            self._step(step, "out", "    ")
        if self._plan.flexible:
            self._tags()
        else:
            self._absent("unknown_tags", ())

    def _not_carried(self, name: str) -> UnsupportedError:
        return UnsupportedError(
            "cannot encode a message: its version does not carry a field",
            message_type=self._plan.message_type.__name__,
            version=self._plan.version,
            field=name,
        )

    def _absent(self, name: str, default: object) -> None:
        self._lines += [
            f"    if {self._differs(name, default)}:",
            f"        raise not_carried({name!r})",
        ]

    def _differs(self, name: str, default: object) -> str:
        """Return the source of the condition that a field differs from its default."""
        expected = self._named("default", default)
        # Comparing structures costs most here, and most structures are the default object itself.
        is_other = f"m.{name} is not {expected} and " if isinstance(default, Message) else ""
        return f"{is_other}m.{name} != {expected}"

    def _step(self, step: tuple[FieldPlan, ...], out: str, indent: str) -> None:
        field = step[0]
        if field.struct_code is not None:
            codes = "".join(field.struct_code or "" for field in step)
            pack = self._named("pack", struct.Struct(">" + codes).pack)
            values = ", ".join(f"m.{field.name}" for field in step)
            self._lines.append(f"{indent}{out} += {pack}({values})")
        elif isinstance(field.type, ArrayOf):
            self._array(field, field.type.element, out, indent)
        elif isinstance(field.type, type):
            self._structure(field, field.type, out, indent)
        else:
            writer = self._primitive(field.type, nullable=field.nullable)
            self._lines.append(f"{indent}{writer}({out}, m.{field.name})")

    def _structure(self, field: FieldPlan, kind: type[Message], out: str, indent: str) -> None:
        compiled = compile_encoder(kind, self._plan.version, flexible=self._plan.flexible)
        write = self._named("encode", compiled)
        if not field.nullable:
            self._lines.append(f"{indent}{write}({out}, not_null(m.{field.name}))")
            return
        self._lines += [
            f"{indent}write_presence({out}, m.{field.name} is not None)",
            f"{indent}if m.{field.name} is not None:",
            f"{indent}    {write}({out}, m.{field.name})",
        ]

    def _array(
        self, field: FieldPlan, element: WireType | type[Message], out: str, indent: str
    ) -> None:
        write_count = "write_compact_count" if self._plan.flexible else "write_count"
        if_null = f"{write_count}({out}, -1)" if field.nullable else "not_null(None)"
        self._lines += [
            f"{indent}if m.{field.name} is None:",
            f"{indent}    {if_null}",
            f"{indent}else:",
            f"{indent}    {write_count}({out}, len(m.{field.name}))",
            f"{indent}    for item in m.{field.name}:",
            f"{indent}        {self._element(element, out)}",
        ]

    def _element(self, element: WireType | type[Message], out: str) -> str:
        if isinstance(element, WireType):
            single = FieldPlan(name="item", type=element, nullable=False, tag=None, default=None)
            if single.struct_code is not None:
                pack = self._named("pack", struct.Struct(">" + single.struct_code).pack)
                return f"{out} += {pack}(item)"
            return f"{self._primitive(element, nullable=False)}({out}, item)"
        encoder = compile_encoder(element, self._plan.version, flexible=self._plan.flexible)
        return f"{self._named('encode', encoder)}({out}, item)"

    def _tags(self) -> None:
        if not self._plan.tagged:
            self._lines.append("    write_tags(out, m.unknown_tags)")
            return
        self._lines.append("    tags = list(m.unknown_tags)")
        for field in self._plan.tagged:
            differs = self._differs(field.name, field.default)
            self._lines += [f"    if {differs}:", "        body = bytearray()"]
            self._step((field,), "body", " " * 8)
            self._lines.append(f"        tags.append(({field.tag}, bytes(body)))")
        self._lines += ["    tags.sort()", "    write_tags(out, tags)"]
