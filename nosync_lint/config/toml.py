"""Settings as TOML that the reader takes back."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from nosync_lint.config.settings import TABLE, Budget, FileIgnore, RuleTable, Settings


def toml_value(value: Any) -> str:
    """The value of a setting in TOML, on one line."""
    if isinstance(value, tuple) and value and isinstance(value[0], FileIgnore):
        return _table({json.dumps(one.glob, ensure_ascii=False): one.rules for one in value})
    if isinstance(value, tuple) and value and isinstance(value[0], Budget):
        return _table({json.dumps(one.root, ensure_ascii=False): one.syncs for one in value})
    if isinstance(value, tuple) and value and isinstance(value[0], RuleTable):
        return _table({one.rule: one for one in value})
    if isinstance(value, RuleTable):
        return _table({**({"severity": value.severity} if value.severity else {}), **dict(value.options)})
    if is_dataclass(value):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in ("row", "file")}
        return _table({name: part for name, part in parts.items() if part != ""})
    if isinstance(value, tuple):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _table(entries: dict[str, Any]) -> str:
    return f"{{ {', '.join(f'{name} = {toml_value(part)}' for name, part in entries.items())} }}"


def default_toml(name: str) -> str:
    """The default of a key in TOML; an empty table for keys that are tables by name."""
    key = TABLE[name]
    return "{}" if key.form.name in ("globs", "rules", "budgets") else toml_value(key.default)


def settings_toml(settings: Settings) -> str:
    """All settings as the contents of a nosync-lint.toml, each with the place that it comes from."""
    lines = []
    for name, key in TABLE.items():
        value = getattr(settings, key.attribute)
        shown = default_toml(name) if value == () else toml_value(value)
        other = "default" if value == key.default else "command line"
        lines.append(f"{name} = {shown}  # {settings.place(name).rstrip(': ') or other}")
    return "\n".join(lines) + "\n"
