"""Converts Protobuf schemas to descriptors: compiles text with protoc, or decodes base64.

Protoc runs in a separate process, because the schemas of a registry are untrusted.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from google.protobuf import (
    any_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from rsm.segment.errors import UnsupportedError
from spark_tools.schemas.schema_text import SchemaText

_MAIN = "main.proto"
_COMPILE_TIMEOUT_S = 30.0
_MAX_NAME_BYTES = 255
_WELL_KNOWN = {
    each.DESCRIPTOR.name: each.DESCRIPTOR.serialized_pb
    for each in (
        any_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
}


def file_descriptor(schema: SchemaText) -> FileDescriptor:
    """Return the schema's file in a new pool. Raises UnsupportedError if the schema is invalid."""
    texts = {**dict(schema.all_references()), _MAIN: schema}
    given = {name: _serialized(each.text, name) for name, each in texts.items()}
    files = {name: each for name, each in given.items() if each is not None}
    if len(files) < len(given):
        files |= _compiled({name: each.text for name, each in texts.items()})
    pool = DescriptorPool()
    try:
        _add(pool, _MAIN, files, set())
        return pool.FindFileByName(_MAIN)
    except (TypeError, KeyError, RecursionError) as error:
        raise UnsupportedError("the Protobuf schema is invalid", reason=str(error)[:200]) from error


def _serialized(text: str, name: str) -> FileDescriptorProto | None:
    """Decode a base64 descriptor, which Confluent's Python serializer registers.

    Returns None if the schema is text.
    """
    try:
        found = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    found.name = name
    return found


def _compiled(texts: Mapping[str, str]) -> dict[str, FileDescriptorProto]:
    _require_file_names(texts)
    with TemporaryDirectory(prefix="rlm-protoc-") as name:
        directory = Path(name)
        for each, text in texts.items():
            target = directory / "files" / each
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        compiled = directory / "compiled"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{directory / 'files'}"]
        command += ["--include_imports", f"--descriptor_set_out={compiled}", _MAIN]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_COMPILE_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise UnsupportedError(
                "cannot compile a Protobuf schema: protoc timed out", timeout_s=_COMPILE_TIMEOUT_S
            ) from error
        if done.returncode:
            lines = " ".join(done.stderr.replace(f"{directory / 'files'}/", "").split())
            raise UnsupportedError("the Protobuf schema is invalid", reason=lines[:300])
        found = FileDescriptorSet.FromString(compiled.read_bytes())
    return {each.name: each for each in found.file}


def _require_file_names(names: Iterable[str]) -> None:
    """Raise UnsupportedError unless the names can be separate files in one directory."""
    paths: dict[PurePosixPath, str] = {}
    for each in names:
        path = PurePosixPath(each)
        is_printable = each.isprintable()  # This excludes NUL and lone surrogates.
        if not is_printable or not path.parts or path.is_absolute() or ".." in path.parts:
            raise UnsupportedError(
                "cannot compile a Protobuf schema: a file name is invalid",
                name=repr(each)[:200],
                expected="a printable relative path without ..",
            )
        if len(each.encode()) > _MAX_NAME_BYTES:
            raise UnsupportedError(
                "cannot compile a Protobuf schema: a file name is too long",
                name=repr(each)[:200],
                most=_MAX_NAME_BYTES,
            )
        if path in paths:
            raise UnsupportedError(
                "cannot compile a Protobuf schema: two names are the same file",
                names=f"{paths[path]},{each}",
            )
        paths[path] = each
    for path, name in paths.items():
        for parent in path.parents:
            if parent in paths:
                raise UnsupportedError(
                    "cannot compile a Protobuf schema: a file is also another file's directory",
                    names=f"{paths[parent]},{name}",
                )


def _add(
    pool: DescriptorPool, name: str, files: Mapping[str, FileDescriptorProto], added: set[str]
) -> None:
    """Add a file's imports, then the file. Raises KeyError for a missing import."""
    if name in added:
        return
    added.add(name)
    if name in files:
        for each in files[name].dependency:
            _add(pool, each, files, added)
        pool.AddSerializedFile(files[name].SerializeToString())
    else:
        pool.AddSerializedFile(_WELL_KNOWN[name])
