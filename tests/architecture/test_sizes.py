"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

from collections import Counter

from tests.architecture.tree import (
    CHECKOUT,
    PRODUCT_PACKAGES,
    PROGRAMS,
    SourceFile,
    handwritten_files,
)

MAX_FILE_LINES = 400
MAX_TEST_FILE_LINES = 500
P90_FILE_LINES = 300
MAX_README_LINES = 150
MAX_FUNCTION_LINES = 60
P90_FUNCTION_LINES = 30
MAX_FOLDER_MODULES = 15

# Folders with one module for each row of a table may have more modules.
TABLES = {"rlm/wire/api", "rlmm/events"}


def test_product_files_when_measured_then_none_exceeds_the_limit() -> None:
    assert _longer_than(MAX_FILE_LINES, *PRODUCT_PACKAGES, *PROGRAMS) == []


def test_readme_when_measured_then_within_the_limit() -> None:
    """A new user reads it as a whole."""
    assert len((CHECKOUT / "README.md").read_text().splitlines()) <= MAX_README_LINES


def test_product_files_when_measured_then_nine_of_ten_are_short() -> None:
    lengths = [file.line_count for file in handwritten_files(*PRODUCT_PACKAGES)]

    assert _p90(lengths) <= P90_FILE_LINES


def test_product_folders_when_counted_then_none_exceeds_the_limit() -> None:
    files = [file.path for file in handwritten_files(*PRODUCT_PACKAGES)]
    modules = [path.relative_to(CHECKOUT) for path in files if path.name != "__init__.py"]
    counts = Counter(path.parent.as_posix() for path in modules)

    too_many = {folder: count for folder, count in counts.items() if count > MAX_FOLDER_MODULES}
    assert too_many.keys() == TABLES, too_many


def test_test_files_when_measured_then_none_exceeds_the_limit() -> None:
    assert _longer_than(MAX_TEST_FILE_LINES, "tests") == []


def test_functions_when_measured_then_none_exceeds_the_limit() -> None:
    too_long = [
        f"{file.name}:{function.lineno} {function.name}: {function.line_count} lines"
        for file in handwritten_files(*PRODUCT_PACKAGES, *PROGRAMS, "tests")
        for function in file.outline.functions
        if function.line_count > MAX_FUNCTION_LINES
    ]

    assert too_long == []


def test_product_functions_when_measured_then_nine_of_ten_are_short() -> None:
    lengths = [
        function.line_count
        for file in handwritten_files(*PRODUCT_PACKAGES)
        for function in file.outline.functions
    ]

    assert _p90(lengths) <= P90_FUNCTION_LINES


def _longer_than(limit: int, *roots: str) -> list[str]:
    return [_described(file) for file in handwritten_files(*roots) if file.line_count > limit]


def _described(file: SourceFile) -> str:
    return f"{file.name}: {file.line_count} lines"


def _p90(values: list[int]) -> int:
    return sorted(values)[len(values) * 9 // 10]
