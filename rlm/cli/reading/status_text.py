"""Renders the status for people: problems first, then totals, then narrow tables. Pure.

A separate table shows how much of each streamed log is not stored yet.

No line exceeds the width, except for a command with an argument that is wider. Names that are too
long lose their middle; commands contain the full names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlm.cli.invocation.amounts import age_text, counted, size_text
from rlm.cli.terminal.lines import command_lines, fitted
from rlm.cli.terminal.table import TextColumn, TextRow, shortened, table_lines
from rlm.status.cluster_status import PartitionStatus
from rlm.status.cluster_totals import StatusTotals, rows_by_topic, total
from rlm.status.problem import Problem
from rlmm.events.policy import PolicyState

MAX_PROBLEMS = 20
MAX_PARTITION_ROWS = 20
"""If the whole cluster has more partitions, the table has one row per topic."""

_SUMS = ("stored", "segments", "not stored", "oldest")
_OF_STREAM = ("open segments", "size", "offsets not stored", "oldest")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """Represents the options that commands need to reach this cluster, as the user types them."""

    rlm: str
    kafka: str

    def complete(self, command: str) -> str:
        """Return a command of `rlm` or of Kafka with its options."""
        if command.startswith("rlm "):
            return f"{command} {self.rlm}".rstrip()
        program, space, rest = command.partition(" ")
        return f"{program} {self.kafka}{space}{rest}"


def status_text(
    rows: Sequence[PartitionStatus],
    problems: Sequence[Problem],
    *,
    options: CommandOptions,
    width: int,
    by_topic: bool,
) -> str:
    """Return the whole text, without a line end after the last line."""
    lines = [*_problem_lines(problems, options, width), "", *_total_lines(total(rows))]
    if rows:
        troubled = {tip for each in problems for tip in each.partitions}
        states = [_state(row, has_problem=row.topic_id_partition in troubled) for row in rows]
        table = _by_topic(rows, states) if by_topic else _by_partition(rows, states)
        name, count = ("topic", "partitions") if by_topic else ("partition", "leader")
        columns = (*_columns(name, count, *_SUMS), TextColumn(name="state"))
        lines += ["", *table_lines(columns, table, width=width)]
    streams = _streams(rows, by_topic=by_topic)
    if streams:
        lines += ["", *table_lines(_columns("stream", *_OF_STREAM), streams, width=width)]
    return "\n".join(lines)


def _problem_lines(
    problems: Sequence[Problem], options: CommandOptions, width: int
) -> Iterator[str]:
    if not problems:
        yield "no problems"
        return
    yield counted(len(problems), "problem")
    for problem in problems[:MAX_PROBLEMS]:
        yield ""
        yield _subject(problem, width)
        yield from fitted([f"  {problem.reason}"], width, hanging=0)
        yield from command_lines(options.complete(problem.command), width)
    if len(problems) > MAX_PROBLEMS:
        yield ""
        more = len(problems) - MAX_PROBLEMS
        yield f"{counted(more, 'more problem')}: --json lists all problems"


def _subject(problem: Problem, width: int) -> str:
    """Return what a problem affects.

    For a problem of a process, returns the process and the number of partitions that it leads. For
    any other problem, returns the first partition and the number of other partitions.
    """
    tips = problem.partitions
    if problem.process:
        return f"{problem.process}{_counted(', which leads', len(tips)) if tips else ''}"
    more = _counted(" and", len(tips) - 1, "more ") if len(tips) > 1 else ""
    return f"{shortened(f'{tips[0].topic}:{tips[0].partition}', width - len(more))}{more}"


def _counted(start: str, count: int, kind: str = "") -> str:
    return f"{start} {counted(count, f'{kind}partition')}"


def _total_lines(totals: StatusTotals) -> Iterator[str]:
    topics = counted(totals.topics, "topic")
    yield f"{topics},{_counted('', totals.partitions)}"
    yield f"stored      {_amount(totals.stored_bytes, totals.stored_segments)}"
    oldest = totals.oldest_unstored_age_ms
    age = "" if oldest is None else f", the oldest for {age_text(oldest)}"
    yield f"not stored  {_amount(totals.lag_bytes, totals.lag_segments)}{age}"
    if totals.unknown_lag_partitions:
        yield f"            unknown for{_counted('', totals.unknown_lag_partitions)}"


def _amount(size_bytes: int, segments: int) -> str:
    return f"{size_text(size_bytes)} in {counted(segments, 'segment')}"


def _columns(name: str, *numbers: str) -> Sequence[TextColumn]:
    others = (TextColumn(name=each, is_number=True) for each in numbers)
    return (TextColumn(name=name, is_shortened=True), *others)


def _by_partition(rows: Sequence[PartitionStatus], states: Sequence[str]) -> Sequence[TextRow]:
    found = []
    for row, state in zip(rows, states, strict=True):
        tip = row.topic_id_partition
        leader = "none" if row.leader_id is None else str(row.leader_id)
        cells = (f"{tip.topic}:{tip.partition}", leader, *_sums(total([row])), state)
        found.append(TextRow(cells=cells))
    return found


def _by_topic(rows: Sequence[PartitionStatus], states: Sequence[str]) -> Sequence[TextRow]:
    found = []
    of_tip = {row.topic_id_partition: state for row, state in zip(rows, states, strict=True)}
    for topic, of_topic in rows_by_topic(rows).items():
        distinct = {of_tip[row.topic_id_partition] for row in of_topic}
        state = next(each for each in _STATES if each in distinct)
        found.append(TextRow(cells=(topic, str(len(of_topic)), *_sums(total(of_topic)), state)))
    return found


def _streams(rows: Sequence[PartitionStatus], *, by_topic: bool) -> Sequence[TextRow]:
    """Return the progress of each streamed partition or topic, as the managers report it."""
    streamed = [row for row in rows if row.report is not None and row.report.stream is not None]
    if by_topic:
        of_topics = rows_by_topic(streamed).items()
        return [TextRow(cells=(topic, *_stream_cells(found))) for topic, found in of_topics]
    names = (f"{tip.topic}:{tip.partition}" for tip in (row.topic_id_partition for row in streamed))
    return [
        TextRow(cells=(name, *_stream_cells([row])))
        for name, row in zip(names, streamed, strict=True)
    ]


def _stream_cells(rows: Sequence[PartitionStatus]) -> tuple[str, ...]:
    streams = [row.report.stream for row in rows if row.report and row.report.stream]
    sizes = [each.size_bytes for each in streams if each.size_bytes is not None]
    unstored = [row.unstored_offsets for row in rows]
    ages = [each.unstored_ms for each in streams if each.unstored_ms is not None]
    return (
        str(len(sizes)),
        size_text(sum(sizes)),
        "?" if None in unstored else str(sum(each or 0 for each in unstored)),
        age_text(max(ages)) if ages else "-",
    )


def _sums(totals: StatusTotals) -> tuple[str, ...]:
    oldest = totals.oldest_unstored_age_ms
    is_unknown = totals.unknown_lag_partitions > 0
    return (
        size_text(totals.stored_bytes),
        str(totals.stored_segments),
        "?" if is_unknown else size_text(totals.lag_bytes),
        ("?" if is_unknown else "-") if oldest is None else age_text(oldest),
    )


_PROBLEM, _NOT_TIERED, _OK = "PROBLEM", "not tiered", "ok"
# If the partitions of a topic differ, its row shows the first of these states.
_STATES = (
    _PROBLEM,
    PolicyState.ENABLING.name,
    PolicyState.DISABLING.name,
    PolicyState.DISABLED.name,
    _NOT_TIERED,
    _OK,
)


def _state(row: PartitionStatus, *, has_problem: bool) -> str:
    if has_problem:
        return _PROBLEM
    if row.policy_state is None:
        return _NOT_TIERED
    return _OK if row.policy_state == PolicyState.ACTIVE.name else row.policy_state
