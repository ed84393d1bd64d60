"""Scenario 122: rlm is replaced by another version, one host after another, and rolled back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.containers import local_engine
from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import CHECKOUT, HOSTS, ComposeStack, environment

pytestmark = pytest.mark.timeout(1800)
_CURRENT = "latest"
_PREVIOUS = "previous"
_BUILT_S = 900.0


@pytest.fixture
def previous_tag(stack: ComposeStack, tmp_path: Path) -> Iterator[str]:
    """The tag of the image of the previous commit; in the end, all hosts have the current one."""
    commit = _check_out_previous_commit(tmp_path)
    stack.report.append(f"Hosts were upgraded from the image of {commit}, and rolled back to it.")
    variables = {**environment(), "RLM_TAG": _PREVIOUS}
    if local_engine.SOCKET.exists():
        variables["DOCKER_HOST"] = variables["CONTAINER_HOST"] = f"unix://{local_engine.SOCKET}"
    script = str(tmp_path / "deploy" / "stack.sh")
    subprocess.run([script, "images"], env=variables, check=True, timeout=_BUILT_S)
    yield _PREVIOUS
    for number in HOSTS:
        stack.replace(f"rlm-{number}", _CURRENT)
    stack.wait_ready()


def _check_out_previous_commit(directory: Path) -> str:
    """Return its name; without history, that of the current one, whose image is another one."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "HEAD^^{commit}"],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    commit = "HEAD" if found.returncode else "HEAD^"
    archive = subprocess.run(
        ["git", "archive", commit], cwd=CHECKOUT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x"], cwd=directory, input=archive.stdout, check=True)
    _take_times_of_equal_files(directory.glob("requirements*.txt"))
    return commit


def _take_times_of_equal_files(paths: Iterable[Path]) -> None:
    """Podman compares times, too, when it looks for a layer that it has already built."""
    for path in paths:
        current = CHECKOUT / path.name
        if current.exists() and current.read_bytes() == path.read_bytes():
            shutil.copystat(current, path)


def test_rlm_when_replaced_by_the_previous_version_and_back_then_clients_lose_and_repeat_nothing(
    stack: ComposeStack, trimmed_topic: NumberedTopic, previous_tag: str
) -> None:
    current = stack.image_id("rlm-1")
    with trimmed_topic.read_steadily() as reader:
        with trimmed_topic.produced_steadily():
            for tag in (previous_tag, _CURRENT):
                for number in HOSTS:
                    reader.wait_for_more()
                    stack.replace(f"rlm-{number}", tag)
                    assert (stack.image_id(f"rlm-{number}") == current) == (tag == _CURRENT)
                    stack.wait_ready()
        reader.wait_for(trimmed_topic.expected())

    assert reader.sorted_numbers() == trimmed_topic.expected()
    trimmed_topic.wait_stored()
    assert trimmed_topic.read() == trimmed_topic.expected()
