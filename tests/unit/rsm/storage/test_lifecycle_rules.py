"""Which lifecycle rules of a bucket delete or archive objects of rlm."""

from __future__ import annotations

from typing import Any

import pytest

from rsm.storage.gcs.lifecycle import lifecycle_rules as gcs_rules
from rsm.storage.lifecycle_rules import LifecycleRule
from rsm.storage.s3.lifecycle import lifecycle_rules as s3_rules

ARCHIVED = (
    "moves objects to DEEP_ARCHIVE, where they cannot be read, 9 days after they were written"
)
DAYS = {"Expiration": {"Days": 30}}


def s3_rule(**parts: Any) -> dict[str, Any]:
    return {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, **parts}


@pytest.mark.parametrize(
    ("rule", "effects"),
    [
        (s3_rule(**DAYS), ["deletes objects 30 days after they were written"]),
        (s3_rule(Expiration={"Date": "2030-01-01"}), ["deletes objects from 2030-01-01"]),
        (
            s3_rule(Transitions=[{"Days": 9, "StorageClass": "DEEP_ARCHIVE"}]),
            [ARCHIVED],
        ),
        (s3_rule(Transitions=[{"Days": 9, "StorageClass": "STANDARD_IA"}]), []),
        (s3_rule(Expiration={"ExpiredObjectDeleteMarker": True}), []),
        (s3_rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7}), []),
        (s3_rule(NoncurrentVersionExpiration={"NoncurrentDays": 7}), []),
        (s3_rule(**DAYS, Status="Disabled"), []),
        (s3_rule(**DAYS, Filter={"Tag": {"Key": "a", "Value": "b"}}), []),
        (s3_rule(**DAYS, Filter={"And": {"Prefix": "", "Tags": [{"Key": "a"}]}}), []),
    ],
)
def test_s3_rules_when_read_then_those_that_take_objects_of_rlm(
    rule: dict[str, Any], effects: list[str]
) -> None:
    assert [each.effect for each in s3_rules({"Rules": [rule]})] == effects


@pytest.mark.parametrize(
    "rule",
    [
        s3_rule(**DAYS, Filter={"Prefix": "logs/"}),
        s3_rule(**DAYS, Filter={"And": {"Prefix": "logs/", "ObjectSizeGreaterThan": 5}}),
        {"ID": "r", "Status": "Enabled", "Prefix": "logs/", **DAYS},
    ],
)
def test_s3_rules_when_they_have_a_prefix_then_it_is_kept(rule: dict[str, Any]) -> None:
    (found,) = s3_rules({"Rules": [rule]})

    assert found.prefix == "logs/"


@pytest.mark.parametrize(
    ("condition", "effects"),
    [
        ({"age": 30}, ["deletes objects if age=30"]),
        ({"age": 30, "isLive": True}, ["deletes objects if age=30, isLive=True"]),
        ({"age": 30, "isLive": False}, []),
        ({"numNewerVersions": 3}, []),
        ({"age": 1, "matchesPrefix": ["a/", "b/"]}, ["deletes objects if age=1"] * 2),
    ],
)
def test_gcs_rules_when_read_then_those_that_delete_live_objects(
    condition: dict[str, Any], effects: list[str]
) -> None:
    rule = {"action": {"type": "Delete"}, "condition": condition}

    assert [each.effect for each in gcs_rules([rule])] == effects


def test_gcs_rules_when_they_change_the_storage_class_then_left_out() -> None:
    rule = {"action": {"type": "SetStorageClass"}, "condition": {"age": 30}}

    assert list(gcs_rules([rule])) == []


@pytest.mark.parametrize(
    ("prefix", "key_prefix", "concerns"),
    [
        ("", "rlm/", True),
        ("", "", True),
        ("rlm/", "", True),
        ("rl", "rlm/", True),
        ("rlm/orders", "rlm/", True),
        ("logs/", "rlm/", False),
    ],
)
def test_rule_when_compared_with_the_prefix_of_the_keys_then_concerns_what_it_may_take(
    prefix: str, key_prefix: str, *, concerns: bool
) -> None:
    rule = LifecycleRule(name="r", effect="deletes objects", prefix=prefix)

    assert rule.can_affect(key_prefix) is concerns
