"""Each event has one family, in its own module; nothing else distinguishes events by type.

Outside rlmm/events, only a few modules of rlmm name a family at all.
"""

from __future__ import annotations

import ast
import inspect
import re
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


# Modules of rlmm outside rlmm/events that name a family, and why.
NAMING = {
    "rlmm/fold.py": "segments have a fast path",
    "rlmm/known_writes.py": "writes keys that no family uses",
    "rlmm/manager.py": "removes the records of segments",
    "rlmm/record_keys.py": "has the numbers of all kinds, which must differ",
    "rlmm/registration.py": "decides which registered processes are live",
}

FAMILY_MODULES = {type(family).__module__ for family in FAMILIES}
FAMILY_NAMES = {module.rsplit(".", 1)[1] for module in FAMILY_MODULES} - {"segment"}
IDENTIFIER = re.compile(rf"(?:^|_)(?:{'|'.join(sorted(FAMILY_NAMES))})(?:_|s?$)", re.IGNORECASE)
GENERIC = (
    "rlmm/cache/",
    "rlmm/cached_answers.py",
    "rlmm/codec.py",
    "rlmm/manager.py",
    "rlmm/spi.py",
)
"""Modules whose identifiers, such as names of rows or methods, may not name a family."""


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


def test_modules_of_metadata_when_outside_the_families_then_name_none() -> None:
    files = [file for file in handwritten_files("rlmm") if not file.name.startswith("rlmm/events/")]

    assert {file.name for file in files if _is_naming(file.parse())} == NAMING.keys()


@pytest.mark.parametrize(
    "text",
    [
        "from rlmm.events.pause import paused_tasks",
        "import rlmm.events.gaps",
        "kinds = {RecordKind.POLICY: 2}",
        "key = record_keys.RecordKind.ANOMALY",
    ],
)
def test_module_when_it_names_a_family_then_is_found(text: str) -> None:
    assert _is_naming(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "from rlmm.events.registry import FAMILIES",
        "key = RecordKey(kind=family.kind, subject=subject)",
        "kinds = frozenset(RecordKind)",
        '"""Keeps the rows of policies and pauses."""',
    ],
)
def test_module_when_it_only_asks_families_then_is_not_found(text: str) -> None:
    assert not _is_naming(ast.parse(text))


def test_generic_modules_when_they_define_or_use_names_then_none_is_that_of_a_family() -> None:
    found = {
        f"{file.name}: {name}"
        for file in handwritten_files("rlmm")
        if file.name.startswith(GENERIC)
        for name in _identifiers(file.parse())
        if IDENTIFIER.search(name)
    }

    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "def policy_levels(self): ...",
        "self.read_lease_rows = 1",
        "message = pb.PartitionState(gaps=gaps)",
        "PAUSE_PREFIX = 1",
    ],
)
def test_generic_module_when_a_name_is_that_of_a_family_then_is_found(text: str) -> None:
    assert any(map(IDENTIFIER.search, _identifiers(ast.parse(text))))


def test_generic_module_when_a_name_only_looks_alike_then_is_not_found() -> None:
    names = _identifiers(ast.parse("self.topic_id = earliest_log_offset(segment, claimed=1)"))

    assert not any(map(IDENTIFIER.search, names))


def _is_naming(tree: ast.AST) -> bool:
    """Return whether a module imports a family's module or names a kind of key."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module in FAMILY_MODULES:
                return True
            case ast.Import(names=names) if {each.name for each in names} & FAMILY_MODULES:
                return True
            case ast.Attribute(value=ast.Name(id="RecordKind") | ast.Attribute(attr="RecordKind")):
                return True
    return False


def _identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name


def _names_events(text: str) -> bool:
    """Return whether a module can distinguish events; only such a module is parsed."""
    return any(name in text for name in EVENT_NAMES)


def _is_distinguishing(tree: ast.AST) -> bool:
    nodes = list(ast.walk(tree))
    tests = (_named(each) & EVENT_NAMES for node in nodes for each in _tested(node))
    lists = (_listed(node) & EVENT_NAMES for node in nodes)
    return any(tests) or any(len(names) > 1 for names in lists)


def _tested(node: ast.AST) -> Iterator[ast.expr | None]:
    """Yield the expressions for the types that a node tests."""
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
