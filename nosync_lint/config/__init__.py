"""Settings: `[tool.nosync-lint]` of the nearest pyproject.toml, or nosync-lint.toml, and the command line over it."""

from __future__ import annotations

from nosync_lint.config.globs import common_folder, display, matches
from nosync_lint.config.read import (
    FILES,
    SEVERITIES,
    WHERE,
    find_config,
    inline_layer,
    is_config,
    load_config,
    nearest,
    project_config,
    settings_from,
    with_flags,
)
from nosync_lint.config.settings import (
    KEYS,
    MAX_FILE_SIZE,
    TABLE,
    Budget,
    Census,
    ConfigError,
    Contract,
    FileIgnore,
    Key,
    RuleTable,
    Settings,
    preset_names,
)
from nosync_lint.config.toml import default_toml, settings_toml, toml_value

__all__ = [
    "FILES",
    "KEYS",
    "MAX_FILE_SIZE",
    "SEVERITIES",
    "TABLE",
    "WHERE",
    "Budget",
    "Census",
    "ConfigError",
    "Contract",
    "FileIgnore",
    "Key",
    "RuleTable",
    "Settings",
    "common_folder",
    "default_toml",
    "display",
    "find_config",
    "inline_layer",
    "is_config",
    "load_config",
    "matches",
    "nearest",
    "preset_names",
    "project_config",
    "settings_from",
    "settings_toml",
    "toml_value",
    "with_flags",
]
