"""The changes that make a mutant: mutmut's operators on decisions, and some that it lacks.

Some changes say nothing about a decision, and make no mutant: the text of a string, None for an
argument or an assigned value, and a dropped argument of a constructor, which raises at once.
Nothing changes inside annotations, decorators, imports and messages of errors, nor inside
assertions, which state what no test can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import libcst as cst
import libcst.matchers as m
from mutmut.mutation import mutators

Operator = Callable[[Any], Iterable[cst.CSTNode]]

_FOLDS = {"all": "any", "any": "all", "min": "max", "max": "min"}
_UNCHANGED_CALLS = {"len", "isinstance", "cast", "TypeVar", "NewType"}
_UNCHANGED_NODES = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.Assert)


def changes_nothing_below(node: cst.CSTNode) -> bool:
    """Return whether neither this node nor what it contains is mutated."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return node.func.value in _UNCHANGED_CALLS
    if isinstance(node, cst.If):
        return m.matches(node.test, m.Name("TYPE_CHECKING"))
    return isinstance(node, _UNCHANGED_NODES)


def mutations(node: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """Yield what replaces the node, each with its kind of change."""
    for node_type, kind, operator in _OPERATORS:
        if isinstance(node, node_type):
            for changed in operator(node):
                yield kind, changed


def _swapped_fold(node: cst.Call) -> Iterator[cst.Call]:
    """Swap all with any, min with max."""
    if isinstance(node.func, cst.Name) and node.func.value in _FOLDS:
        yield node.with_changes(func=cst.Name(_FOLDS[node.func.value]))


def _dropped_argument(node: cst.Call) -> Iterator[cst.Call]:
    """Drop one of several arguments of a function call, so that its default decides."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    is_constructor = isinstance(name, cst.Name) and name.value.lstrip("_")[:1].isupper()
    if len(node.args) > 1 and not is_constructor:
        for index in range(len(node.args)):
            yield node.with_changes(args=[*node.args[:index], *node.args[index + 1 :]])


def _decided_condition(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    yield from (_always(node, value=True), _always(node, value=False))


def _decided_if(node: cst.If) -> Iterator[cst.CSTNode]:
    """Let an if or elif always, and never, take its branch."""
    return (node.with_changes(test=test) for test in _decided_condition(node.test))


def _unentered_while(node: cst.While) -> Iterator[cst.CSTNode]:
    """Never enter the loop; a loop without an end proves nothing."""
    if not m.matches(node.test, m.Name("True")):
        yield node.with_changes(test=_always(node.test, value=False))


def _decided_filter(node: cst.CompIf) -> Iterator[cst.CSTNode]:
    """Let a comprehension's filter pass everything, and nothing."""
    return (node.with_changes(test=test) for test in _decided_condition(node.test))


def _decided_guard(node: cst.MatchCase) -> Iterator[cst.CSTNode]:
    """Let the guard of a case always, and never, hold."""
    if node.guard is not None:
        yield from (node.with_changes(guard=test) for test in _decided_condition(node.guard))


def _always(test: cst.BaseExpression, *, value: bool) -> cst.BooleanOperation:
    operator = cst.Or() if value else cst.And()
    inside = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    whole = cst.BooleanOperation(left=inside, operator=operator, right=cst.Name(str(value)))
    return whole.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _open_slice(node: cst.Slice) -> Iterator[cst.Slice]:
    """Drop one bound of a slice."""
    if node.lower is not None:
        yield node.with_changes(lower=None)
    if node.upper is not None:
        yield node.with_changes(upper=None)


def _dropped_statement(node: cst.Expr | cst.Raise | cst.Del) -> Iterator[cst.Pass]:
    """Drop a call that is made for its effect, a raise or a del."""
    if not isinstance(node, cst.Expr) or isinstance(node.value, cst.Call | cst.Await):
        yield cst.Pass()


_OPERATORS: tuple[tuple[type[cst.CSTNode], str, Operator], ...] = (
    (cst.ComparisonTarget, "comparison", mutators.operator_swap_op),
    (cst.In, "comparison", mutators.operator_keywords),
    (cst.NotIn, "comparison", mutators.operator_keywords),
    (cst.Is, "comparison", mutators.operator_keywords),
    (cst.IsNot, "comparison", mutators.operator_keywords),
    (cst.BooleanOperation, "boolean", mutators.operator_swap_op),
    (cst.UnaryOperation, "boolean", mutators.operator_remove_unary_ops),
    (cst.Name, "boolean", mutators.operator_name),
    (cst.BinaryOperation, "arithmetic", mutators.operator_swap_op),
    (cst.UnaryOperation, "arithmetic", mutators.operator_swap_op),
    (cst.AugAssign, "arithmetic", mutators.operator_swap_op),
    (cst.AugAssign, "arithmetic", mutators.operator_augmented_assignment),
    (cst.Call, "all-any-min-max", _swapped_fold),
    (cst.BaseNumber, "constant", mutators.operator_number),
    (cst.If, "condition", _decided_if),
    (cst.IfExp, "condition", mutators.operator_if_exp),
    (cst.While, "condition", _unentered_while),
    (cst.CompIf, "condition", _decided_filter),
    (cst.MatchCase, "condition", _decided_guard),
    (cst.Match, "case", mutators.operator_match),
    (cst.Break, "statement", mutators.operator_keywords),
    (cst.Continue, "statement", mutators.operator_keywords),
    (cst.Expr, "statement", _dropped_statement),
    (cst.Raise, "statement", _dropped_statement),
    (cst.Del, "statement", _dropped_statement),
    (cst.Slice, "slice", _open_slice),
    (cst.Call, "argument", _dropped_argument),
    (cst.Call, "argument", mutators.operator_symmetric_string_methods_swap),
    (cst.Call, "argument", mutators.operator_unsymmetrical_string_methods_swap),
)
