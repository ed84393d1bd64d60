from __future__ import annotations

import pytest

from bench.measurement import at_least, at_most, of_runs
from bench.report.page import PAGE, TEMPLATE, page_of
from bench.result_file import COMMITTED, read_results
from tests.unit.bench.example_results import example_results

STORAGE = example_results(
    "bench-storage",
    of_runs("copy", [1_234.5, 1_000.0, 2_000.0], unit="MiB/s"),
    of_runs("copy ÷ plain", [0.91, 0.92, 0.93], unit="ratio", goal=at_least(0.9, floor=0.8)),
    of_runs("read ÷ plain", [0.81], unit="ratio", goal=at_least(0.9, floor=0.8)),
    of_runs("first ÷ plain", [0.79], unit="ratio", goal=at_least(0.9, floor=0.8)),
    of_runs("memory", [301.0], unit="MiB", goal=at_most(300)),
    of_runs("not on the page", [1.0], unit="s"),
)
QUESTION = """\
## How fast?

By copies.

```results bench-storage
copy
copy ÷ plain
read ÷ plain
first ÷ plain
memory
```

And so on.

"""


def test_committed_page_when_generated_from_the_committed_results_then_is_the_same() -> None:
    """A part without committed results is not compared: only the page has its figures."""
    page = PAGE.read_text()

    assert page_of(TEMPLATE.read_text(), read_results(COMMITTED), page) == page


def test_page_when_generated_then_a_row_has_one_figure_with_range_goal_and_outcome() -> None:
    page = page_of(QUESTION, {"bench-storage": STORAGE}, "")

    assert page == (
        "## How fast?\n\nBy copies.\n\n"
        "| figure | unit | median | min – max | runs | goal | |\n"
        "|---|---|---|---|---|---|---|\n"
        "| copy | MiB/s | 1,234 | 1,000 – 2,000 | 3 |  |  |\n"
        "| copy ÷ plain | ratio | 0.92 | 0.91 – 0.93 | 3 | ≥ 0.9 | met |\n"
        "| read ÷ plain | ratio | 0.81 |  | 1 | ≥ 0.9 | **missed**, within the floor of 0.8 |\n"
        "| first ÷ plain | ratio | 0.79 |  | 1 | ≥ 0.9 | **missed**, beyond the floor of 0.8 |\n"
        "| memory | MiB | 301 |  | 1 | ≤ 300 | **missed** |\n\n"
        "And so on.\n\n"
        "Measured by `make bench-storage` on 2026-01-31 at commit `0123456789ab`. "
        "Both ways alternate. [All runs](../bench/results/bench-storage.json).\n"
    )


def test_page_when_prose_names_figures_then_has_their_median_and_range() -> None:
    """A figure's name may continue on the next line."""
    template = (
        "## How fast?\n\nIt was {{median of bench-storage: copy}}, "
        "{{range of bench-storage: copy ÷\nplain}} of the plain copy.\n"
    )

    page = page_of(template, {"bench-storage": STORAGE}, "")

    assert "It was 1,234, 0.91 – 0.93 of the plain copy.\n" in page


def test_page_when_prose_names_a_benchmark_without_results_then_the_part_stays() -> None:
    template = "## How fast?\n\nIt was {{median of bench-storage: copy}}.\n"

    assert page_of(template, {}, "## How fast?\n\nFast.\n") == "## How fast?\n\nFast.\n"


def test_page_when_a_part_has_no_results_then_it_stays_as_it_is() -> None:
    template = QUESTION + "## How small?\n\n```results bench\nsize\n```\n"
    current = "## How small?\n\nThe size is 7.\n\n## How fast?\n\nFast.\n"

    none = page_of(template, {}, current)
    one = page_of(template, {"bench-storage": STORAGE}, current)

    assert none == "## How fast?\n\nFast.\n\n## How small?\n\nThe size is 7.\n"
    assert "1,234" in one
    assert one.endswith("\n\n## How small?\n\nThe size is 7.\n")


def test_page_when_a_new_part_has_no_results_then_refused() -> None:
    with pytest.raises(ValueError, match=r"'## How fast\?': there are no results of bench-storage"):
        page_of(QUESTION, {}, "## How small?\n")


def test_page_when_results_lack_a_figure_then_refused() -> None:
    results = example_results("bench-storage", STORAGE.measurements[0])

    with pytest.raises(ValueError, match=r"bench-storage\.json has no 'copy ÷ plain'"):
        page_of(QUESTION, {"bench-storage": results}, "")


def test_environments_when_all_results_exist_then_each_has_a_column() -> None:
    template = "# Figures\n\n```environments\n```\n\n## More\n\n```results bench\nsize\n```\n\n"
    size = of_runs("size", [7.0], unit="bytes")
    results = {"bench": example_results("bench", size), "bench-storage": STORAGE}

    page = page_of(template + QUESTION, results, "")

    for row in (
        "|  | `bench` | `bench-storage` |",
        "| processors | 2 | 2 |",
        "| memory, GiB | 24 | 24 |",
        "| compiled with PGO | yes | yes |",
        "| compiled with LTO | no | no |",
        "| 10 million additions, s | 0.51 | 0.51 |",
        "| Java | 17.0.15 | 17.0.15 |",
    ):
        assert f"{row}\n" in page


def test_environments_when_results_of_one_benchmark_are_missing_then_stay_as_they_are() -> None:
    template = "# Figures\n\n```environments\n```\n\n" + QUESTION
    current = "# Figures\n\nOn two cores.\n\n## How fast?\n\nFast.\n"

    assert page_of(template, {}, current) == current
