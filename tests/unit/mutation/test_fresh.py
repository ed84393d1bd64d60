from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.mutation.fresh import survives_import
from tests.mutation.mutants import Mutant
from tests.mutation.processes import Outcome, Task, run_tasks

FILE = "tests/mutation/loaded_by_no_test.py"
UNIMPORTABLE = Mutant(
    file=FILE,
    function="<module>",
    line=1,
    kind="statement",
    before="pass",
    after="raise",
    lines=(1, 1),
    function_lines=(0, 0),
    source="raise RuntimeError('a table is empty')",
)


def test_mutant_when_its_module_cannot_be_imported_then_killed_by_that(tmp_path: Path) -> None:
    """A conftest may import the module; pytest then only reports a wrong command line."""
    task = Task(
        key=1,
        run=lambda remark: survives_import(UNIMPORTABLE, ["tests/a.py::test_a"], remark),
        cpu_s=60,
    )

    (ended,) = run_tasks([task], jobs=1, directory=tmp_path)

    assert (ended.outcome, ended.remark) == (Outcome.KILLED, f"import of {FILE}")


def test_mutant_when_a_conftest_cannot_be_imported_then_killed_by_that(tmp_path: Path) -> None:
    """The mutant's own import succeeds; only a conftest that uses the module fails."""
    (tmp_path / "conftest.py").write_text(
        "from tests.mutation.loaded_by_no_test import LIMIT\n"
        "if not LIMIT:\n"
        "    raise ValueError('no limit')\n"
    )
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    mutant = replace(UNIMPORTABLE, before="LIMIT = 1", after="LIMIT = 0", source="LIMIT = 0\n")
    task = Task(
        key=1,
        run=lambda remark: survives_import(mutant, [f"{tmp_path}/test_a.py::test_a"], remark),
        cpu_s=60,
    )

    (ended,) = run_tasks([task], jobs=1, directory=tmp_path)

    assert ended.outcome is Outcome.KILLED
    assert ended.remark.startswith("import of a conftest: ValueError: no limit")
