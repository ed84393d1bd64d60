"""The operations page explains each reason that processes report; symptoms share one form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.rest.refusals import RequestRefusal
from rlm.status.problem import ProblemKind
from rlmm.spi import UnreadyReason
from tests.architecture.tree import CHECKOUT, SourceFile, handwritten_files


def test_reason_for_a_block_when_searched_in_the_operations_page_then_is_in_a_table() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text().splitlines()
    rows = [line for line in page if line.startswith("|")]
    reasons = blocked_reasons()

    assert len(reasons) > 20
    missing = {reason for reason in reasons if not any(_names(row, reason) for row in rows)}
    assert missing == set()


def test_refusal_of_a_request_when_searched_in_the_operations_page_then_is_in_its_table() -> None:
    rows = _rows_below("### A command says that the manager refused the request")

    missing = {
        each.value for each in RequestRefusal if not any(_names(row, each.value) for row in rows)
    }
    assert missing == set()


def test_metadata_when_not_ready_then_the_reason_is_in_the_table_of_the_operations_page() -> None:
    rows = _rows_below("### The metadata is not ready")

    missing = {
        each.value for each in UnreadyReason if not any(_names(row, each.value) for row in rows)
    }
    assert missing == set()


def test_end_of_a_connection_when_searched_in_the_operations_page_then_is_in_its_table() -> None:
    rows = _rows_below("### Connections through a gateway end")

    missing = {
        each.value for each in DisconnectCause if not any(_names(row, each.value) for row in rows)
    }
    assert missing == set()


def test_problem_in_the_status_when_searched_in_the_operations_page_then_is_in_its_table() -> None:
    rows = _rows_below("## Monitor with `rlm status --check`")

    missing = {
        each.value for each in ProblemKind if not any(_names(row, each.value) for row in rows)
    }
    assert missing == set()


def test_symptom_in_the_operations_page_when_read_then_has_cause_check_and_fix() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    (by_symptom,) = re.findall(r"^## By symptom$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    symptoms = by_symptom.split("\n### ")[1:]

    assert len(symptoms) > 30
    wanted = ["- Cause:", "- Check:", "- Fix:"]
    lacking = [
        symptom.partition("\n")[0]
        for symptom in symptoms
        if re.findall(r"^- (?:Cause|Check|Fix):", symptom, re.MULTILINE) != wanted
    ]
    assert lacking == []


def blocked_reasons() -> set[str]:
    """Return the reasons with which copies, trims and expiry are blocked."""
    return {reason for file in handwritten_files("rlm") for reason in _reasons(file)}


def _rows_below(heading: str) -> list[str]:
    """Return the rows of the tables between a heading and the next one."""
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    _, _, section = page.partition(f"\n{heading}\n")
    assert section, f"no heading {heading!r}"
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    return [line for line in section.splitlines() if line.startswith("|")]


def _names(row: str, reason: str) -> bool:
    return f"`{reason}`" in row or f'reason="{reason}"' in row


def _reasons(file: SourceFile) -> Iterator[str]:
    """Yield the reasons that a file passes to `Blocked(reason=…)`, as texts or constants."""
    if "Blocked" not in file.text:
        return
    nodes = list(ast.walk(file.parse()))
    texts = {
        target.id: tuple(_texts(node.value))
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Blocked":
            continue
        for keyword in node.keywords:
            if keyword.arg == "reason":
                yield from _texts(keyword.value)
                names = (n.id for n in ast.walk(keyword.value) if isinstance(n, ast.Name))
                for name in names:
                    yield from texts.get(name, ())


def _texts(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.IfExp):
        yield from _texts(value.body)
        yield from _texts(value.orelse)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
