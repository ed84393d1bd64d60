"""The committed protobuf modules equal the pinned compiler's output for the .proto files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import CHECKOUT, PRODUCT_PACKAGES

GENERATED = ("*_pb2.py", "*_pb2.pyi")


def test_protobuf_modules_when_generated_again_then_equal_the_committed(tmp_path: Path) -> None:
    protos = [path for root in PRODUCT_PACKAGES for path in (CHECKOUT / root).rglob("*.proto")]
    assert protos

    _generate(sorted(protos), tmp_path)

    assert _generated_below(CHECKOUT) == _generated_below(tmp_path)


def _generate(protos: list[Path], directory: Path) -> None:
    names = [path.relative_to(CHECKOUT).as_posix() for path in protos]
    outputs = [f"--python_out={directory}", f"--pyi_out={directory}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", *outputs, *names]
    subprocess.run(command, cwd=CHECKOUT, check=True)


def _generated_below(root: Path) -> dict[str, str]:
    found = (
        path
        for package in PRODUCT_PACKAGES
        for pattern in GENERATED
        for path in (root / package).rglob(pattern)
    )
    return {path.relative_to(root).as_posix(): path.read_text() for path in found}
