"""The audit's page, as it is parsed: what operators read, and that no name breaks out of it."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm.cli.main import build_app
from spark_tools.audit.command import command_parser as audit_parser
from spark_tools.audit.findings import DATA_LOSS, Finding, FindingKind
from spark_tools.audit.page.facts import AuditFacts
from spark_tools.audit.page.readable import Price
from spark_tools.audit.page.report import report_page
from spark_tools.audit.totals import TopicTotals
from spark_tools.repair.command import command_parser as repair_parser
from tests.example_counts import examples
from tests.unit.spark_tools.audit.page.parsed_page import Element, parsed, table_of

GIB = 1 << 30
FACTS = AuditFacts(
    cluster_id="4L6g3nShT-eMCtK",
    store="s3://bucket/tiered",
    metadata_topic="__remote_log_segment_metadata",
    metadata_positions={0: 17, 1: 0, 2: 5},
    grace_ms=86_400_000,
    checksums_read=False,
    started_ms=1_700_000_000_000,
    took_ms=754_000,
    price=Price(per_gib_month=0.02, currency="EUR"),
    config="/etc/rlm.properties",
)
TOTALS = (
    TopicTotals(
        topic="orders",
        partitions_count=12,
        segments_count=8_123,
        stored_bytes=512 * GIB,
        findings_count=3,
    ),
)
_NAMES = st.text(
    st.sampled_from("<>&\"'`/=\\ \0\n\r\t\u202e\u2028\ufeff\ud800é😀abc;-$(){}") | st.characters(),
    max_size=30,
)


def finding(kind: FindingKind, **fields: Any) -> Finding:
    given: dict[str, Any] = {"topic": "orders", "partition": 3, "segment_id": "orders-id:3:Seg"}
    return Finding(kind=kind.value, **given | fields)


def lost(start_offset: int, end_offset: int, *, partition: int = 3, **fields: Any) -> Finding:
    return finding(
        FindingKind.MISSING,
        partition=partition,
        start_offset=start_offset,
        end_offset=end_offset,
        **{"object_key": f"tiered/{start_offset}.log", **fields},
    )


ONE_OF_EACH = tuple(
    finding(kind, start_offset=5, end_offset=9, object_key=f"key of {kind.value}", length_bytes=GIB)
    for kind in FindingKind
)


def page_of(*findings: Finding, facts: AuditFacts = FACTS) -> Element:
    return parsed(report_page(facts, TOTALS, findings))


def heading_of(page: Element) -> str:
    (heading,) = page.every("h1")
    return heading.text


def test_page_when_nothing_is_lost_then_that_is_its_first_sentence() -> None:
    page = page_of(finding(FindingKind.ORPHAN, object_key="o"))

    assert heading_of(page) == "No data is missing or damaged."
    assert page.every("section")[0].text == "Data loss None was found."


@pytest.mark.parametrize(
    ("losses", "sentence"),
    [
        ([lost(0, 10)], "Data is missing or damaged: 1 range in 1 partition."),
        (
            [lost(10, 20), lost(0, 10), lost(5, 8)],
            "Data is missing or damaged: 1 range in 1 partition.",
        ),
        ([lost(0, 10), lost(11, 20)], "Data is missing or damaged: 2 ranges in 1 partition."),
        (
            [lost(0, 10), lost(5, 20, partition=4), lost(30, 40, topic="payments")],
            "Data is missing or damaged: 3 ranges in 3 partitions.",
        ),
    ],
)
def test_page_when_data_is_lost_then_it_counts_ranges_and_partitions(
    losses: list[Finding], sentence: str
) -> None:
    page = page_of(*losses)

    assert heading_of(page) == sentence
    assert sentence in page.every("title")[0].text


def test_page_when_data_is_lost_then_each_loss_before_anything_else_with_its_next_step() -> None:
    gap = finding(FindingKind.GAP, partition=0, start_offset=88, end_offset=92)

    page = page_of(finding(FindingKind.ORPHAN, object_key="o"), lost(1_000, 2_000), gap)

    titles = [each.text for each in page.every("h2")]
    assert titles == ["Data loss", "Housekeeping", "Topics", "About this audit"]
    first, second = table_of(page.every("section")[0], "Losses").rows()
    assert first[:5] == ["Nothing is stored", "orders", "0", "[88, 92)", "–"]
    assert "rlm explain orders:0 88 --config /etc/rlm.properties" in first[5]
    assert second[:5] == ["Object is missing", "orders", "3", "[1000, 2000)", "tiered/1000.log"]
    assert "rlm topic resolve orders:3 --lost-segment=Seg --dry-run" in second[5]


def test_page_when_there_is_housekeeping_then_each_kind_has_size_price_and_what_to_do() -> None:
    orphans = [
        finding(FindingKind.ORPHAN, object_key=str(n), length_bytes=GIB * n) for n in range(1, 4)
    ]

    page = page_of(*orphans, finding(FindingKind.DANGLING_DELETE))

    section = page.every("section")[1]
    first, second = table_of(section, "What can be cleaned up").rows()
    assert first[0].startswith("Orphans ")
    assert first[1:4] == ["3", "6.0 GiB", "0.12 EUR"]
    assert "rlm-audit --config /etc/rlm.properties --delete --yes" in first[4]
    assert second[1:4] == ["1", "–", "–"]
    largest_first = [row[0] for row in table_of(section, "Orphans").rows()]
    assert largest_first == ["3", "2", "1"]


@pytest.mark.parametrize("kind", FindingKind)
def test_page_when_of_any_kind_then_it_is_shown_with_its_object(kind: FindingKind) -> None:
    page = page_of(finding(kind, object_key="the-object", start_offset=5, end_offset=9))

    location = 0 if kind in DATA_LOSS else 1
    assert "the-object" in page.every("section")[location].text
    assert "the-object" not in page.every("section")[1 - location].text


def test_page_when_made_then_it_says_what_was_audited() -> None:
    page = page_of()

    facts = dict(
        zip(
            (each.text for each in page.every("dt")),
            (each.text for each in page.every("dd")),
            strict=True,
        )
    )
    assert facts == {
        "Cluster id": "4L6g3nShT-eMCtK",
        "Store": "s3://bucket/tiered",
        "Metadata topic": "__remote_log_segment_metadata",
        "Metadata position": "next offset by partition: 0: 17, 2: 5 (1 partition empty)",
        "Started": "2023-11-14 22:13:20 UTC",
        "Took": "12 min 34 s",
        "Grace period": "1 d",
        "Checksums": "not read",
        "Price": "0.02 EUR for 1 GiB a month",
        "All findings": "not written (--output)",
    }
    (row,) = table_of(page, "Stored data").rows()
    assert row == ["orders", "12", "8,123", "512.0 GiB", "10.24 EUR", "3"]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (FACTS, "Objects were not read"),
        (FACTS, "rlm-audit --config /etc/rlm.properties --verify-checksums"),
        (FACTS, "younger than 1 d"),
        (replace(FACTS, checksums_read=True), "The checksum of every object of finished segments"),
        (replace(FACTS, grace_ms=0), "unfinished work are shown at any age"),
        (replace(FACTS, config=None), "--config rlm.properties"),
    ],
)
def test_page_when_made_then_its_verdict_says_what_limits_it(facts: AuditFacts, said: str) -> None:
    assert said in page_of(facts=facts).every("header")[0].text


def test_page_when_its_commands_are_copied_then_their_parsers_take_them() -> None:
    page = page_of(*ONE_OF_EACH)

    commands = {
        each.text for each in page.every("code") if each.attributes.get("class") == "command"
    }
    programs = {shlex.split(command)[0] for command in commands}
    assert programs == {"rlm", "rlm-audit", "rlm-repair"}
    for command in commands:
        _require_parsed(*shlex.split(command))


def _require_parsed(program: str, *arguments: str) -> None:
    """Parse the command; raises SystemExit or a typer error if the program would refuse it."""
    parsers: dict[str, argparse.ArgumentParser] = {
        "rlm-audit": audit_parser(),
        "rlm-repair": repair_parser(),
    }
    if program in parsers:
        parsers[program].parse_args(arguments)
        return
    command: Any = typer.main.get_command(build_app())
    words, context = list(arguments), None
    while hasattr(command, "get_command"):
        context = command.make_context("rlm", [words[0]], parent=context)
        command = command.get_command(context, words.pop(0))
        assert command is not None
    command.make_context("rlm", words, parent=context)


@settings(max_examples=examples(1 / 2))
@example(names=["</td><script>alert(1)</script>"] * 6)
@example(names=["'\"><img src=x onerror=alert(1)>", "&lt;", "\0\u202e", "</style>", "--", "`$(x)`"])
@given(names=st.lists(_NAMES, min_size=6, max_size=6))
def test_page_when_names_are_hostile_then_they_are_text(names: list[str]) -> None:
    def page_with(*used: str) -> str:
        topic, key, segment, detail, store, config = used
        named = [
            replace(each, topic=topic, object_key=key, segment_id=segment, detail=detail)
            for each in ONE_OF_EACH
        ]
        facts = replace(FACTS, store=store, config=config or None, output=store or None)
        return report_page(facts, [replace(TOTALS[0], topic=topic)], named)

    page = page_with(*names)
    found, plain = parsed(page), parsed(page_with(*("x" if each else "" for each in names)))

    assert _without_words(found) == _without_words(plain)
    assert page.encode("utf-8").decode("utf-8") == page
    assert all(each.isprintable() or each == "\n" for each in page)
    shown = (names[location] for location in (0, 1, 3, 4))  # a segment is shown by its id alone
    assert all(not each.isprintable() or " ".join(each.split()) in found.text for each in shown)


def _without_words(page: Element) -> list[tuple[str, tuple[str, ...]]]:
    """Return the page's elements and the names of their attributes, except for commands."""
    return [
        (each.tag, tuple(each.attributes))
        for each in page.every()
        if not (each.tag == "span" and not each.attributes)
    ]


def test_page_when_opened_then_it_runs_and_loads_nothing() -> None:
    text = report_page(FACTS, TOTALS, ONE_OF_EACH)
    page = parsed(text)

    tags = {each.tag for each in page.every()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "a", "base"}
    attributes = {name for each in page.every() for name in each.attributes}
    assert not attributes & {"src", "href", "srcset", "action", "background"}
    assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import", text)
    policies = [
        each.attributes["content"]
        for each in page.every("meta")
        if each.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_page_when_read_aloud_then_headings_captions_and_row_titles_are_there() -> None:
    page = page_of(*ONE_OF_EACH)

    assert page.every("html")[0].attributes["lang"] == "en"
    assert len(page.every("h1")) == 1
    for table in page.every("table"):
        assert table.every("caption")[0].text
        assert {each.attributes["scope"] for each in table.every("th")} == {"col", "row"}
        titles = [each.text for each in table.every("thead")[0].every("th")]
        for row in table.every("tbody")[0].every("tr"):
            cells = [each for each in row.parts if isinstance(each, Element)]
            assert [each.attributes["data-label"] for each in cells] == titles
            assert cells[0].tag == "th"


def test_page_when_there_is_very_much_then_it_is_short_and_says_where_the_rest_is() -> None:
    many = 5_000
    findings = [
        *(lost(2 * n, 2 * n + 1) for n in range(many)),
        *(finding(FindingKind.ORPHAN, object_key=f"o{n}", length_bytes=n) for n in range(many)),
    ]
    totals = [replace(TOTALS[0], topic=f"t{n}") for n in range(5_000)]
    facts = replace(FACTS, metadata_positions=dict.fromkeys(range(5_000), 1))

    text = report_page(facts, totals, findings)

    assert len(text) < 1_000_000
    page = parsed(text)
    assert heading_of(page) == "Data is missing or damaged: 5,000 ranges in 1 partition."
    assert "And 4,800 more. rlm-audit … --output DIR writes all" in page.text
    assert "And 4,980 more." in page.text
    assert "And 4,800 smaller topics." in page.text
    assert "and 4,900 more partitions" in page.text
    written = parsed(report_page(replace(facts, output="/audit"), totals, findings))
    assert "And 4,800 more. All are in /audit/findings ." in written.text
