"""Figures in the README and in prose: each is a committed result, or a setting of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.measurement import GoalOutcome, Measurement, figure_text
from bench.report.page import TEMPLATE
from bench.result_file import COMMITTED, read_results

CHECKOUT = Path(__file__).parents[3]
README_FIGURES = {
    "copy of a segment ÷ plain file copy with fsync": ("bench", "segment copy ÷ plain copy"),
    "rate of four streams ÷ rate of four copies of rolled segments": (
        "bench-streaming",
        "stream ÷ segment mode ×4",
    ),
    "producer's throughput at 50 MB/s with ÷ without copying": (
        "bench",
        "producer with ÷ without copying",
    ),
    "maximum rate of a producer with ÷ without copying": (
        "bench",
        "maximum rate of a producer with ÷ without copying",
    ),
    "maximum rate of a producer with ÷ without streaming": (
        "bench-streaming",
        "maximum rate of a producer with ÷ without streaming",
    ),
    "one consumer of trimmed data ÷ one consumer of local data": (
        "bench-gateway",
        "trimmed data ÷ local data",
    ),
    "memory of a process for the metadata of a million segments": (
        "bench-metadata",
        "1 M: memory after the rebuild",
    ),
    "Spark's rows per second and core ÷ Spark's Kafka source": (
        "bench-spark",
        "data source ÷ Kafka source, 1 core",
    ),
}
# Numbers in prose of docs/performance.md: they say how runs were made, never what was measured.
SETTINGS_IN_PROSE = {
    "# Performance": "",
    "## How fast are segments copied to a directory?": "1 GiB, 1 KiB, 64 MiB, 4 MiB, 256 MiB",
    "## How soon is a segment stored, and do producers notice?": "0.5 s, 50 MB/s",
    "## How soon is streamed data stored, and what does it cost?": "5 s, 16, 64 MiB, ×1, ×4, 5 MiB",
    "## How fast are segments copied to S3, and read back?": (
        "1 GiB, 64 MiB, ×4, ×1, 4 MiB, 10, 192 MiB"
    ),
    "## How fast can a consumer read old data?": "8, 1 GiB, 1 MiB, 16 MiB, 8 MiB",
    "## How long does the first read of old data take?": "30 ms",
    "## Do backfills disturb readers of new data?": "8",
    "## How many clients fit into a gateway?": "256 MiB",
    "## How large may the metadata grow?": "1,000, 20,000",
    "## How fast does Spark read, repair and audit?": "200, 16 MiB, 3,000 MiB, 2,500 MiB, 1,000",
    "## How fast does the command line read?": "1 GiB, 1 KiB, 4, 64 MiB",
    "## Measure yourself": "",
}
_NO_PROSE = re.compile(
    r"^```.*?^```$|^    .*$|`[^`]*`|\{\{.*?\}\}|\]\([^)]*\)|\b(?:S3|block_v1)\b",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"×?\d+(?:[.,]\d+)*(?:\s(?:[GMK]iB|[GMK]B/s|MB|ms|µs|s)\b)?")
_PART = re.compile(r"^(?=##? )", re.MULTILINE)


def test_readme_figures_when_compared_with_the_results_then_are_medians_and_missed_goals() -> None:
    section = (CHECKOUT / "README.md").read_text().partition("\n## Figures\n")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section.partition("\n## ")[0], re.MULTILINE)

    assert dict(rows) == {
        label: _with_unit(_figure(bench, metric)) + _missed(_figure(bench, metric))
        for label, (bench, metric) in README_FIGURES.items()
    }
    assert len(rows) == len(README_FIGURES)


def test_readme_machine_when_compared_with_the_results_then_is_that_of_all() -> None:
    processors = {each.environment.machine.processors for each in read_results(COMMITTED).values()}

    assert processors == {2}
    assert "\nMedians on two cores " in (CHECKOUT / "README.md").read_text()


@pytest.mark.parametrize(
    "page", ["docs/faq.md", "docs/gateway.md", "docs/sizing.md", "docs/streaming.md"]
)
def test_page_when_it_quotes_results_then_they_are_the_committed_ones(page: str) -> None:
    p99 = "its p99 latency with ÷ without"
    copying, streaming = (_figure(bench, p99).value for bench in ("bench", "bench-streaming"))
    rate = "maximum rate of a producer with ÷ without"
    copies = _figure("bench", f"{rate} copying").value
    streams = _figure("bench-streaming", f"{rate} streaming").value
    mode = "mode: CPU per GB"
    stream_cpu, segment_cpu = (
        _figure("bench-streaming", f"{each} {mode}").value for each in ("stream", "segment")
    )
    memory = figure_text(_figure("bench-metadata", "1 M: memory after the rebuild").value)
    relayed = "gateway CPU: relayed, 8 consumers"
    core = 1 / _figure("bench-gateway", relayed).value
    core_large = 1 / _figure("bench-gateway", f"{relayed}, large fetches").value
    quoted = {
        "docs/faq.md": [
            f"was {copying:.2f} times as high with copies, and {streaming:.2f} times with",
            f"was {copies:.2f} times as high with copies, and {streams:.2f} times with",
            f"1 million take {memory} MiB of memory of a process",
        ],
        "docs/gateway.md": [f"up to {core:.1f} GB/s from the broker, or {core_large:.0f} GB/s if"],
        "docs/streaming.md": [
            f"needs {stream_cpu / segment_cpu:.1f} times the processor time of copies",
            f"lowers a producer's maximum rate to {streams:.2f} of",
        ],
        "docs/sizing.md": [f"relays up to {core:.1f} GB/s from the broker"],
    }

    text = " ".join((CHECKOUT / page).read_text().split())

    assert [each for each in quoted[page] if each not in text] == []


def test_template_when_its_prose_has_numbers_then_they_are_settings_of_runs() -> None:
    """A result in prose is a placeholder: a typed number stays when the results change."""
    parts = [part.partition("\n") for part in _PART.split(TEMPLATE.read_text()) if part]

    found = {heading: _numbers(prose) for heading, _, prose in parts}

    assert found == {
        heading: set(filter(None, settings.split(", ")))
        for heading, settings in SETTINGS_IN_PROSE.items()
    }


def test_numbers_when_prose_has_typed_results_then_all_are_found() -> None:
    prose = "It folded 62,800 at `10 M`, in 319 s\nwith {{median of bench: 1 M}} and ×4: 1.24.\n"

    assert _numbers(prose) == {"62,800", "319 s", "×4", "1.24"}


def _numbers(prose: str) -> set[str]:
    found = _NUMBER.findall(_NO_PROSE.sub("", prose))
    return {" ".join(number.split()) for number in found}


def _figure(bench: str, metric: str) -> Measurement:
    return read_results(COMMITTED)[bench].figure(metric)


def _missed(figure: Measurement) -> str:
    """Return the mark of a missed goal, which the README must show with the figure."""
    if figure.goal is None or figure.goal.outcome(figure.value) is GoalOutcome.MET:
        return ""
    return f" (goal {figure.goal} **missed**)"


def _with_unit(figure: Measurement) -> str:
    text = figure_text(figure.value)
    return text if figure.unit == "ratio" else f"{text} {figure.unit}"
