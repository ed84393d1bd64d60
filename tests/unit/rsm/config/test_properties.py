"""Reading unusual configuration files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.config.properties import read_properties
from rsm.segment.errors import InvalidConfigError


def test_file_when_it_has_no_end_then_refused_at_a_bounded_length() -> None:
    with pytest.raises(InvalidConfigError, match="it is too long") as refused:
        read_properties(Path("/dev/zero"))

    assert refused.value.context["max_bytes"] == 1 << 20


def test_file_when_it_is_as_long_as_it_may_be_then_read(tmp_path: Path) -> None:
    path = tmp_path / "rlm.properties"
    line = b"key=1\n"
    path.write_bytes(line + b"#" * ((1 << 20) - len(line)))

    assert read_properties(path).values() == {"key": "1"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_file_when_its_lines_end_as_on_any_system_then_the_same_keys_and_lines(
    end: str, tmp_path: Path
) -> None:
    path = tmp_path / "rlm.properties"
    path.write_bytes(f"\ufeffa=1{end}{end}b=2 \\{end}  3{end}".encode())

    found = read_properties(path)

    assert found.values() == {"a": "1", "b": "2 3"}
    assert [each.line for each in found.entries.values()] == [1, 3]
