"""Stand-ins for official images are built again if any of their inputs changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.containers.stand_ins.images import content_hash

_BASE = "sha256:1"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A directory with a Dockerfile, and a context with a program, a link and a folder."""
    (tmp_path / "Dockerfile").write_text("FROM base\n")
    (tmp_path / "context" / "bin" / "empty").mkdir(parents=True)
    (tmp_path / "context" / "bin" / "run").write_text("#!/bin/sh\n")
    (tmp_path / "context" / "bin" / "link").symlink_to("run")
    return tmp_path


def _hash(image: Path, base: str = _BASE) -> str:
    return content_hash(base, image / "Dockerfile", (image / "context",))


def _link_elsewhere(image: Path) -> None:
    link = image / "context" / "bin" / "link"
    link.unlink()
    link.symlink_to("empty")


_CHANGES: Mapping[str, Callable[[Path], object]] = MappingProxyType(
    {
        "Dockerfile": lambda image: (image / "Dockerfile").write_text("FROM other\n"),
        "content": lambda image: (image / "context" / "bin" / "run").write_text("#!/bin/dash\n"),
        "mode": lambda image: (image / "context" / "bin" / "run").chmod(0o700),
        "folder": lambda image: (image / "context" / "bin").rename(image / "context" / "sbin"),
        "link": _link_elsewhere,
    }
)


@pytest.mark.parametrize("changed", _CHANGES)
def test_hash_of_a_stand_in_when_what_it_is_made_of_changed_then_differs(
    image: Path, changed: str
) -> None:
    before = _hash(image)

    _CHANGES[changed](image)

    assert _hash(image) != before


def test_hash_of_a_stand_in_when_its_base_is_another_one_then_differs(image: Path) -> None:
    assert _hash(image, "sha256:2") != _hash(image)


def test_hash_of_a_stand_in_when_only_times_differ_then_is_the_same(image: Path) -> None:
    before = _hash(image)

    (image / "context" / "bin" / "run").touch()

    assert _hash(image) == before
