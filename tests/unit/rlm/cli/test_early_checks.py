"""Arguments that contradict each other or have no effect: refused before anything connects.

No configuration is given, so a command that does not refuse ends with another error.
"""

from __future__ import annotations

import pytest
import typer

from rlm.cli.main import build_app
from rsm.segment.errors import InvalidConfigError

COMMAND = typer.main.get_command(build_app())
LOCAL_ABOVE_TOTAL = ("--retention", "1h", "--local-retention", "2h")
LAG_ABOVE_LOCAL = ("--copy-lag", "3h", "--local-retention", "2h")


def refused(*arguments: str) -> str:
    with pytest.raises(InvalidConfigError) as error:
        COMMAND.main(arguments, prog_name="rlm", standalone_mode=False)
    return str(error.value)


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "set", "orders"),
        ("topic", "enable", "orders"),
        ("topic", "alter", "orders"),
        ("policy", "set", "orders"),
    ],
    ids=" ".join,
)
def test_policy_options_when_they_contradict_each_other_then_refused_with_the_rule(
    command: tuple[str, ...],
) -> None:
    above_total = refused(*command, *LOCAL_ABOVE_TOTAL)
    above_local = refused(*command, *LAG_ABOVE_LOCAL)

    assert "the local retention is above the total retention" in above_total
    assert "topic=orders" in above_total
    assert "the copy lag is above the local retention" in above_local


def test_policy_options_when_others_could_permit_them_then_not_refused_early() -> None:
    assert "no configuration file is given" in refused("topic", "set", "orders", "--copy-lag", "3h")
    assert "no configuration file is given" in refused(
        "topic", "set", "orders", "--local-retention", "2h"
    )
    assert "no configuration file is given" in refused("topic", "set", "orders", "--copy-lag", "-1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("read", "orders:0", "--from", "10", "--to", "5"), "Give a later --to"),
        (("read", "orders:0", "--from", "@10", "--to", "@5"), "Give a later --to"),
        (("read", "orders:0", "--from", "10", "--to", "10"), "no configuration file is given"),
        (("read", "orders:0", "--from", "10", "--to", "@5"), "no configuration file is given"),
        (("dlq", "list", "a b"), "the topic's name is invalid"),
        (("dlq", "retry", "a b"), "the topic's name is invalid"),
        (("segments", "delete", "a b", "--streamed"), "the topic's name is invalid"),
        (("offload", "orders", "--no-wait", "--wait", "3h"), "--wait has no effect"),
        (("status", "--interval", "3"), "--interval has no effect without --watch"),
        (("policy", "set", "orders", "--default"), "exclude each other"),
        (("policy", "set"), "neither a pattern nor --default is given"),
        (
            ("topic", "resolve", "orders:0", "--lost-segment", "zzz"),
            "`rlm topic resolve orders:0 --dry-run` lists damaged segments",
        ),
        (("topic", "resolve", "orders", "--lost-segment", "zzz"), "needs one partition"),
        (("policy", "delete"), "neither a pattern nor --default is given"),
        (("check", "--end-to-end", "--gateway-config", "nope"), "nope"),
        (("check", "--gateway-config", "nope"), "no effect without --end-to-end"),
        (("check", "--keep"), "--keep has no effect without --end-to-end"),
        (("metadata", "dump", "--topic", "a b"), "the topic's name is invalid"),
        (("metadata", "tail", "--topic", "orders:0"), "the topic's name is invalid"),
        (("metadata", "audit-native", "--topic", "a b"), "the topic's name is invalid"),
        (("metadata", "dump"), "no configuration file is given"),
        (("explain", "orders:0", str(2**63)), "the offset is invalid: it is too large"),
        (("explain", "orders:0", str(2**63 - 1)), "no configuration file is given"),
        (
            ("segments", "list", "orders", "--to", str(2**63)),
            "the offset is invalid: it is too large",
        ),
        (("offload", "orders", "--to", str(2**63)), "the offset is invalid: it is too large"),
        (("segments", "list", "orders", "--wide", "--json"), "exclude each other"),
        (("read", "orders:0", "--from", str(2**63)), "the offset is invalid: it is too large"),
        (("read", f"orders:{2**31}"), "the partition's number is invalid: it is too large"),
        (("read", f"orders:{2**31 - 1}"), "no configuration file is given"),
        (("leases", "release", "orders", "--holder", " "), "the holder is invalid: it is empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_arguments_when_wrong_then_refused_before_the_configuration_is_read(
    arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "close"),
    [
        (("topic", "set", "orders", "--outage-policy", "shd"), "shed"),
        (("topic", "set", "orders", "--inherit", "retntion-ms"), "retention-ms"),
        (("topic", "set", "orders", "--layout", "blok_v1"), "block_v1"),
        (("segments", "list", "orders", "--state", "finishd"), "finished"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_value_when_mistyped_then_the_closest_one_is_suggested(
    arguments: tuple[str, ...], close: str
) -> None:
    with pytest.raises(typer.BadParameter) as error:
        COMMAND.main(arguments, prog_name="rlm", standalone_mode=False)

    assert error.value.message.endswith(f"Did you mean {close!r}?")
