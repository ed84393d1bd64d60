"""A plug-in that cannot be used ends the start with an error that names it and its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rsm.opening import open_segments, open_store
from rsm.plugins.plugin import ClassName, Plugin
from rsm.segment.errors import InvalidConfigError
from rsm.storage.memory import MemoryChunkStorage
from rsm.store_settings import SegmentSettings
from tests.unit.rsm.plugins import plugin_classes

MODULE = "tests.unit.rsm.plugins.plugin_classes"
KEY = "rsm.config.storage.backend"


def plugin(
    class_name: str,
    settings: Mapping[str, str] | None = None,
    *,
    module: str = MODULE,
    timeout_ms: int = 30_000,
) -> Plugin:
    return Plugin(
        class_name=ClassName(module=module, name=class_name),
        key=KEY,
        prefix="rsm.config.storage.",
        settings=settings or {},
        timeout_ms=timeout_ms,
    )


@pytest.fixture(autouse=True)
def release() -> Iterator[None]:
    """End threads that hang."""
    plugin_classes.released.clear()
    plugin_classes.made.clear()
    yield
    plugin_classes.released.set()


def test_store_when_its_class_reads_its_settings_then_it_opens() -> None:
    storage = open_store(plugin("Memory", {"name": "a"}))

    assert [each.name for each in plugin_classes.made] == ["a"]
    assert not storage.exists("absent")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Absent", "a class that extends rsm.storage.chunk_storage.ChunkStorage"),
        ("NOT_A_CLASS", "a class that extends rsm.storage.chunk_storage.ChunkStorage"),
        ("Mapping", "a class that extends rsm.storage.chunk_storage.ChunkStorage"),
        ("Incomplete", "missing=append, check_access, close, concat, create, create_with_content"),
        ("Refusing", "missing setting"),
        ("Unreachable", "cannot connect"),
        ("Exiting", "SystemExit: 0"),
        ("Cancelled", "CancelledError"),
        ("WithoutCapabilities", "method=capabilities"),
        ("Unlicensed", "no licence"),
    ],
)
def test_store_when_its_class_cannot_be_used_then_the_class_and_its_key_are_named(
    name: str, problem: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        open_store(plugin(name))

    assert problem in str(raised.value)
    assert raised.value.context["key"] == KEY
    assert str(raised.value.context["plugin"]) == f"{MODULE}:{name}"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import absent_dependency", "No module named 'absent_dependency'"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("class", "SyntaxError"),
    ],
)
def test_store_when_its_module_cannot_be_imported_then_the_reason_is_named(
    source: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_broken.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(InvalidConfigError, match="acme_broken:Tape") as raised:
        open_store(plugin("Tape", module="acme_broken"))

    assert problem in str(raised.value)


def test_store_when_its_constructor_hangs_then_the_start_ends_all_the_same() -> None:
    with pytest.raises(InvalidConfigError, match="did not start in time"):
        open_store(plugin("Hanging", timeout_ms=50))


def test_store_when_it_does_not_read_a_setting_then_the_setting_is_unknown() -> None:
    with pytest.raises(InvalidConfigError, match=r"setting=rsm\.config\.storage\.nmae\b"):
        open_store(plugin("Memory", {"nmae": "a"}))

    assert [each.closed for each in plugin_classes.made] == [1]


@pytest.mark.parametrize("name", ["Raising", "Refusing"])
def test_store_when_its_error_has_a_secret_then_the_secret_is_not_shown(name: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"\(not shown\)") as raised:
        open_store(plugin(name, {"password": "hush"}))

    assert "hush" not in str(raised.value)


def test_segments_when_their_layout_cannot_be_used_then_the_store_is_closed() -> None:
    storage = plugin_classes.Memory({})

    with pytest.raises(
        InvalidConfigError, match=r"extends rsm\.layout\.segment_layout\.SegmentLayout"
    ):
        open_segments(SegmentSettings(layouts=(plugin("Memory"),)), storage)

    assert storage.closed == 1


def test_segments_when_a_layout_has_the_name_of_another_then_refused() -> None:
    named_raw = plugin("NamedRaw", module="tests.unit.rsm.plugins.layout_classes")

    with pytest.raises(InvalidConfigError, match="two layouts have the same name"):
        open_segments(SegmentSettings(layouts=(named_raw,)), MemoryChunkStorage(wall_ms=lambda: 0))
