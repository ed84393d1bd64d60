"""Builds a function's source and namespace for one version of a message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rlm.wire.layout import KINDS, MessagePlan
from rlm.wire.schema import WireType


class FunctionSource(ABC):
    """Represents the source of one function that calls functions named `<verb>_…`.

    `head` is the first line; `names` are the objects that the source refers to.
    """

    def __init__(
        self, message_plan: MessagePlan, *, verb: str, head: str, names: Mapping[str, Any]
    ) -> None:
        self._plan = message_plan
        self._verb = verb
        self._lines = [head]
        self._namespace: dict[str, Any] = dict(names)

    @abstractmethod
    def _write(self) -> None:
        """Collect the lines."""

    def compile(self, name: str) -> Any:  # noqa: ANN401 - its head defines its parameters
        """Compile the lines; return the function `name`, which they define."""
        self._write()
        plan = self._plan
        title = f"<{name} {plan.message_type.__name__} v{plan.version}>"
        code = compile("\n".join(self._lines), title, "exec")
        exec(code, self._namespace)  # noqa: S102 - the text comes only from this package's tables
        return self._namespace[name]

    def _primitive(self, primitive: WireType, *, nullable: bool) -> str:
        """Return the name of the function that reads or writes a value of this type."""
        if primitive is WireType.UUID:
            return f"{self._verb}_uuid"
        compact = self._plan.flexible and primitive is not WireType.HEADER_STRING
        kind = KINDS.get(primitive, "string")
        return f"{self._verb}_{'compact_' * compact}{'nullable_' * nullable}{kind}"

    def _named(self, prefix: str, value: object) -> str:
        """Add an object to the namespace under a new name; return that name."""
        name = f"{prefix}_{len(self._namespace)}"
        self._namespace[name] = value
        return name
