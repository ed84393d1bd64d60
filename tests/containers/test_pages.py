"""The pages about containers, followed line by line: each command prints what the page shows."""

from __future__ import annotations

import pytest

from tests.containers.documented_page import follow
from tests.containers.stack import CHECKOUT, ComposeStack

# The first test also waits for the images, which may have to be built.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="package")
def quick_start_commands(stack: ComposeStack) -> int:
    """The number of the quick start's commands, which were followed."""
    return follow(CHECKOUT / "docs" / "quickstart-containers.md", stack.printed)


@pytest.mark.usefixtures("produced_topic")
def test_quick_start_page_when_followed_then_prints_what_it_shows(
    quick_start_commands: int,
) -> None:
    assert quick_start_commands == 8


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("quick_start_commands", "spark_cluster")
def test_spark_page_when_followed_then_spark_audits_repairs_and_exports_what_is_stored(
    stack: ComposeStack,
) -> None:
    """The jobs run on a standalone cluster, next to the brokers and the store of the stack."""
    assert follow(CHECKOUT / "docs" / "spark-containers.md", stack.printed) == 9
