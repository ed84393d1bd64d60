"""Compiles a decoder for one version of a message from its table.

The compiled function reads one field after the other. For two adjacent int32 fields and a nullable
compact string, it is

    def decode(data, pos):
        v_partition, v_leader_epoch, = unpack_0(data, pos)
        pos += 8
        v_rack, pos = read_compact_nullable_string(data, pos)
        tags, pos = read_tags(data, pos)
        return Message(partition=v_partition, …, unknown_tags=tags), pos
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from rlm.wire import reading
from rlm.wire.function_source import FunctionSource
from rlm.wire.layout import (
    FieldPlan,
    MessagePlan,
    plan,
    smallest_bytes,
    smallest_message_bytes,
)
from rlm.wire.schema import ArrayOf, Buffer, Message, WireType
from rsm.segment.errors import CorruptError

Decoder = Callable[[Buffer, int], tuple[Message, int]]


def compile_decoder(message_type: type[Message], version: int, *, flexible: bool) -> Decoder:
    """Compile the function (data, position) -> (message, position after it).

    It raises CorruptError, struct.error, IndexError or UnicodeDecodeError if the bytes are not such
    a message.
    """
    source = _DecoderSource(plan(message_type, version, flexible=flexible))
    decoder: Decoder = source.compile("decode")
    return decoder


def _whole(body: bytes, position: int) -> None:
    if position != len(body):
        raise CorruptError(
            "a tagged field is invalid: it is longer than its value", left=len(body) - position
        )


class _DecoderSource(FunctionSource):
    def __init__(self, message_plan: MessagePlan) -> None:
        names = {**vars(reading), "Message": message_plan.message_type, "whole": _whole}
        super().__init__(message_plan, verb="read", head="def decode(data, pos):", names=names)

    def _write(self) -> None:
        for step in self._plan.steps:
            self._step(step, "data", "pos", "    ")
        self._tags()
        fields = [field for step in self._plan.steps for field in step] + [*self._plan.tagged]
        arguments = [f"{field.name}=v_{field.name}" for field in fields]
        if self._plan.flexible:
            arguments.append("unknown_tags=tags")
        self._lines.append(f"    return Message({', '.join(arguments)}), pos")

    def _step(self, step: tuple[FieldPlan, ...], data: str, pos: str, indent: str) -> None:
        field = step[0]
        if field.struct_code is not None:
            self._fixed(step, data, pos, indent)
        elif isinstance(field.type, ArrayOf):
            self._array(field, field.type.element, data, pos, indent)
        elif isinstance(field.type, type):
            self._structure(field, field.type, data, pos, indent)
        else:
            reader = self._primitive(field.type, nullable=field.nullable)
            self._lines.append(f"{indent}v_{field.name}, {pos} = {reader}({data}, {pos})")

    def _fixed(self, step: tuple[FieldPlan, ...], data: str, pos: str, indent: str) -> None:
        fixed = struct.Struct(">" + "".join(field.struct_code or "" for field in step))
        unpack = self._named("unpack", fixed.unpack_from)
        targets = "".join(f"v_{field.name}, " for field in step)
        self._lines += [
            f"{indent}{targets}= {unpack}({data}, {pos})",
            f"{indent}{pos} += {fixed.size}",
        ]

    def _structure(
        self, field: FieldPlan, kind: type[Message], data: str, pos: str, indent: str
    ) -> None:
        compiled = compile_decoder(kind, self._plan.version, flexible=self._plan.flexible)
        read = f"v_{field.name}, {pos} = {self._named('decode', compiled)}({data}, {pos})"
        if not field.nullable:
            self._lines.append(f"{indent}{read}")
            return
        self._lines += [
            f"{indent}v_{field.name} = None",
            f"{indent}is_there, {pos} = read_presence({data}, {pos})",
            f"{indent}if is_there:",
            f"{indent}    {read}",
        ]

    def _array(
        self, field: FieldPlan, element: WireType | type[Message], data: str, pos: str, indent: str
    ) -> None:
        read_one, least_bytes = self._element(element, data, pos)
        read_count = "read_compact_count" if self._plan.flexible else "read_count"
        name = f"v_{field.name}"
        if_null = f"{name} = None" if field.nullable else "raise null_array()"
        self._namespace["null_array"] = lambda: CorruptError(
            "the array is null, but the field is not nullable"
        )
        self._lines += [
            f"{indent}count, {pos} = {read_count}({data}, {pos}, {least_bytes})",
            f"{indent}if count < 0:",
            f"{indent}    {if_null}",
            f"{indent}else:",
            f"{indent}    items = []",
            f"{indent}    for _ in range(count):",
            *(f"{indent}        {line}" for line in read_one),
            f"{indent}        items.append(item)",
            f"{indent}    {name} = tuple(items)",
        ]

    def _element(
        self, element: WireType | type[Message], data: str, pos: str
    ) -> tuple[list[str], int]:
        """Return the lines that read one element as `item`, and its minimum size in bytes."""
        version, flexible = self._plan.version, self._plan.flexible
        if isinstance(element, WireType):
            least_bytes = smallest_bytes(element, flexible=flexible)
            single = FieldPlan(name="item", type=element, nullable=False, tag=None, default=None)
            if single.struct_code is not None:
                unpack = self._named("unpack", struct.Struct(">" + single.struct_code).unpack_from)
                return [f"item, = {unpack}({data}, {pos})", f"{pos} += {least_bytes}"], least_bytes
            reader = self._primitive(element, nullable=False)
            return [f"item, {pos} = {reader}({data}, {pos})"], least_bytes
        decode = self._named("decode", compile_decoder(element, version, flexible=flexible))
        least_bytes = smallest_message_bytes(element, version, flexible=flexible)
        return [f"item, {pos} = {decode}({data}, {pos})"], least_bytes

    def _tags(self) -> None:
        if not self._plan.flexible:
            return
        self._lines.append("    tags, pos = read_tags(data, pos)")
        if not self._plan.tagged:
            return
        for field in self._plan.tagged:
            default = self._named("default", field.default)
            self._lines.append(f"    v_{field.name} = {default}")
        self._lines += [
            "    if tags:",
            "        unknown = []",
            "        for tag, body in tags:",
            "            at = 0",
        ]
        branch = "if"
        for field in self._plan.tagged:
            self._lines.append(f"            {branch} tag == {field.tag}:")
            self._step((field,), "body", "at", " " * 16)
            self._lines.append("                whole(body, at)")
            branch = "elif"
        self._lines += [
            "            else:",
            "                unknown.append((tag, body))",
            "        tags = tuple(unknown)",
        ]
