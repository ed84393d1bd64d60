"""A plug-in that extends a class of `rlm`: only errors of its own overrides are mapped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from rsm.plugins.plugin import ClassName, Plugin
from rsm.plugins.subclass import start_subclass
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError

MODULE = "tests.unit.rsm.plugins.test_subclass"


class Base:
    def __init__(self, topic: str) -> None:
        self.topic = topic

    def publish(self, event: str) -> str:
        return f"{self.topic}: {event}"

    def records(self) -> Iterator[int]:
        yield from (1, 2)

    @property
    def identity(self) -> str:
        return self.topic

    @classmethod
    def made_of(cls, text: str) -> int:
        return int(text)

    def untouched(self) -> None:
        raise KeyError("of the base")


class Extending(Base):
    shared = "old"

    @classmethod
    def share(cls, text: str) -> None:
        cls.shared = text

    def __init__(self, topic: str, own: Mapping[str, str]) -> None:
        super().__init__(topic)
        self.label = own["label"]

    def publish(self, event: str) -> str:
        if event == "lost":
            raise FencedError("lost")
        if event == "wrong":
            raise ValueError(event)
        return f"{self.label} {super().publish(event)}"

    def records(self) -> Iterator[int]:
        yield from super().records()
        raise KeyError(3)

    @property
    def identity(self) -> str:
        raise KeyError(self.label)

    @classmethod
    def made_of(cls, text: str) -> int:
        return super().made_of(text) + 1


class Separate:
    """Has the methods of `Base`, and does not extend it."""

    def publish(self, event: str) -> str:
        return event


def started(class_name: str, failures: list[tuple[str, str]], **settings: str) -> Base:
    plugin = Plugin(
        class_name=ClassName(module=MODULE, name=class_name),
        key="remote.log.metadata.manager.class.name",
        prefix="rlmm.config.manager.",
        settings=settings,
    )
    return start_subclass(
        plugin, Base, lambda name, method: failures.append((name, method)), "topic"
    )


def test_subclass_when_it_starts_then_it_gets_what_its_base_gets_and_its_settings() -> None:
    assert started("Extending", [], label="blue").publish("event") == "blue topic: event"


def test_method_when_it_raises_an_error_of_its_own_then_it_is_retriable_and_counted() -> None:
    failures: list[tuple[str, str]] = []
    found = started("Extending", failures, label="blue")

    with pytest.raises(RetriableError, match="ValueError: wrong"):
        found.publish("wrong")
    with pytest.raises(FencedError, match="lost"):
        found.publish("lost")

    assert failures == [(f"{MODULE}:Extending", "publish")]


def test_items_when_one_raises_then_it_is_retriable_and_counted() -> None:
    failures: list[tuple[str, str]] = []
    records = started("Extending", failures, label="blue").records()

    assert (next(records), next(records)) == (1, 2)
    with pytest.raises(RetriableError):
        next(records)
    assert failures == [(f"{MODULE}:Extending", "records")]


def test_class_attribute_when_set_later_then_the_plug_in_sees_it() -> None:
    found = started("Extending", [], label="blue")
    assert isinstance(found, Extending)

    Extending.share("new")

    assert found.shared == "new"


def test_property_and_class_method_when_they_raise_then_retriable_and_counted() -> None:
    failures: list[tuple[str, str]] = []
    found = started("Extending", failures, label="blue")

    with pytest.raises(RetriableError, match="blue"):
        print(found.identity)  # noqa: T201 - raises
    with pytest.raises(RetriableError, match="invalid literal"):
        found.made_of("x")

    assert found.made_of("1") == 2
    assert failures == [(f"{MODULE}:Extending", name) for name in ("identity", "made_of")]


def test_method_when_it_is_not_the_plug_ins_then_its_errors_stay() -> None:
    with pytest.raises(KeyError, match="of the base"):
        started("Extending", [], label="blue").untouched()


def test_subclass_when_it_does_not_extend_the_class_then_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"a class that extends .*test_subclass\.Base"):
        started("Separate", [])
