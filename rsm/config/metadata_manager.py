"""Defines the choice of the remote log metadata manager, and the settings of a plug-in for it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from rsm.config.choices import GivenSettings, MetadataManager, MetadataManagerChoice
from rsm.config.section import Section, parse_section
from rsm.plugins.plugin import ClassName, Plugin

METADATA_MANAGER_KEY = "remote.log.metadata.manager.class.name"
METADATA_PREFIX = "rlmm.config.manager."
METADATA_PLUGIN_KEYS = f"{METADATA_PREFIX}<key of a plug-in>"


class MetadataManagerKeys(Section):
    """The remote log metadata manager."""

    manager_class: MetadataManagerChoice = Field(
        default=MetadataManager.TOPIC,
        validation_alias=METADATA_MANAGER_KEY,
        description="The remote log metadata manager: `topic`, or the class of a "
        "[plug-in](plugins.md) that extends it, as `package.module:Class`. Every process reads the "
        "metadata topic in both cases.",
    )
    given_to_manager: GivenSettings = Field(
        default=GivenSettings(),
        validation_alias=METADATA_PLUGIN_KEYS,
        description="Settings of the metadata manager's plug-in, which gets them without this "
        "prefix. A setting that the plug-in does not read is an error.",
    )

    def plugin(self) -> Plugin | None:
        """Return the plug-in; None for the built-in manager."""
        if not isinstance(self.manager_class, ClassName):
            return None
        return Plugin(
            class_name=self.manager_class,
            key=METADATA_MANAGER_KEY,
            prefix=METADATA_PREFIX,
            settings=self.given_to_manager.values,
        )


def metadata_plugin(values: Mapping[str, str]) -> Plugin | None:
    """Return the plug-in that `values` name, with its settings; None for the built-in manager.

    Raises InvalidConfigError, which names the invalid `key`.
    """
    chosen: dict[str, object] = {METADATA_PLUGIN_KEYS: GivenSettings.of(values, METADATA_PREFIX)}
    if METADATA_MANAGER_KEY in values:
        chosen[METADATA_MANAGER_KEY] = values[METADATA_MANAGER_KEY]
    return parse_section(MetadataManagerKeys, chosen).plugin()
