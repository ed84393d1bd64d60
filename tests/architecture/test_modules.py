"""Each module has one concept, is named by a noun of the domain, and is used."""

from __future__ import annotations

import ast

from rlm.cli.main import COMMANDS
from tests.architecture.tree import (
    PRODUCT_PACKAGES,
    PROGRAMS,
    Function,
    Import,
    SourceFile,
    handwritten_files,
    python_files,
)

NAMES_WITHOUT_A_CONCEPT = {"utils", "util", "helpers", "helper", "common", "misc"}

# Programs start here; each other module must be imported from one of these, directly or not.
ENTRY_POINTS = {
    "rlm.__main__",
    "rlm.cli.main",
    "rlm.cli.host.gateway_program",
    "rlm.cli.host.manager",
    "rlm.config.reference",
    "rlm.app.metrics_reference",
    "rlm.app.http_reference",
    "rlm.cli.reference",
    "rlm.cli.json_reference",
    "rlm.cli.policies_schema",
    *(f"rlm.cli.{source.module}" for source in COMMANDS.values()),
    "spark_tools.audit.command",
    "spark_tools.data_source",
    "spark_tools.export.command",
    "spark_tools.reference",
    "spark_tools.repair.command",
    "spark_tools.submit.rlm_audit",
    "spark_tools.submit.rlm_export",
    "spark_tools.submit.rlm_repair",
}

# For programs and tests without a disk or a broker.
MEMORY_IMPLEMENTATIONS = {"rsm.storage.memory", "rlmm.topic.memory", "rlmm.cache.memory"}

# The modules that import an SDK (of a store, a format, an engine) or a compiler only when needed.
LAZY_IMPORTERS = {
    "rsm/storage/bindings.py",
    "spark_tools/rows/bindings.py",
    "spark_tools/schemas/bindings.py",
    "tests/services/provider.py",
}

# A shorter module whose only importer is in the same folder belongs in that importer.
MIN_LINES_WITH_ONE_IMPORTER = 40
SEPARATE_THOUGH_SHORT = {
    # Pure rules; the importer is the binding of an SDK. The S3 binding is divided in the same way.
    "rsm.storage.gcs.lifecycle",
    # A wrapper of a store, like its neighbors: the contract suite runs each wrapper separately.
    "rsm.storage.wrappers.slow",
    # Imports compiled code when needed (LAZY_IMPORTERS); the importer is pure.
    "spark_tools.rows.bindings",
}


def test_modules_when_named_then_each_name_is_a_concept() -> None:
    files = python_files(*PRODUCT_PACKAGES, *PROGRAMS, "tests")

    vague = [file.name for file in files if file.path.stem in NAMES_WITHOUT_A_CONCEPT]
    assert vague == []


def test_product_directories_when_they_hold_modules_then_are_packages() -> None:
    files = python_files(*PRODUCT_PACKAGES)

    missing = {file.name for file in files if not (file.path.parent / "__init__.py").exists()}
    assert missing == set()


def test_package_files_when_read_then_hold_a_docstring_and_reexports_only() -> None:
    packages = [file for file in python_files(*PRODUCT_PACKAGES) if _is_package(file)]

    doing_more = [file.name for file in packages if not _only_reexports(file)]
    assert doing_more == []


def test_product_modules_when_read_then_each_opens_with_a_docstring() -> None:
    files = handwritten_files(*PRODUCT_PACKAGES, *PROGRAMS)

    silent = [file.name for file in files if not file.outline.docstring]
    assert silent == []


def test_modules_when_they_look_up_a_service_then_say_what_a_run_needs() -> None:
    """A run looks up every `NEEDS` before its first test (tests.run_needs)."""
    looked_up = {f"tests.services.service.{name}" for name in ("program", "installed")}

    silent = [
        file.name
        for file in python_files("tests", "bench")
        if looked_up & set(file.imported_names()) and "NEEDS" not in _assigned(file)
    ]
    assert silent == []


def test_imports_when_inside_functions_then_only_of_lazily_chosen_bindings() -> None:
    files = handwritten_files(*PRODUCT_PACKAGES, *PROGRAMS, "tests")

    hidden = {
        f"{file.name}:{found.lineno}"
        for file in files
        if file.name not in LAZY_IMPORTERS
        for found in file.outline.imports
        if any(_spans(function, found) for function in file.outline.functions)
    }
    assert hidden == set()


def test_product_modules_when_traced_from_the_entry_points_then_none_is_dead() -> None:
    files = {file.module: file for file in python_files(*PRODUCT_PACKAGES)}

    dead = set(files) - _reachable(files, ENTRY_POINTS | MEMORY_IMPLEMENTATIONS)
    assert not dead, "\n".join(sorted(dead))


def test_short_modules_when_only_a_neighbor_imports_them_then_are_part_of_it() -> None:
    """A reader can follow one flow in few files."""
    files = {file.module: file for file in handwritten_files(*PRODUCT_PACKAGES)}
    importers = _importers(files)

    short = {
        module
        for module, file in files.items()
        if not _is_package(file)
        and file.line_count < MIN_LINES_WITH_ONE_IMPORTER
        and [_folder(each) for each in importers[module]] == [_folder(module)]
    }
    assert short == SEPARATE_THOUGH_SHORT


def _importers(files: dict[str, SourceFile]) -> dict[str, set[str]]:
    """Return, for each module, the modules that import it or names in it."""
    found: dict[str, set[str]] = {module: set() for module in files}
    for importer, file in files.items():
        for name in file.imported_names():
            module = name if name in files else _folder(name)
            if module in files:
                found[module].add(importer)
    return found


def _folder(name: str) -> str:
    return name.rpartition(".")[0]


def _reachable(files: dict[str, SourceFile], start: set[str]) -> set[str]:
    found: set[str] = set()
    waiting = [name for entry in start for name in _with_parents(entry)]
    while waiting:
        module = waiting.pop()
        if module in files and module not in found:
            found.add(module)
            for name in files[module].imported_names():
                waiting.extend(_with_parents(name))
    return found


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _spans(function: Function, statement: Import) -> bool:
    return function.lineno <= statement.lineno <= function.end_lineno


def _is_package(file: SourceFile) -> bool:
    return file.path.name == "__init__.py"


def _only_reexports(file: SourceFile) -> bool:
    has_docstring = file.outline.docstring is not None
    rest = file.parse().body[1:]
    return has_docstring and all(isinstance(node, ast.ImportFrom) or _is_all(node) for node in rest)


def _is_all(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "__all__"
    )


def _assigned(file: SourceFile) -> set[str]:
    """Return the names that a module assigns at its top level."""
    targets = (each.targets for each in file.parse().body if isinstance(each, ast.Assign))
    return {each.id for names in targets for each in names if isinstance(each, ast.Name)}
