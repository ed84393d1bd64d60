"""The rules of the page's style for phones and paper, without a browser."""

from __future__ import annotations

import re

from spark_tools.audit.page.report import report_page
from spark_tools.audit.page.style import STYLE
from tests.unit.spark_tools.audit.page.parsed_page import parsed
from tests.unit.spark_tools.audit.page.test_report import FACTS, ONE_OF_EACH, TOTALS

PHONE = "screen and (max-width:640px)"
PAPER = "print"
_ROOT = "*"


def block_of(media: str) -> str:
    """Return the text of the only block of rules for that medium."""
    (block,) = re.findall(rf"@media {re.escape(media)}\{{\n(.*?)\n\}}", STYLE, re.DOTALL)
    return str(block)


def rules_of(media: str) -> dict[str, dict[str, str]]:
    """Return the declarations by selector; those of several rules are joined."""
    rules: dict[str, dict[str, str]] = {}
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", block_of(media)):
        declarations = dict(each.split(":", 1) for each in body.split(";") if each.strip())
        for selector in selectors.split(","):
            rules.setdefault(selector.strip(), {}).update(
                {name.strip(): value.strip() for name, value in declarations.items()}
            )
    return rules


def test_style_when_on_a_phone_then_each_row_is_a_block_of_labeled_cells() -> None:
    rules = rules_of(PHONE)

    for element in ("table", "caption", "tbody", "tr", "td", "th"):
        assert (rules[element]["display"], rules[element]["width"]) == ("block", "100%")
    for cell in ("tbody th", "tbody td"):
        assert rules[cell]["display"] == "grid"
        assert rules[f"{cell}::before"]["content"] == "attr(data-label)"
        assert rules[cell]["white-space"] == "normal"  # long numbers do not widen the page
    assert rules["tbody td.n"]["text-align"] == "left"
    assert rules["tbody td:not(.n)>span"]["min-width"] == "0"


def test_style_when_on_a_phone_then_titles_are_out_of_sight_but_read_aloud() -> None:
    titles = rules_of(PHONE)["thead"]

    assert (titles["position"], titles["clip-path"]) == ("absolute", "inset(50%)")
    assert "display" not in titles
    assert "visibility" not in titles


def test_page_when_opened_on_a_phone_then_it_is_as_wide_as_the_screen() -> None:
    page = parsed(report_page(FACTS, TOTALS, ONE_OF_EACH))

    widths = [
        each.attributes["content"]
        for each in page.every("meta")
        if each.attributes.get("name") == "viewport"
    ]
    assert widths == ["width=device-width, initial-scale=1"]


def test_style_when_printed_then_rows_stay_whole_and_each_sheet_has_the_titles() -> None:
    rules = rules_of(PAPER)

    assert rules["tr"]["break-inside"] == rules["header"]["break-inside"] == "avoid"
    assert rules["thead"]["display"] == "table-header-group"
    for heading in ("thead", "caption", "h2"):
        assert rules[heading]["break-after"] == "avoid"
    assert rules["body"]["max-width"] == "none"


def test_style_when_printed_then_signs_by_color_are_kept_and_commands_need_none() -> None:
    rules = rules_of(PAPER)

    assert rules[_ROOT]["print-color-adjust"] == "exact"
    assert rules["code"]["background"] == "none"
    assert rules["code.command"]["border-left"].startswith("1pt solid")


def test_style_when_for_a_medium_then_the_page_has_what_its_rules_are_for() -> None:
    page = parsed(report_page(FACTS, TOTALS, ONE_OF_EACH))
    tags = {each.tag for each in page.every()}
    classes = {each.attributes.get("class") for each in page.every()}

    for media in (PHONE, PAPER):
        for selector in rules_of(media).keys() - {_ROOT, "@page"}:
            plain = re.sub(r"::before|:not\(.*?\)", "", selector)
            assert set(re.findall(r"(?<![.\w])[a-z]\w*", plain)) <= tags, selector
            assert set(re.findall(r"\.(\w+)", plain)) <= classes, selector
