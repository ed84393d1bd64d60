"""The described options are those that the data source accepts, with their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools import connection
from spark_tools.cluster_topics import MAX_TIMEOUT_MS
from spark_tools.option_values import OptionType, SourceOption
from spark_tools.reading.options import PREFIXES, ReadOptions
from spark_tools.reading.source_options import CONNECTION_OPTIONS, READ_OPTIONS, TIMEOUT
from spark_tools.schemas.decode_options import (
    DECODE_OPTIONS,
    DECODED_COLUMNS,
    REGISTRY_OPTIONS,
    REGISTRY_PREFIX,
)

DESCRIBED = (*READ_OPTIONS, *DECODE_OPTIONS, *REGISTRY_OPTIONS)
TOPICS = ("subscribe", "subscribePattern", "assign")
DEFAULTS = [option for option in DESCRIBED if option.default]
AMOUNTS = [
    option
    for option in DESCRIBED
    if option.type in (OptionType.NUMBER, OptionType.DURATION, OptionType.SIZE)
]


def parsed(option: SourceOption, value: str | None) -> ReadOptions:
    """Parse the option (None: without it), with the options that it needs to have an effect."""
    given = {} if option.name in TOPICS else {"subscribe": "orders"}
    if option in DECODE_OPTIONS or option in REGISTRY_OPTIONS:
        given[f"{REGISTRY_PREFIX}url"] = "http://registry"
    for column in DECODED_COLUMNS:
        if option.name.startswith(column):
            is_for_protobuf = option.name == f"{column}Message"
            given[f"{column}Format"] = "protobuf" if is_for_protobuf else "avro"
    if option.name.endswith("Format"):
        del given[option.name]
    return ReadOptions.of(given if value is None else {**given, option.name: value})


def test_options_when_described_then_all_prefixes_and_names_of_the_connection_are() -> None:
    names = {option.name for option in CONNECTION_OPTIONS}
    prefixes = {f"{prefix}*" for prefix in PREFIXES if prefix != REGISTRY_PREFIX}
    covered = {name for name in connection.OPTIONS if name.startswith(PREFIXES)}

    assert names == (connection.OPTIONS - covered) | prefixes


@pytest.mark.parametrize("option", DESCRIBED, ids=lambda option: option.name)
def test_example_when_given_then_it_is_accepted_and_changes_what_is_parsed(
    option: SourceOption, tmp_path: Path
) -> None:
    example = option.example
    if option.name == f"{REGISTRY_PREFIX}config":
        example = str(tmp_path / example)
        Path(example).write_text(f"{REGISTRY_PREFIX}max.retries=7\n")

    found = parsed(option, example)

    assert option.name in TOPICS or found != parsed(option, None)


@pytest.mark.parametrize("option", DEFAULTS, ids=lambda option: option.name)
def test_default_when_given_then_the_same_is_parsed_as_without_it(option: SourceOption) -> None:
    assert parsed(option, option.default) == parsed(option, None)


@pytest.mark.parametrize("option", AMOUNTS, ids=lambda option: option.name)
@pytest.mark.parametrize("wrong", ["many", "-1", "1.5", ""])
def test_amount_when_wrong_then_the_error_says_what_is_expected(
    option: SourceOption, wrong: str
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parsed(option, wrong)

    assert caught.value.context == {
        "option": option.name,
        "found": wrong,
        "expected": option.values,
    }


@pytest.mark.parametrize(
    "option", [each for each in DESCRIBED if each.choices], ids=lambda option: option.name
)
def test_choice_when_wrong_then_the_error_lists_the_described_ones(option: SourceOption) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parsed(option, "lenient")

    assert caught.value.context["expected"] == option.values


@pytest.mark.parametrize(
    ("name", "given", "plain"),
    [
        ("leaseMs", "30m", "1800000"),
        ("leaseMs", "1d", "86400000"),
        ("timeoutMs", "5m", "300000"),
        ("splitBytes", "64MiB", "67108864"),
        ("splitBytes", "1GB", "1000000000"),
        ("maxBytesPerTrigger", "50GiB", "53687091200"),
        ("schema.registry.request.timeout.ms", "30s", "30000"),
        ("schema.registry.retries.wait.ms", "500ms", "500"),
        ("schema.registry.retries.max.wait.ms", "5s", "5000"),
    ],
)
def test_amount_when_it_has_a_unit_then_the_same_as_the_plain_number(
    name: str, given: str, plain: str
) -> None:
    option = next(each for each in DESCRIBED if each.name == name)

    assert parsed(option, given) == parsed(option, plain)


@pytest.mark.parametrize(
    ("name", "given"),
    [("leaseMs", "2d"), ("timeoutMs", "61m"), ("splitBytes", "2TiB"), ("leaseMs", "1w")],
)
def test_amount_when_out_of_range_or_of_an_unknown_unit_then_refused(name: str, given: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"option={name}, found={given}"):
        ReadOptions.of({"subscribe": "a", name: given})


def test_timeout_when_described_then_its_bound_is_the_clients() -> None:
    assert TIMEOUT.most == MAX_TIMEOUT_MS
