"""Reads what an image consists of: the files of each layer, and its configuration."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO


def image_content(saved: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield names and content of all files of an image as an engine saves it.

    They include files that a later layer deletes, and the configuration with the environment and
    the command of each layer. `saved` must be seekable.
    """
    with tarfile.open(fileobj=saved) as image:
        for member in image:
            content = image.extractfile(member) if member.isfile() else None
            if content is not None:
                yield from _layer_content(member.name, content)


def _layer_content(name: str, content: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    is_layer = tarfile.is_tarfile(content)
    content.seek(0)
    if not is_layer:  # the configuration, or a list of the layers
        yield name, content.read()
        return
    with tarfile.open(fileobj=content) as layer:
        for member in layer:
            file = layer.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, file.read()
