"""Checks that the Kafka client accepts its settings, before `rlm` connects to the cluster.

Constructs clients without bootstrap servers, so that they connect to nothing. No error shows the
value of a secret setting.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, Producer

from rlm.config.client_properties import COMMON_KEYS
from rlm.wire.security.settings import security_of
from rsm.secret_keys import is_secret
from rsm.segment.errors import InvalidConfigError

_FILE_KEYS = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
_PREAMBLE = re.compile(r"^Failed to create \w+: ")
_UNKNOWN = "No such configuration property"
_LEAST_LIKENESS = 0.8
"""The cutoff of difflib: about one typo. A lower cutoff would suggest unrelated keys."""
_CONSUMER = {"group.id": "check", "enable.auto.commit": False}
_PRODUCER = {"acks": "all", "enable.idempotence": True}


def check_client(client: Mapping[str, str]) -> None:
    """Check that librdkafka accepts the settings, whose keys have no prefix.

    Raises InvalidConfigError. `key` in its context is the invalid setting, if known. For an
    unknown key, `did_you_mean` is a common key with almost the same spelling.
    """
    for key in _FILE_KEYS:
        if key in client:
            _require_readable(key, client[key])
    silent = logging.Logger("client-check", logging.CRITICAL)  # noqa: LOG001 - used here only
    try:
        Producer({**client, **_PRODUCER}, logger=silent)
        with closing(Consumer({**client, **_CONSUMER}, logger=silent)):
            pass
    except KafkaException as error:
        raise _refused(client, error.args[0].str()) from error
    except (AttributeError, TypeError, ValueError) as error:
        # Keys that take Python objects cause these errors.
        raise _refused(client, str(error)) from error
    security_of(client)  # This comes last, because the clients report unknown keys better.


def _require_readable(key: str, path: str) -> None:
    try:
        is_readable = os.access(path, os.R_OK)
    except ValueError:  # The path contains a null character.
        is_readable = False
    if not is_readable:
        raise InvalidConfigError(
            "cannot read the file: it does not exist, or this user has no permission",
            key=key,
            path=path,
            advice="Check its path and permissions",
        )


def _refused(client: Mapping[str, str], text: str) -> InvalidConfigError:
    blamed = max((key for key in client if key in text), key=len, default=None)
    context = {} if blamed is None else {"key": blamed}
    if blamed is not None and _UNKNOWN in text:
        nearest = difflib.get_close_matches(blamed, COMMON_KEYS, n=1, cutoff=_LEAST_LIKENESS)
        context |= {"did_you_mean": nearest[0]} if nearest else {}
    shows_secret = any(value and value in text for key, value in client.items() if is_secret(key))
    reason = "(not shown)" if shows_secret else _PREAMBLE.sub("", text).strip()
    return InvalidConfigError("the Kafka client rejects a setting", **context, reason=reason)
