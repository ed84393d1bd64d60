"""What tests.containers reads of an image that an engine saved."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from io import BytesIO

import pytest

from tests.containers.image_content import image_content


def _archive(files: Mapping[str, bytes], *, mode: str = "w") -> bytes:
    """Return a tar archive; `mode` may name a compression."""
    written = BytesIO()
    with tarfile.open(fileobj=written, mode=mode) as archive:  # type: ignore[call-overload]  # a mode of the caller
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, BytesIO(content))
    return written.getvalue()


@pytest.mark.parametrize("compression", ["w", "w:gz"])
def test_image_when_a_later_layer_deletes_a_file_then_its_content_is_found(
    compression: str,
) -> None:
    saved = _archive(
        {
            "manifest.json": b"[]",
            "blobs/sha256/c0ffee": b'{"config": {"Env": ["TOKEN=1"]}}',
            "1.tar": _archive({"etc/token": b"secret", "etc/empty": b""}, mode=compression),
            "2.tar": _archive({"etc/.wh.token": b""}, mode=compression),
        }
    )

    assert list(image_content(BytesIO(saved))) == [
        ("manifest.json", b"[]"),
        ("blobs/sha256/c0ffee", b'{"config": {"Env": ["TOKEN=1"]}}'),
        ("etc/token", b"secret"),
        ("etc/empty", b""),
        ("etc/.wh.token", b""),
    ]
