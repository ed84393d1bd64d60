"""Layouts that misbehave."""

from __future__ import annotations

from tests.plugin_example.rlm_example.layout import LabeledLayout


class NamedRaw(LabeledLayout):
    @property
    def name(self) -> str:
        return "raw"
