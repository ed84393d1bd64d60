"""Each event has one family, in its own module; nothing else distinguishes events by type."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterator
from importlib import import_module

import pytest

from rlmm.events.event import Event
from rlmm.events.family import EventFamily
from rlmm.events.registry import FAMILIES
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from tests.architecture.tree import PRODUCT_PACKAGES, handwritten_files

FIELDS = pb.MetadataEvent.DESCRIPTOR.oneofs_by_name["event"].fields
EVENT_NAMES = {family.event_type.__name__ for family in FAMILIES}

# Modules outside rlmm/events that distinguish events by type, and why.
DISTINGUISHING = {
    "rlm/cli/events/metadata_lines.py": "prints segment events under KIP-405's names",
}


def test_events_of_the_proto_when_registered_then_each_has_one_family() -> None:
    registered = Counter(family.field for family in FAMILIES)

    assert registered == Counter(field.name for field in FIELDS)
    assert len(EVENT_NAMES) == len(FAMILIES)


def test_kinds_of_keys_when_registered_then_each_is_a_family_s() -> None:
    assert {family.kind for family in FAMILIES} == set(RecordKind)


def test_families_when_defined_then_are_in_the_module_of_their_event_and_registered() -> None:
    modules = [import_module(file.module) for file in handwritten_files("rlmm/events")]
    defined = {
        found
        for module in modules
        for found in vars(module).values()
        if inspect.isclass(found) and issubclass(found, EventFamily)
        if not inspect.isabstract(found)
    }
    elsewhere = [f for f in FAMILIES if f.event_type.__module__ != type(f).__module__]

    assert defined == {type(family) for family in FAMILIES}
    assert elsewhere == []


def test_events_when_defined_then_each_has_a_family() -> None:
    assert {each.__name__ for each in Event.__subclasses__()} == EVENT_NAMES


def test_modules_when_outside_the_families_then_do_not_distinguish_events_by_type() -> None:
    files = [
        file
        for file in handwritten_files(*PRODUCT_PACKAGES)
        if not file.name.startswith("rlmm/events/")
    ]

    assert {
        file.name for file in files if _names_events(file.text) and _is_distinguishing(file.parse())
    } == DISTINGUISHING.keys()


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(event, SegmentEvent)",
        "isinstance(event, GapsRecorded | TopicPaused)",
        "match event:\n    case TopicPaused(): pass",
        "type(event) is values.TopicPaused",
        "TABLE = {TopicPaused: 2}",
        "KEYED = (TopicPaused, GapsRecorded)",
    ],
)
def test_module_when_it_distinguishes_events_by_type_then_is_found(text: str) -> None:
    assert _is_distinguishing(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "def publish(event: TopicPaused | GapsRecorded) -> None: ...",
        "publish(TopicPaused(event_id=event_id))",
        "isinstance(step, ParsedSegment)",
    ],
)
def test_module_when_it_only_uses_events_then_is_not_found(text: str) -> None:
    assert not _is_distinguishing(ast.parse(text))


def _names_events(text: str) -> bool:
    """Return whether a module can distinguish events; only such a module is parsed."""
    return any(name in text for name in EVENT_NAMES)


def _is_distinguishing(tree: ast.AST) -> bool:
    nodes = list(ast.walk(tree))
    tests = (_named(each) & EVENT_NAMES for node in nodes for each in _tested(node))
    lists = (_listed(node) & EVENT_NAMES for node in nodes)
    return any(tests) or any(len(names) > 1 for names in lists)


def _tested(node: ast.AST) -> Iterator[ast.expr | None]:
    """Yield the expressions that name the types which a node tests for."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
            yield kinds
        case ast.MatchClass(cls=kind):
            yield kind
        case ast.Compare(comparators=kinds) | ast.Dict(keys=kinds):
            yield from kinds


def _listed(node: ast.AST) -> set[str]:
    match node:
        case ast.Tuple(elts=kinds) | ast.List(elts=kinds) | ast.Set(elts=kinds):
            return {name for each in kinds for name in _named(each)}
    return set()


def _named(kinds: ast.expr | None) -> set[str]:
    """Return the last names of the classes that an expression lists, without looking into calls."""
    match kinds:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.BinOp(left=left, right=right):
            return _named(left) | _named(right)
        case ast.Tuple(elts=elements):
            return {name for each in elements for name in _named(each)}
    return set()
